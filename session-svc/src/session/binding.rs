//! Binding a session to one device's key pair (W3C Device Bound Session Credentials). Stores the public key.

use prost::Message;
use serde_json::{Map, Value};

/// Longest text of a key, in bytes: an RSA key of 4,096 bits takes about 700.
const JWK_BYTES_MAX: usize = 1024;

/// Members of a JWK that are private or secret (RFC 7518, sections 6.2.2, 6.3.2 and 6.4).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The device binding of a session.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DeviceBinding {
    /// The public key.
    #[prost(message, required, tag = "1")]
    pub key: DeviceKey,
    /// When the session was bound.
    #[prost(uint64, tag = "2")]
    pub bound_at_ms: u64,
}

/// A public key as a JWK text (RFC 7517): EC on P-256 or RSA, for ES256 and RS256.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DeviceKey(#[prost(string, tag = "1")] String);

impl DeviceKey {
    /// Parses a caller's key, or returns the error.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > JWK_BYTES_MAX {
            return Err("must be at most 1024 bytes");
        }
        let Ok(members) = serde_json::from_str::<Map<String, Value>>(text) else {
            return Err("must be the text of a JWK");
        };
        let member = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        if PRIVATE.iter().any(|name| members.contains_key(*name)) {
            return Err("must not hold the private key");
        }
        let needed: &[&str] = match (member("kty"), member("crv")) {
            ("EC", "P-256") => &["x", "y"],
            ("RSA", "") => &["n", "e"],
            _ => return Err("must be a public key of the kind EC on P-256 or RSA"),
        };
        if needed.iter().any(|name| member(name).is_empty()) {
            return Err("must hold the whole public key");
        }
        Ok(Self(text.to_owned()))
    }

    /// The text of the JWK.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_keys_of_both_kinds_are_taken_as_they_are() {
        for text in [
            r#"{"kty":"EC","crv":"P-256","x":"AA","y":"BB"}"#,
            r#"{ "kty": "RSA", "n": "AA", "e": "AQAB", "alg": "RS256" }"#,
        ] {
            assert_eq!(
                DeviceKey::parse(text).map(|key| key.text().to_owned()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn anything_else_is_no_key() {
        let long = format!(
            r#"{{"kty":"RSA","e":"AQAB","n":"{}"}}"#,
            "A".repeat(JWK_BYTES_MAX)
        );
        for text in [
            "",
            "key",
            "[]",
            "{}",
            r#"{"kty":"EC","crv":"P-384","x":"AA","y":"BB"}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AA"}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AA","y":7}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AA","y":"BB","d":"CC"}"#,
            r#"{"kty":"RSA","n":"AA"}"#,
            r#"{"kty":"RSA","n":"AA","e":"AQAB","p":"CC"}"#,
            r#"{"kty":"oct","k":"AA"}"#,
            &long,
        ] {
            assert!(DeviceKey::parse(text).is_err(), "{text}");
        }
    }
}
