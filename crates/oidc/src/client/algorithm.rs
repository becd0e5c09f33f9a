//! The signature algorithms an ID token may be configured to carry.
//!
//! `none` has no variant, so no setting and no token can select it.

use std::fmt;
use std::str::FromStr;

use openidconnect::JwsSigningAlgorithm;
use openidconnect::core::{CoreJsonCurveType, CoreJsonWebKeyType};
use p521::ecdsa::signature::Verifier as _;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use ring::{digest, hmac};
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

/// The name is not an algorithm this product verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, HS256, HS384, HS512"
)]
pub struct UnknownAlgorithm;

impl SigningAlgorithm {
    /// The name in a JOSE header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::EdDsa => "EdDSA",
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
        }
    }

    /// The hash of `at_hash` (OpenID Connect Core 3.1.3.6); Ed25519 uses SHA-512 inside.
    pub(crate) fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Rs256 | Self::Ps256 | Self::Es256 | Self::Hs256 => &digest::SHA256,
            Self::Rs384 | Self::Ps384 | Self::Es384 | Self::Hs384 => &digest::SHA384,
            Self::Rs512 | Self::Ps512 | Self::Es512 | Self::EdDsa | Self::Hs512 => &digest::SHA512,
        }
    }

    /// How signatures under an RSA key are verified.
    pub(crate) fn rsa(self) -> Option<&'static signature::RsaParameters> {
        match self {
            Self::Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::Es512 | Self::EdDsa => None,
            Self::Hs256 | Self::Hs384 | Self::Hs512 => None,
        }
    }

    /// How an RSA key signs.
    pub(crate) fn rsa_signing(self) -> Option<&'static dyn signature::RsaEncoding> {
        match self {
            Self::Rs256 => Some(&signature::RSA_PKCS1_SHA256),
            Self::Rs384 => Some(&signature::RSA_PKCS1_SHA384),
            Self::Rs512 => Some(&signature::RSA_PKCS1_SHA512),
            Self::Ps256 => Some(&signature::RSA_PSS_SHA256),
            Self::Ps384 => Some(&signature::RSA_PSS_SHA384),
            Self::Ps512 => Some(&signature::RSA_PSS_SHA512),
            Self::Es256 | Self::Es384 | Self::Es512 | Self::EdDsa => None,
            Self::Hs256 | Self::Hs384 | Self::Hs512 => None,
        }
    }

    /// The curve of a verification key, and how long its coordinates are in bytes.
    pub(crate) fn elliptic(self) -> Option<(CoreJsonCurveType, usize)> {
        match self {
            Self::Es256 => Some((CoreJsonCurveType::P256, 32)),
            Self::Es384 => Some((CoreJsonCurveType::P384, 48)),
            Self::Es512 => Some((CoreJsonCurveType::P521, 66)),
            Self::EdDsa => Some((CoreJsonCurveType::Ed25519, 32)),
            _ => None,
        }
    }

    /// Whether a signature verifies under a point of the algorithm's curve; an algorithm without one verifies nothing.
    pub(crate) fn verifies_under_point(self, point: &[u8], message: &[u8], signed: &[u8]) -> bool {
        let how: &dyn VerificationAlgorithm = match self {
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Self::EdDsa => &signature::ED25519,
            Self::Es512 => return es512(point, message, signed).is_ok(),
            _ => return false,
        };
        UnparsedPublicKey::new(how, point).verify(message, signed).is_ok()
    }

    /// The HMAC under a shared secret.
    pub(crate) fn hmac(self) -> Option<hmac::Algorithm> {
        match self {
            Self::Hs256 => Some(hmac::HMAC_SHA256),
            Self::Hs384 => Some(hmac::HMAC_SHA384),
            Self::Hs512 => Some(hmac::HMAC_SHA512),
            _ => None,
        }
    }

    /// The fewest bytes of a secret it may be used with: as many as its hash has (OpenID Connect Core 16.19); 0 without one.
    pub(crate) fn least_secret_bytes(self) -> usize {
        self.hmac()
            .map_or(0, |algorithm| algorithm.digest_algorithm().output_len())
    }
}

/// `ring` knows no P-521.
fn es512(point: &[u8], message: &[u8], signed: &[u8]) -> Result<(), p521::ecdsa::Error> {
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point)?;
    key.verify(message, &p521::ecdsa::Signature::from_slice(signed)?)
}

impl JwsSigningAlgorithm for SigningAlgorithm {
    type KeyType = CoreJsonWebKeyType;

    fn key_type(&self) -> Option<CoreJsonWebKeyType> {
        Some(match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => {
                CoreJsonWebKeyType::RSA
            }
            Self::Es256 | Self::Es384 | Self::Es512 => CoreJsonWebKeyType::EllipticCurve,
            Self::EdDsa => CoreJsonWebKeyType::OctetKeyPair,
            Self::Hs256 | Self::Hs384 | Self::Hs512 => CoreJsonWebKeyType::Symmetric,
        })
    }

    fn uses_shared_secret(&self) -> bool {
        self.hmac().is_some()
    }

    fn rsa_sha_256() -> Self {
        Self::Rs256
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
