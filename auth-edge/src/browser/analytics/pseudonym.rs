//! The analytics headers of the profile answer: the project's token, and the person's pseudonym.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use session_proto::v1::Session;

use super::Analytics;
use crate::sessions::keys::{DerivedKeys, Purpose};

/// The project's public token: with it, a page may load the client library once the person has agreed.
const TOKEN: HeaderName = HeaderName::from_static("x-analytics-token");

/// The person's pseudonym.
const ID: HeaderName = HeaderName::from_static("x-analytics-id");

/// Bytes kept of the keyed hash: 128 bits rule out collisions between the users of any product.
const PSEUDONYM_BYTES: usize = 16;

impl Analytics {
    /// Adds the headers that the page needs to start analytics. Adds nothing if analytics is off.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap, keys: &DerivedKeys, session: &Session) {
        let id = Self::pseudonym(keys, &session.issuer, &session.subject);
        let values = [(TOKEN, self.settings.token.as_str()), (ID, id.as_str())];
        for (name, value) in values {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        }
    }

    /// The person's pseudonym: the same at each visit, and without meaning to readers who lack the edge's
    /// secret. A new first secret changes every pseudonym.
    #[must_use]
    pub(crate) fn pseudonym(keys: &DerivedKeys, issuer: &str, subject: &str) -> String {
        let hash = keys.sign(
            Purpose::Pseudonym,
            &[b"analytics", issuer.as_bytes(), subject.as_bytes()],
        );
        URL_SAFE_NO_PAD.encode(hash.get(..PSEUDONYM_BYTES).unwrap_or(&hash))
    }
}

#[cfg(test)]
mod tests {
    use chassis::secret::Secret;

    use super::*;

    #[test]
    fn a_pseudonym_is_stable_and_differs_by_person_issuer_and_secret() {
        let keys = |secret: &str| DerivedKeys::new(&[Secret::new(secret.to_owned())]);
        let ours = keys("a secret of the edge");
        let ada = Analytics::pseudonym(&ours, "https://op.example", "ada");
        assert_eq!(ada, Analytics::pseudonym(&ours, "https://op.example", "ada"));
        assert_eq!(ada.len(), 22);
        for other in [
            Analytics::pseudonym(&ours, "https://op.example", "grace"),
            Analytics::pseudonym(&ours, "https://other.example", "ada"),
            Analytics::pseudonym(&keys("another secret"), "https://op.example", "ada"),
        ] {
            assert_ne!(ada, other);
        }
    }
}
