//! The receivers, the tokens for them, and the documents with which they verify tokens.

use std::sync::Arc;

use oidc::SigningFailed;
use serde_json::{Value, json};
use ssf::{SecurityEventPush, SecurityEventSigner};

use super::note::SignalNote;

/// The event for every receiver (CAEP 1.0, section 3.1).
const SESSION_REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";

/// How an event names a user (RFC 9493).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectFormat {
    /// By issuer and subject.
    IssSub,
    /// By the subject alone.
    Opaque,
    /// By the email address, if the provider verified it.
    Email,
}

/// A receiver of events.
#[derive(Debug)]
pub struct Receiver {
    /// Its name in the file, metrics and logs.
    pub id: String,
    /// Its name in tokens.
    pub audience: String,
    /// The endpoint and credentials for pushes.
    pub push: SecurityEventPush,
    /// How its events name users.
    pub subject: SubjectFormat,
    /// The issuers whose sessions it receives events of; empty for all.
    pub providers: Vec<String>,
}

impl Receiver {
    /// Whether it receives events of sessions of this provider.
    pub(crate) fn receives(&self, issuer: &str) -> bool {
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
    /// The most waiting events for each receiver; the oldest are dropped first.
    pub queued_max: usize,
}

impl Receivers {
    /// The metadata (SSF 1.0, section 7.1), which the operator publishes.
    #[must_use]
    pub fn metadata(&self) -> Value {
        json!({
            "spec_version": "1_0",
            "issuer": self.issuer,
            "jwks_uri": format!("{}/jwks.json", self.issuer.trim_end_matches('/')),
            "delivery_methods_supported": ["urn:ietf:rfc:8935"],
            "default_subjects": "ALL",
        })
    }

    /// The token of a note, issued at `now_ms` (RFC 8417, SSF 1.0 section 4.1): no `exp`, no `sub`.
    pub(super) fn token(
        &self,
        receiver: &Receiver,
        note: &SignalNote,
        now_ms: u64,
    ) -> Result<String, SigningFailed> {
        // The service wrote both as JSON.
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        self.signer.sign(&json!({
            "iss": self.issuer,
            "aud": receiver.audience,
            "iat": now_ms / 1000,
            "jti": note.jti,
            "txn": note.txn,
            "sub_id": json(&note.sub_id),
            "events": { SESSION_REVOKED: json(&note.claims) },
        }))
    }
}
