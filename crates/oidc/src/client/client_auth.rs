//! Authenticates this client at the token, revocation and pushed-request endpoints (OpenID Connect Core 9,
//! RFC 6749 section 2.3, RFC 8705).

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openidconnect::ClientSecret;
use url::form_urlencoded;

use crate::SigningAlgorithm;
use crate::client::assertion_file::{self, AssertionFileError, AssertionType};
use crate::client::client_key::{ClientKeys, SigningFailed};

/// The client authentication method.
#[derive(Clone, Debug, Default)]
pub enum ClientAuth {
    /// Basic or post, whichever the provider's metadata list; Basic if they list both or neither.
    SecretByMetadata(ClientSecret),
    /// `client_secret_basic`: HTTP Basic with form-encoded parts.
    SecretBasic(ClientSecret),
    /// `client_secret_post`: in the body.
    SecretPost(ClientSecret),
    /// `private_key_jwt`: a signed assertion.
    PrivateKeyJwt(ClientKeys),
    /// An assertion that something else writes into a file.
    AssertionFile {
        /// The file with the JWT.
        path: PathBuf,
        /// The type of the JWT.
        assertion_type: AssertionType,
    },
    /// `tls_client_auth`: the TLS client certificate.
    TlsClientAuth {
        /// PEM certificate chain.
        cert_file: PathBuf,
        /// PEM private key.
        key_file: PathBuf,
    },
    /// `none`: a public client.
    #[default]
    None,
}

/// The audience of a `private_key_jwt` assertion. An assertion never has two audiences: each of the two servers
/// could reuse it at the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AssertionAudience {
    /// The issuer, so that no other provider can use it (draft-ietf-oauth-rfc7523bis, FAPI 2.0).
    Issuer,
    /// The URL of the token endpoint (RFC 7523 section 3, OpenID Connect Core 9), as some providers require.
    TokenEndpoint,
}

/// The algorithm that signs an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AssertionAlgorithm {
    /// The strongest algorithm that the metadata list for this kind of key.
    Strongest,
    /// RS256, the default of client registration (OpenID Connect Core 15.1), if the strongest is another one.
    Rs256,
}

/// The forms of an assertion, best first. A provider says neither which audience it wants nor which algorithm
/// it registered for this client. If it rejects one form, the next is tried.
pub(crate) const ASSERTION_FORMS: [(AssertionAudience, AssertionAlgorithm); 4] = [
    (AssertionAudience::Issuer, AssertionAlgorithm::Strongest),
    (AssertionAudience::TokenEndpoint, AssertionAlgorithm::Strongest),
    (AssertionAudience::Issuer, AssertionAlgorithm::Rs256),
    (AssertionAudience::TokenEndpoint, AssertionAlgorithm::Rs256),
];

