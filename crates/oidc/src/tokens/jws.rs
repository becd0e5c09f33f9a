//! Compact JWS (RFC 7515): parsed under a size limit, trusted only after verification.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::JsonWebTokenType;
use serde_json::{Map, Value};

use crate::json::{strict_claims, strict_object};
use crate::{AcceptedAlgorithms, IdTokenError, SigningAlgorithm};

/// Longest token accepted, in bytes: far above real tokens, far below a harmful size.
pub const MAX_TOKEN_BYTES: usize = 64 * 1024;

/// The `iss` of an unverified token. It may only serve to choose the keys for the verification. `None` if it
/// cannot be read.
pub fn unverified_issuer(raw: &str) -> Option<String> {
    if raw.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let claims = object(raw.split('.').nth(1)?)?;
    claims.get("iss")?.as_str().map(str::to_owned)
}

/// A token with an unchecked signature.
pub struct UnverifiedToken<'a> {
    pub(crate) algorithm: SigningAlgorithm,
    pub(crate) kid: Option<String>,
    pub(crate) typ: Option<JsonWebTokenType>,
    pub(crate) signed: &'a [u8],
    pub(crate) signature: Vec<u8>,
    /// The unverified header.
    pub(crate) header: Map<String, Value>,
    payload: &'a str,
}

impl<'a> UnverifiedToken<'a> {
    /// Parses a token. Its header must have an `accepted` algorithm and no `crit`. Keys in the header (`jwk`,
    /// `jku`, `x5c`, `x5u`) are never used.
    ///
    /// # Errors
    /// The text is not a token, or has an algorithm that is not accepted.
    pub fn parse(raw: &'a str, accepted: &AcceptedAlgorithms) -> Result<Self, IdTokenError> {
        if raw.len() > MAX_TOKEN_BYTES {
            return Err(IdTokenError::TooLong);
        }
        let (signed, signature) = raw.rsplit_once('.').ok_or(IdTokenError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(IdTokenError::Malformed)?;
        if payload.contains('.') {
            return Err(IdTokenError::Malformed);
        }
        let header = object(header).ok_or(IdTokenError::Malformed)?;
        let algorithm = header.get("alg").and_then(Value::as_str);
        let algorithm = algorithm.and_then(|name| name.parse().ok());
        let algorithm = algorithm
            .filter(|algorithm| accepted.may_accept(*algorithm))
            .ok_or(IdTokenError::Algorithm)?;
        if header.contains_key("crit") {
            return Err(IdTokenError::Header);
        }
        Ok(Self {
            algorithm,
            kid: text(&header, "kid")?,
            typ: text(&header, "typ")?.map(JsonWebTokenType::new),
            signed: signed.as_bytes(),
            signature: URL_SAFE_NO_PAD
                .decode(signature)
                .map_err(|_| IdTokenError::Malformed)?,
            header,
            payload,
        })
    }

    /// The payload. Before the signature check it may only cause a rejection. `None` if it is not base64url.
    #[must_use]
    pub fn payload(&self) -> Option<Vec<u8>> {
        URL_SAFE_NO_PAD.decode(self.payload).ok()
    }

    /// The claims of the payload, without null.
    pub(crate) fn claims(&self) -> Result<Map<String, Value>, IdTokenError> {
        let claims = self.payload().and_then(|payload| strict_claims(&payload));
        claims.ok_or(IdTokenError::Malformed)
    }

    /// Whether the header has a `typ`.
    #[must_use]
    pub fn has_type(&self) -> bool {
        self.typ.is_some()
    }

    /// Whether `typ` is absent or one of these; case and `application/` are ignored (RFC 7515 section 4.1.9).
    #[must_use]
    pub fn type_is(&self, allowed: &[&str]) -> bool {
        let is_allowed =
            |typ: &JsonWebTokenType| typ.normalize().is_ok_and(|typ| allowed.contains(&typ.as_str()));
        self.typ.as_ref().is_none_or(is_allowed)
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    strict_object(&URL_SAFE_NO_PAD.decode(part).ok()?)
}

fn text(header: &Map<String, Value>, name: &str) -> Result<Option<String>, IdTokenError> {
    match header.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(IdTokenError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_token_it_is_is_read_up_to_a_length_and_no_further() {
        let token = |padding: usize| {
            let claims = format!(
                r#"{{"iss":"https://op.example","padding":"{}"}}"#,
                "x".repeat(padding)
            );
            format!("e30.{}.", URL_SAFE_NO_PAD.encode(claims))
        };
        assert_eq!(
            unverified_issuer(&token(1_000)).as_deref(),
            Some("https://op.example")
        );
        assert_eq!(unverified_issuer(&token(MAX_TOKEN_BYTES)), None);
        for odd in ["", "e30", "e30.e30", "e30.W10.", "e30.!."] {
            assert_eq!(unverified_issuer(odd), None, "{odd}");
        }
    }
}
