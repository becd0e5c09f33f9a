//! The receivers, and the events each of them gets.

use std::sync::Arc;

use oidc::{SecurityEventPush, SecurityEventSigner};

/// The types of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// A session ended by a decision.
    SessionRevoked,
    /// A session began.
    SessionEstablished,
    /// A session was used, as often as its use is written down.
    SessionPresented,
    /// A person signed in again at another level of assurance.
    AssuranceLevelChange,
}

impl EventType {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [
        Self::SessionRevoked,
        Self::SessionEstablished,
        Self::SessionPresented,
        Self::AssuranceLevelChange,
    ];

    /// As the file and metrics name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SessionRevoked => "session-revoked",
            Self::SessionEstablished => "session-established",
            Self::SessionPresented => "session-presented",
            Self::AssuranceLevelChange => "assurance-level-change",
        }
    }

    /// As events and streams name it (CAEP 1.0, section 3).
    pub(super) fn uri(self) -> String {
        format!(
            "https://schemas.openid.net/secevent/caep/event-type/{}",
            self.name()
        )
    }
}

/// How a person is named (RFC 9493).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectFormat {
    /// By issuer and subject.
    IssSub,
    /// By the subject alone.
    Opaque,
    /// By the email address, where the provider has verified one.
    Email,
}

/// A receiver of events.
#[derive(Debug)]
pub struct Receiver {
    /// Its name in the file, metrics and logs.
    pub id: String,
    /// Its name in tokens.
    pub audience: String,
    /// Where and how events are pushed.
    pub push: SecurityEventPush,
    /// The events it gets.
    pub events: Vec<EventType>,
    /// How people are named to it.
    pub subject: SubjectFormat,
    /// Issuers whose sessions it gets events of; empty for all.
    pub providers: Vec<String>,
}

impl Receiver {
    /// Whether it gets events of sessions of this provider.
    pub(super) fn hears_of(&self, issuer: &str) -> bool {
        self.providers.is_empty() || self.providers.iter().any(|other| other == issuer)
    }
}

/// The receivers, and the identity of the transmitter.
#[derive(Clone, Debug)]
pub struct Receivers {
    /// Our issuer as a transmitter.
    pub issuer: String,
    /// Signs events.
    pub signer: SecurityEventSigner,
    /// All receivers.
    pub all: Vec<Arc<Receiver>>,
    /// How many events wait for each at most; the oldest are dropped first.
    pub queued_max: usize,
}
