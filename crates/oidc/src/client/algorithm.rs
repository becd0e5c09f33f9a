//! The signature algorithms of ID tokens that can be configured.
//!
//! `none` has no variant, so no setting and no token can select it.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::signature::{self, RsaEncoding, RsaParameters, UnparsedPublicKey, VerificationAlgorithm};
use aws_lc_rs::{digest, hmac};
use serde::de::{IntoDeserializer as _, value};
use serde::{Deserialize, Serialize};

/// A JWS signature algorithm (RFC 7518 section 3.1, RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SigningAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// ECDSA on P-521 with SHA-512.
    Es512,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// HMAC with SHA-256 under the client secret; only by explicit configuration.
    Hs256,
    /// HMAC with SHA-384, likewise.
    Hs384,
    /// HMAC with SHA-512, likewise.
    Hs512,
}

/// The name is not an algorithm that this product supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, HS256, HS384, HS512"
)]
pub struct UnknownAlgorithm;

/// The only curve whose keys are not a pair of coordinates (RFC 8037 section 2).
pub(crate) const ED25519: &str = "Ed25519";

/// How an algorithm makes and verifies signatures.
enum Scheme {
    /// With an RSA key: how to verify, and how to sign.
    Rsa(&'static RsaParameters, &'static dyn RsaEncoding),
    /// With a point of a curve: the curve's name in keys, and the bytes of a coordinate.
    Curve(&'static str, usize),
    /// With a shared secret.
    Secret(hmac::Algorithm),
}

impl SigningAlgorithm {
    /// The algorithm's name, hash and scheme.
    fn row(self) -> (&'static str, &'static digest::Algorithm, Scheme) {
        use Scheme::{Curve, Rsa, Secret};
        use digest::{SHA256, SHA384, SHA512};
        use signature as s;
        match self {
            Self::Rs256 => (
                "RS256",
                &SHA256,
                Rsa(&s::RSA_PKCS1_2048_8192_SHA256, &s::RSA_PKCS1_SHA256),
            ),
            Self::Rs384 => (
                "RS384",
                &SHA384,
                Rsa(&s::RSA_PKCS1_2048_8192_SHA384, &s::RSA_PKCS1_SHA384),
            ),
            Self::Rs512 => (
                "RS512",
                &SHA512,
                Rsa(&s::RSA_PKCS1_2048_8192_SHA512, &s::RSA_PKCS1_SHA512),
            ),
            Self::Ps256 => (
                "PS256",
                &SHA256,
                Rsa(&s::RSA_PSS_2048_8192_SHA256, &s::RSA_PSS_SHA256),
            ),
            Self::Ps384 => (
                "PS384",
                &SHA384,
                Rsa(&s::RSA_PSS_2048_8192_SHA384, &s::RSA_PSS_SHA384),
            ),
            Self::Ps512 => (
                "PS512",
                &SHA512,
                Rsa(&s::RSA_PSS_2048_8192_SHA512, &s::RSA_PSS_SHA512),
            ),
            Self::Es256 => ("ES256", &SHA256, Curve("P-256", 32)),
            Self::Es384 => ("ES384", &SHA384, Curve("P-384", 48)),
            Self::Es512 => ("ES512", &SHA512, Curve("P-521", 66)),
            Self::EdDsa => ("EdDSA", &SHA512, Curve(ED25519, 32)),
            Self::Hs256 => ("HS256", &SHA256, Secret(hmac::HMAC_SHA256)),
            Self::Hs384 => ("HS384", &SHA384, Secret(hmac::HMAC_SHA384)),
            Self::Hs512 => ("HS512", &SHA512, Secret(hmac::HMAC_SHA512)),
        }
    }

    /// The name in a JOSE header.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The hash of `at_hash` (OpenID Connect Core 3.1.3.6); Ed25519 uses SHA-512 inside.
    pub(crate) fn digest(self) -> &'static digest::Algorithm {
        self.row().1
    }

    /// How to verify and make signatures with an RSA key.
    pub(crate) fn rsa(self) -> Option<(&'static RsaParameters, &'static dyn RsaEncoding)> {
        match self.row().2 {
            Scheme::Rsa(verification, encoding) => Some((verification, encoding)),
            Scheme::Curve(..) | Scheme::Secret(_) => None,
        }
    }

    /// The curve of a verification key, and the length of its coordinates in bytes.
    pub(crate) fn elliptic(self) -> Option<(&'static str, usize)> {
        match self.row().2 {
            Scheme::Curve(curve, length) => Some((curve, length)),
            Scheme::Rsa(..) | Scheme::Secret(_) => None,
        }
    }

    /// `kty` of a verification key.
    pub(crate) fn key_type(self) -> &'static str {
        match self.row().2 {
            Scheme::Rsa(..) => "RSA",
            Scheme::Curve(ED25519, _) => "OKP",
            Scheme::Curve(..) => "EC",
            Scheme::Secret(_) => "oct",
        }
    }

    /// Whether a signature verifies with a point of the algorithm's curve; false without a curve.
    pub(crate) fn verifies_under_point(self, point: &[u8], message: &[u8], signed: &[u8]) -> bool {
        let how: &dyn VerificationAlgorithm = match self {
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Self::EdDsa => &signature::ED25519,
            Self::Es512 => &signature::ECDSA_P521_SHA512_FIXED,
            _ => return false,
        };
        UnparsedPublicKey::new(how, point).verify(message, signed).is_ok()
    }

    /// The HMAC with a shared secret.
    pub(crate) fn hmac(self) -> Option<hmac::Algorithm> {
        match self.row().2 {
            Scheme::Secret(hmac) => Some(hmac),
            Scheme::Rsa(..) | Scheme::Curve(..) => None,
        }
    }

    /// The minimum bytes of a secret: the size of the hash (OpenID Connect Core 16.19); 0 without a secret.
    pub(crate) fn least_secret_bytes(self) -> usize {
        self.hmac()
            .map_or(0, |algorithm| algorithm.digest_algorithm().output_len())
    }
}

impl FromStr for SigningAlgorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Self::deserialize(name.into_deserializer()).map_err(|_: value::Error| UnknownAlgorithm)
    }
}

impl fmt::Display for SigningAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
