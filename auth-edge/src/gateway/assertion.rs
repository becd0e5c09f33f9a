//! Signed assertions for upstreams: a JWT (RFC 7519) that names the sender of a request, signed with ES256 (RFC 7518,
//! section 3.4). Also the key set (RFC 7517) that verifies it.
//!
//! Invariants
//! - The first key of the file signs; all keys are published.
//! - An assertion is for one upstream (`aud`) and valid for one minute.
//! - No claim of the provider replaces a claim of the edge (`iss`, `sub`, …).
//!
//! Deliberately absent: reuse of an assertion. Signing takes some twenty microseconds, and a unique `jti`
//! lets an upstream reject replays.

use std::sync::Arc;

use axum::http::HeaderName;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chassis::random;
use chassis::secret::Reloading;
use oidc::{ClientKey, ClientKeys, SigningAlgorithm};
use serde_json::{Map, Value, json};

use crate::route_table::principal::Principal;

/// The header of an assertion. Like every `x-auth-` header, the edge removes it from client requests.
pub(super) const X_AUTH_ASSERTION: HeaderName = HeaderName::from_static("x-auth-assertion");

/// The path of the published key set.
pub(crate) const JWKS_PATH: &str = "/.well-known/vestibule/jwks.json";

/// How long verifiers may cache the key set: publish a new key at least that long before it signs.
pub(crate) const JWKS_MAX_AGE_SECS: u64 = 300;

/// The lifetime of an assertion: covers the network, the upstream's queue and a few seconds of clock skew.
const LIFETIME_SECS: u64 = 60;

/// Longest claim of the provider as JSON, in bytes: headers have to stay below the limit of servers (8 KiB).
const MAX_CLAIM_BYTES: usize = 1_024;

/// All claims of the provider together, in bytes, for the same reason.
pub(super) const MAX_CLAIMS_BYTES: usize = 4_096;

/// Why a key file is unusable. Names a key only by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    /// The file holds no private key.
    #[error("holds no private key in PEM")]
    Nothing,
    /// A key does not fit ES256, or is not in PKCS#8.
    #[error(
        "key {0} is no P-256 key in PKCS#8: make one with \"openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256\""
    )]
    Unusable(usize),
}

/// Reads private keys, one PEM block after another. Skips blocks of other kinds, such as certificates.
///
/// # Errors
/// [`KeyError`]: the text holds no key, or a key that cannot sign.
pub(crate) fn read_keys(text: &str) -> Result<Arc<ClientKeys>, KeyError> {
    let is_key = |block: &&str| {
        let label = block.split("-----").next();
        label.is_some_and(|label| label.ends_with("PRIVATE KEY"))
    };
    let blocks = text.split("-----BEGIN ").skip(1).filter(is_key);
    let mut keys = blocks.enumerate().map(|(at, block)| {
        let key = ClientKey::from_pem(&format!("-----BEGIN {block}")).ok();
        key.filter(|key| key.algorithm() == SigningAlgorithm::Es256)
            .ok_or(KeyError::Unusable(at + 1))
    });
    let first = keys.next().ok_or(KeyError::Nothing)??;
    Ok(Arc::new(ClientKeys::new(first, keys.collect::<Result<_, _>>()?)))
}

/// Signs assertions.
#[derive(Clone)]
pub(crate) struct Assertions {
    keys: Reloading<Arc<ClientKeys>>,
    issuer: Arc<str>,
}

impl Assertions {
    /// Signs with `issuer` as `iss`.
    #[must_use]
    pub(crate) fn new(keys: Reloading<Arc<ClientKeys>>, issuer: &str) -> Self {
        Self {
            keys,
            issuer: issuer.into(),
        }
    }

    /// The current public keys, as a JWK set.
    #[must_use]
    pub(crate) fn jwks(&self) -> String {
        self.keys.load().public_jwks().to_string()
    }

    /// An assertion for the server at `audience`: the request acts for this principal with these claims.
    pub(super) fn sign(
        &self,
        who: Principal<'_>,
        claims: Map<String, Value>,
        audience: &str,
        now_secs: u64,
    ) -> Option<String> {
        let keys = self.keys.load();
        let key = keys.signing();
        let id = random::bytes::<16>().ok()?;
        let mut body = claims;
        let own = json!({
            "iss": &*self.issuer,
            "aud": audience,
            "idp": who.issuer,
            "iat": now_secs,
            "exp": now_secs + LIFETIME_SECS,
            "jti": BASE64.encode(id),
        });
        if let Value::Object(own) = own {
            body.extend(own);
        }
        body.extend(who.subject.map(|subject| ("sub".to_owned(), subject.into())));
        body.extend(who.handle.map(|handle| ("sid".to_owned(), handle.into())));
        body.extend(who.client_id.map(|id| ("client_id".to_owned(), id.into())));
        if let Some(at_ms) = who.authenticated_at_ms {
            body.insert("auth_time".to_owned(), (at_ms / 1000).into());
        }
        let header = json!({"typ": "JWT", "kid": key.thumbprint()});
        key.sign(header, &Value::Object(body)).ok()
    }
}

