//! Whom we tell, of what, and how they are known.

use std::sync::Arc;

use chassis::secret::Secret;
use oidc::{SecurityEventPush, SecurityEventSigner};

use crate::session::index;

/// What receivers can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// A session ended because somebody chose so.
    SessionRevoked,
    /// A session began.
    SessionEstablished,
    /// A session was used, as often as its use is written down.
    SessionPresented,
    /// A person signed in anew at another level of assurance.
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

/// How events reach a receiver.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// We push them (RFC 8935).
    Push(SecurityEventPush),
    /// It fetches them (RFC 8936).
    Poll,
}

/// Somebody we tell.
#[derive(Debug)]
pub struct Receiver {
    /// Its name in the file, metrics and logs.
    pub id: String,
    /// Its name in tokens.
    pub audience: String,
    /// Its stream.
    pub stream_id: String,
    /// How events reach it.
    pub delivery: Delivery,
    /// What it may be told.
    pub events: Vec<EventType>,
    /// How people are named to it.
    pub subject: SubjectFormat,
    /// Issuers of whose sessions it is told; all where there is none.
    pub providers: Vec<String>,
    /// What it shows at the API: any of these.
    pub tokens: Vec<Secret<String>>,
}

impl Receiver {
    /// Whether this is a token of the receiver.
    pub(super) fn is_known_by(&self, token: &str) -> bool {
        self.tokens.iter().any(|own| own.is(token))
    }

    /// Whether it is told of sessions of this provider.
    pub(super) fn hears_of(&self, issuer: &str) -> bool {
        self.providers.is_empty() || self.providers.iter().any(|other| other == issuer)
    }

    /// The stream of the receiver of this id.
    pub(super) fn stream_id(id: &str) -> String {
        index::hashed(&[b"signal stream id", id.as_bytes()]).to_string()
    }
}

/// Whom we tell, and in whose name.
#[derive(Clone, Debug)]
pub struct Receivers {
    /// Our address as a transmitter.
    pub issuer: String,
    /// Signs what we tell.
    pub signer: SecurityEventSigner,
    /// Everybody.
    pub all: Vec<Arc<Receiver>>,
    /// How many events wait for each at most; the oldest go first.
    pub queued_max: usize,
}

impl Receivers {
    /// Whose token this is.
    pub(super) fn known_by(&self, token: &Secret<String>) -> Option<&Arc<Receiver>> {
        self.all
            .iter()
            .find(|receiver| receiver.is_known_by(token.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_named_alike_on_every_replica_and_in_every_release() {
        assert_eq!(Receiver::stream_id("files"), "3c052228943bca16a2882d156de497a0");
        assert_ne!(Receiver::stream_id("files"), Receiver::stream_id("mail"));
    }
}