/// Why this client cannot authenticate.
#[derive(Debug, thiserror::Error)]
pub enum ClientProofError {
    /// An assertion could not be signed.
    #[error("the client's assertion cannot be signed")]
    Signing(#[from] SigningFailed),
    /// The file with the assertion holds none that is valid.
    #[error(transparent)]
    File(#[from] AssertionFileError),
}

/// The parts of a request that authenticate this client.
pub(crate) struct Proof {
    pub(crate) authorization: Option<String>,
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl ClientAuth {
    /// The method's name (OpenID Connect Core 9, RFC 8705).
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::SecretByMetadata(_) | Self::SecretBasic(_) => "client_secret_basic",
            Self::SecretPost(_) => "client_secret_post",
            Self::PrivateKeyJwt(_) => "private_key_jwt",
            Self::AssertionFile { assertion_type, .. } => match assertion_type {
                AssertionType::JwtBearer => "private_key_jwt",
                AssertionType::JwtSpiffe => "spiffe_jwt",
            },
            Self::TlsClientAuth { .. } => "tls_client_auth",
            Self::None => "none",
        }
    }

    /// The method for a provider with these `token_endpoint_auth_methods_supported`.
    #[must_use]
    pub fn for_methods(&self, methods: &[impl AsRef<str>]) -> Self {
        let Self::SecretByMetadata(secret) = self else {
            return self.clone();
        };
        let lists = |name: &str| methods.iter().any(|method| method.as_ref() == name);
        if lists("client_secret_post") && !lists("client_secret_basic") {
            Self::SecretPost(secret.clone())
        } else {
            Self::SecretBasic(secret.clone())
        }
    }

    /// The same method, with the chosen algorithm for assertions. `listed` is
    /// `token_endpoint_auth_signing_alg_values_supported`. `None` if RS256 is impossible or is the strongest.
    pub(crate) fn signing_by(&self, listed: &[String], algorithm: AssertionAlgorithm) -> Option<Self> {
        let is_strongest = algorithm == AssertionAlgorithm::Strongest;
        let Self::PrivateKeyJwt(keys) = self else {
            return is_strongest.then(|| self.clone());
        };
        let strongest = keys.by_listed(listed);
        if is_strongest {
            return Some(Self::PrivateKeyJwt(strongest));
        }
        // Without a list, only RSA keys sign with RS256.
        let signs_by_it = |keys: &ClientKeys| keys.signing().algorithm() == SigningAlgorithm::Rs256;
        let is_listed = listed.iter().any(|name| name == SigningAlgorithm::Rs256.name());
        (is_listed && signs_by_it(keys) && !signs_by_it(&strongest)).then(|| self.clone())
    }

    pub(crate) fn secret(&self) -> Option<&ClientSecret> {
        match self {
            Self::SecretByMetadata(secret) | Self::SecretBasic(secret) | Self::SecretPost(secret) => {
                Some(secret)
            }
            Self::PrivateKeyJwt(_) | Self::AssertionFile { .. } | Self::TlsClientAuth { .. } | Self::None => {
                None
            }
        }
    }

    /// Makes the proof for one request. If it is an assertion, `audience` is its audience.
    pub(crate) fn prove(
        &self,
        client_id: &str,
        audience: &str,
        token_id: &str,
        now: u64,
    ) -> Result<Proof, ClientProofError> {
        let (mut authorization, mut fields) = (None, vec![("client_id", client_id.to_owned())]);
        match self {
            Self::SecretByMetadata(secret) | Self::SecretBasic(secret) => {
                authorization = Some(basic(client_id, secret.secret()));
                fields.clear();
            }
            Self::SecretPost(secret) => fields.push(("client_secret", secret.secret().to_owned())),
            Self::PrivateKeyJwt(keys) => {
                let assertion = keys.signing().assertion(client_id, audience, token_id, now)?;
                fields.push(("client_assertion_type", AssertionType::JwtBearer.urn().to_owned()));
                fields.push(("client_assertion", assertion));
            }
            Self::AssertionFile { path, assertion_type } => {
                let assertion = assertion_file::read(path, now)?;
                fields.push(("client_assertion_type", assertion_type.urn().to_owned()));
                fields.push(("client_assertion", assertion));
            }
            Self::TlsClientAuth { .. } | Self::None => {}
        }
        Ok(Proof {
            authorization,
            fields,
        })
    }
}

/// RFC 6749 section 2.3.1: both parts are form-encoded before they are joined.
fn basic(client_id: &str, secret: &str) -> String {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!(
        "Basic {}",
        STANDARD.encode(format!("{}:{}", encode(client_id), encode(secret)))
    )
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    use super::*;
    use crate::ClientKey;

    #[test]
    fn a_secret_is_shown_as_the_metadata_list_it_and_by_basic_otherwise() {
        let secret = || ClientSecret::new("a secret".to_owned());
        for (listed, method) in [
            (&[][..], "client_secret_basic"),
            (&["client_secret_post"], "client_secret_post"),
            (
                &["client_secret_post", "client_secret_basic"],
                "client_secret_basic",
            ),
            (&["private_key_jwt"], "client_secret_basic"),
            (&["private_key_jwt", "client_secret_post"], "client_secret_post"),
        ] {
            let listed: Vec<String> = listed.iter().map(|&name: &&str| name.to_owned()).collect();
            let chosen = ClientAuth::SecretByMetadata(secret()).for_methods(&listed);
            assert_eq!(chosen.method(), method, "{listed:?}");
            let named = ClientAuth::SecretBasic(secret()).for_methods(&listed);
            assert_eq!(named.method(), "client_secret_basic", "a named method stays");
        }
    }

    #[test]
    fn an_assertion_is_for_one_audience_once_and_for_a_minute() {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let der = aws_lc_rs::signature::Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der.as_ref())
        );
        let key = ClientKey::from_pem(&pem).expect("a key");
        let auth = ClientAuth::PrivateKeyJwt(ClientKeys::new(key, Vec::new()));
        let proof = auth
            .prove("client", "https://op.example", "once", 1_800_000_000)
            .expect("signed");
        assert_eq!(proof.authorization, None);
        let (_, assertion) = proof
            .fields
            .iter()
            .find(|(name, _)| *name == "client_assertion")
            .expect("an assertion");
        let claims = assertion.split('.').nth(1).expect("three parts");
        let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64");
        let claims: Value = serde_json::from_slice(&claims).expect("JSON");
        let expected = json!({
            "iss": "client", "sub": "client", "aud": "https://op.example", "jti": "once",
            "iat": 1_800_000_000, "exp": 1_800_000_060,
        });
        assert_eq!(claims, expected);
    }
}
