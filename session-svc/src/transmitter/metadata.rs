//! The documents by which receivers verify events: metadata (SSF 1.0, section 7.1) and keys. The operator publishes both as files.

use serde_json::{Value, json};

use super::receiver::Receivers;

impl Receivers {
    /// The metadata.
    pub fn metadata(&self) -> Value {
        json!({
            "spec_version": "1_0",
            "issuer": self.issuer,
            "jwks_uri": format!("{}/jwks.json", self.issuer.trim_end_matches('/')),
            "delivery_methods_supported": ["urn:ietf:rfc:8935"],
            "default_subjects": "ALL",
        })
    }

    /// The public keys, as a JSON Web Key Set.
    pub fn keys(&self) -> Value {
        self.signer.public_jwks()
    }
}