/// The requested claims of a principal within the size limit, and the names of those that do not fit.
pub(super) fn passed_on<'a>(
    who: Principal<'_>,
    claims: &'a [String],
    most_bytes: usize,
) -> (Map<String, Value>, Vec<&'a str>) {
    let mut room = MAX_CLAIMS_BYTES.min(most_bytes);
    let (mut released, mut left_out) = (Map::new(), Vec::new());
    for name in claims {
        let Some(value) = who.claims.get(name) else {
            continue;
        };
        let length = value.to_string().len();
        if length <= MAX_CLAIM_BYTES.min(room) {
            room -= length;
            released.insert(name.clone(), value.clone());
        } else {
            left_out.push(name.as_str());
        }
    }
    (released, left_out)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
    };
    use session_proto::timestamp;
    use session_proto::v1::Session;

    use super::*;
    use crate::sessions::CachedSession;

    fn pem() -> String {
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let body = base64::engine::general_purpose::STANDARD.encode(document.as_ref());
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    }

    fn assertions(keys: Arc<ClientKeys>, claims: &[&str]) -> (Assertions, Vec<String>) {
        let claims = claims.iter().map(|name| (*name).to_owned()).collect();
        (
            Assertions::new(Reloading::new(keys), "https://app.example"),
            claims,
        )
    }

    fn signed(
        (asserting, claims): &(Assertions, Vec<String>),
        who: &CachedSession,
        audience: &str,
        now_secs: u64,
    ) -> String {
        let (claims, _) = passed_on(who.into(), claims, MAX_CLAIMS_BYTES);
        asserting.sign(who.into(), claims, audience, now_secs).unwrap()
    }

    fn cached(user: Value) -> std::sync::Arc<CachedSession> {
        CachedSession::new(session(user))
    }

    fn session(user: Value) -> Session {
        Session {
            subject: "person".to_owned(),
            issuer: "https://idp.example".to_owned(),
            handle: "handle".to_owned(),
            user: user.to_string(),
            authenticated_at: Some(timestamp::from_ms(900_000)),
            ..Session::default()
        }
    }

    fn part(token: &str, at: usize) -> Value {
        serde_json::from_slice(&BASE64.decode(token.split('.').nth(at).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn an_assertion_verifies_with_the_published_key_it_names_and_says_who_it_is() {
        let (first, second) = (pem(), pem());
        let asserting = assertions(read_keys(&(first + &second)).unwrap(), &["acr", "sub"]);
        let user = json!({"acr": "gold", "sub": "other", "email": "a@b.example"});
        let token = signed(&asserting, &cached(user), "http://orders:8080", 1_000);
        let jwks: Value = serde_json::from_str(&asserting.0.jwks()).unwrap();
        let published = jwks["keys"].as_array().unwrap();
        assert_eq!(published.len(), 2);
        assert_eq!(part(&token, 0)["kid"], published[0]["kid"], "the first key signs");
        assert!(published.iter().all(|key| key.get("d").is_none()));
        let coordinate = |name: &str| BASE64.decode(published[0][name].as_str().unwrap()).unwrap();
        let point = [vec![4], coordinate("x"), coordinate("y")].concat();
        let (payload, signature) = token.rsplit_once('.').unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(payload.as_bytes(), &BASE64.decode(signature).unwrap())
            .unwrap();
        let mut body = part(&token, 1);
        assert!(
            body.as_object_mut()
                .unwrap()
                .remove("jti")
                .is_some_and(|jti| jti.as_str().unwrap().len() == 22)
        );
        let expected = json!({
            "iss": "https://app.example", "aud": "http://orders:8080", "sub": "person", "idp": "https://idp.example",
            "sid": "handle", "iat": 1_000, "exp": 1_060, "auth_time": 900, "acr": "gold",
        });
        assert_eq!(body, expected);
        let again = signed(&asserting, &cached(json!({})), "http://orders:8080", 1_000);
        assert_ne!(
            part(&again, 1)["jti"],
            part(&token, 1)["jti"],
            "a replay can be told"
        );
    }

    #[test]
    fn a_claim_too_large_for_a_header_is_left_out() {
        let asserting = assertions(read_keys(&pem()).unwrap(), &["groups", "acr"]);
        let user = json!({"groups": vec!["a long name of a group"; 100], "acr": "gold"});
        let body = part(&signed(&asserting, &cached(user.clone()), "http://a", 0), 1);
        assert_eq!((body.get("groups"), body["acr"].as_str()), (None, Some("gold")));
        let (_, left_out) = passed_on((&*cached(user)).into(), &asserting.1, 8);
        assert_eq!(left_out, ["groups"], "the log names it");
    }

    #[test]
    fn a_file_that_cannot_sign_is_refused_by_the_place_of_the_key() {
        assert_eq!(read_keys("").unwrap_err(), KeyError::Nothing);
        let rsa = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        assert_eq!(read_keys(&(pem() + rsa)).unwrap_err(), KeyError::Unusable(2));
        let sec1 = rsa.replace("RSA", "EC");
        assert_eq!(read_keys(&(sec1 + &pem())).unwrap_err(), KeyError::Unusable(1));
        let torn = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert_eq!(read_keys(torn).unwrap_err(), KeyError::Unusable(1));
    }

    #[test]
    fn a_certificate_beside_a_key_is_passed_over() {
        let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for text in [certificate.to_owned() + &pem(), pem() + certificate] {
            let published: Value =
                serde_json::from_str(&read_keys(&text).unwrap().public_jwks().to_string()).unwrap();
            assert_eq!(published["keys"].as_array().unwrap().len(), 1);
        }
    }
}
