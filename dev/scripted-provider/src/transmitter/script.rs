//! The script: what the transmitter says and how it misbehaves.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::json;

use crate::{Answer, Claims};

/// An endpoint of the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransmitterEndpoint {
    /// `/.well-known/ssf-configuration`.
    Configuration,
    /// `jwks_uri`.
    Jwks,
    /// Where tokens for the management are fetched.
    Token,
    /// `configuration_endpoint`.
    Streams,
    /// `status_endpoint`.
    Status,
    /// `verification_endpoint`.
    Verification,
    /// Where events are polled; each stream has its own address below it.
    Poll,
}

impl TransmitterEndpoint {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Configuration,
        Self::Jwks,
        Self::Token,
        Self::Streams,
        Self::Status,
        Self::Verification,
        Self::Poll,
    ];

    /// Its path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Configuration => "/.well-known/ssf-configuration",
            Self::Jwks => "/published/keys-19c4",
            Self::Token => "/back/exchange",
            Self::Streams => "/signals/streams",
            Self::Status => "/signals/state",
            Self::Verification => "/signals/try",
            Self::Poll => "/signals/fetch",
        }
    }
}

/// What the transmitter says.
#[derive(Clone, Debug)]
pub struct TransmitterScript {
    /// Its clock in seconds; `None` is the real one.
    pub now: Option<u64>,
    /// Patches its configuration.
    pub metadata: Claims,
    /// Whom new streams are for.
    pub audience: Vec<String>,
    /// Patches each configuration of a stream it says.
    pub stream: Claims,
    /// Patches each status it says.
    pub status: Claims,
    /// Patches answers of the token endpoint.
    pub token: Claims,
    /// Patches answers to polls.
    pub poll: Claims,
    /// Whether a stream of polls gets the verification event that was asked for.
    pub verify: bool,
    /// How long a poll waits for events.
    pub wait: Duration,
    /// Whole answers by endpoint.
    pub answers: HashMap<TransmitterEndpoint, Answer>,
    /// Whole answers to one request each, before those by endpoint.
    pub next: HashMap<TransmitterEndpoint, VecDeque<Answer>>,
}

impl Default for TransmitterScript {
    fn default() -> Self {
        Self {
            now: None,
            metadata: Claims::new(),
            audience: vec!["https://edge.example".to_owned()],
            stream: Claims::new(),
            status: Claims::new(),
            token: Claims::new(),
            poll: Claims::new(),
            verify: true,
            wait: Duration::from_secs(20),
            answers: HashMap::new(),
            next: HashMap::new(),
        }
    }
}

impl TransmitterScript {
    /// Answers one request so.
    pub fn answer_once(&mut self, endpoint: TransmitterEndpoint, answer: Answer) {
        self.next.entry(endpoint).or_default().push_back(answer);
    }

    /// Members of its configuration that are as they should be.
    pub(crate) fn configuration(issuer: &str) -> Claims {
        let at = |endpoint: TransmitterEndpoint| format!("{issuer}{}", endpoint.path());
        let document = json!({
            "issuer": issuer,
            "spec_version": "1_0",
            "jwks_uri": at(TransmitterEndpoint::Jwks),
            "delivery_methods_supported": ["urn:ietf:rfc:8935", "urn:ietf:rfc:8936"],
            "configuration_endpoint": at(TransmitterEndpoint::Streams),
            "status_endpoint": at(TransmitterEndpoint::Status),
            "verification_endpoint": at(TransmitterEndpoint::Verification),
            "authorization_schemes": [{ "spec_urn": "urn:ietf:rfc:6749" }],
            "default_subjects": "ALL",
        });
        document.as_object().cloned().unwrap_or_default()
    }
}
