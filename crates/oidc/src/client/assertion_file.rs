//! A client assertion that something else writes into a file: a projected ServiceAccount token of Kubernetes, a
//! workload identity of Entra ID, or a JWT-SVID of SPIFFE (RFC 7523 section 2.2).
//!
//! Invariant: the file is read for each request, so that a renewed assertion is used at once. No error shows it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// Bytes of the longest assertion. Those of platforms have one to two kilobytes.
const MAX_BYTES: u64 = 16 * 1024;

/// The registered type of an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssertionType {
    /// A JWT (RFC 7523).
    JwtBearer,
    /// A JWT-SVID (draft-ietf-oauth-spiffe-client-auth).
    JwtSpiffe,
}

impl AssertionType {
    /// The value of `client_assertion_type`.
    pub(crate) fn urn(self) -> &'static str {
        match self {
            Self::JwtBearer => "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            Self::JwtSpiffe => "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe",
        }
    }
}

/// Why the assertion in a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AssertionFileError {
    /// The file cannot be read.
    #[error("the client assertion in {} cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file is empty, longer than 16 KiB, or holds no signed JWT.
    #[error("{} holds no client assertion: it has to be one signed JWT of at most 16 KiB", .0.display())]
    Malformed(PathBuf),
    /// `exp` has passed.
    #[error("the client assertion in {} has expired: what writes this file has to renew it", .0.display())]
    Expired(PathBuf),
}

/// Reads the assertion, for a request at `now` (seconds since the Unix epoch).
///
/// # Errors
/// The file has no assertion that is still valid. The provider checks everything else.
pub(crate) fn read(path: &Path, now: u64) -> Result<String, AssertionFileError> {
    let unreadable = |error| AssertionFileError::Unreadable(path.to_owned(), error);
    let malformed = || AssertionFileError::Malformed(path.to_owned());
    let mut content = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    let fits = content.len() as u64 <= MAX_BYTES;
    let text = String::from_utf8(content)
        .ok()
        .filter(|_| fits)
        .ok_or_else(malformed)?;
    let assertion = text.trim();
    let exp = expiry(assertion).ok_or_else(malformed)?;
    if exp <= now {
        return Err(AssertionFileError::Expired(path.to_owned()));
    }
    Ok(assertion.to_owned())
}

/// `exp` of a signed JWT in compact form (RFC 7515 section 3.1); the largest number without one.
fn expiry(assertion: &str) -> Option<u64> {
    let parts: Vec<&str> = assertion.split('.').collect();
    let [header, claims, signature] = parts.as_slice() else {
        return None;
    };
    let decode = |part: &str| {
        URL_SAFE_NO_PAD
            .decode(part)
            .ok()
            .filter(|bytes| !bytes.is_empty())
    };
    decode(header)?;
    decode(signature)?;
    let claims: Value = serde_json::from_slice(&decode(claims)?).ok()?;
    match claims.as_object()?.get("exp") {
        Some(exp) => exp.as_f64().map(|secs| secs as u64),
        None => Some(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn jwt(claims: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!(
            "{}.{}.{}",
            part(r#"{"alg":"RS256"}"#),
            part(claims),
            part("signature")
        )
    }

    #[test]
    fn an_assertion_is_read_again_for_each_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for claims in [format!(r#"{{"exp":{}}}"#, NOW + 1), r#"{"sub":"a"}"#.to_owned()] {
            std::fs::write(&path, format!("{}\n", jwt(&claims))).unwrap();
            assert_eq!(read(&path, NOW).unwrap(), jwt(&claims));
        }
    }

    #[test]
    fn a_file_without_a_valid_assertion_is_an_error_that_does_not_show_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let missing = read(&path, NOW).unwrap_err();
        assert!(matches!(missing, AssertionFileError::Unreadable(..)));
        let long = jwt(&format!(r#"{{"pad":"{}"}}"#, "x".repeat(16 * 1024)));
        for content in [
            "",
            "\n",
            "secret",
            "a.b",
            "a.b.c.d",
            "é.é.é",
            &long,
            &jwt("[]"),
            &jwt(r#"{"exp":"soon"}"#),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = read(&path, NOW).unwrap_err();
            assert!(matches!(error, AssertionFileError::Malformed(_)), "{content}");
            assert!(content.len() < 3 || !error.to_string().contains(content));
        }
        std::fs::write(&path, jwt(&format!(r#"{{"exp":{NOW}}}"#))).unwrap();
        assert!(matches!(read(&path, NOW), Err(AssertionFileError::Expired(_))));
    }
}
