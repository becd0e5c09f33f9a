//! Security event tokens made of notes (RFC 8417, SSF 1.0 section 4.1): no `exp`, no `sub`.

use serde_json::{Value, json};

use oidc::SigningFault;

use super::note::SignalNote;
use super::receiver::{Receiver, Receivers};

impl Receivers {
    /// The token that tells a receiver of a note, issued at `now_ms`.
    pub(super) fn token(
        &self,
        receiver: &Receiver,
        note: &SignalNote,
        now_ms: u64,
    ) -> Result<String, SigningFault> {
        // Both were written by us as JSON.
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        self.signer.sign(&json!({
            "iss": self.issuer,
            "aud": receiver.audience,
            "iat": now_ms / 1000,
            "jti": note.jti,
            "txn": note.txn,
            "sub_id": json(&note.sub_id),
            "events": { &note.event_uri: json(&note.claims) },
        }))
    }
}
