//! The signature algorithms an ID token may be configured to carry.
//!
//! `none` has no variant, so no setting and no token can ask for it.

use std::fmt;
use std::str::FromStr;

use openidconnect::core::CoreJwsSigningAlgorithm;
use ring::{digest, signature};

/// A JWS signature algorithm (RFC 7518 section 3.1, RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Ed25519.
    EdDsa,
    /// HMAC with SHA-256 under the client secret; only by explicit configuration.
    Hs256,
}

/// The name is not an algorithm this product verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA, HS256")]
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
            Self::EdDsa => "EdDSA",
            Self::Hs256 => "HS256",
        }
    }

    /// Whether the key is a secret shared with the provider.
    pub fn is_symmetric(self) -> bool {
        matches!(self, Self::Hs256)
    }

    /// The `kty` a verification key must have.
    pub(crate) fn key_type(self) -> &'static str {
        match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => "RSA",
            Self::Es256 | Self::Es384 => "EC",
            Self::EdDsa => "OKP",
            Self::Hs256 => "oct",
        }
    }

    /// How long the coordinates of a point are, in bytes, where a key is one that has both.
    pub(crate) fn coordinate_bytes(self) -> Option<usize> {
        match self {
            Self::Es256 => Some(32),
            Self::Es384 => Some(48),
            _ => None,
        }
    }

    /// The `crv` a verification key must have, where the key type has curves.
    pub(crate) fn curve(self) -> Option<&'static str> {
        match self {
            Self::Es256 => Some("P-256"),
            Self::Es384 => Some("P-384"),
            Self::EdDsa => Some("Ed25519"),
            Self::Rs256
            | Self::Rs384
            | Self::Rs512
            | Self::Ps256
            | Self::Ps384
            | Self::Ps512
            | Self::Hs256 => None,
        }
    }

    /// The hash of `at_hash` (OpenID Connect Core 3.1.3.6); Ed25519 uses SHA-512 inside.
    pub(crate) fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Rs256 | Self::Ps256 | Self::Es256 | Self::Hs256 => &digest::SHA256,
            Self::Rs384 | Self::Ps384 | Self::Es384 => &digest::SHA384,
            Self::Rs512 | Self::Ps512 | Self::EdDsa => &digest::SHA512,
        }
    }

    /// How RSA signatures of this algorithm are verified; `None` where it is not RSA's.
    pub(crate) fn rsa(self) -> Option<&'static signature::RsaParameters> {
        match self {
            Self::Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa | Self::Hs256 => None,
        }
    }

    pub(crate) fn core(self) -> CoreJwsSigningAlgorithm {
        match self {
            Self::Rs256 => CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
            Self::Rs384 => CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
            Self::Rs512 => CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
            Self::Ps256 => CoreJwsSigningAlgorithm::RsaSsaPssSha256,
            Self::Ps384 => CoreJwsSigningAlgorithm::RsaSsaPssSha384,
            Self::Ps512 => CoreJwsSigningAlgorithm::RsaSsaPssSha512,
            Self::Es256 => CoreJwsSigningAlgorithm::EcdsaP256Sha256,
            Self::Es384 => CoreJwsSigningAlgorithm::EcdsaP384Sha384,
            Self::EdDsa => CoreJwsSigningAlgorithm::EdDsa,
            Self::Hs256 => CoreJwsSigningAlgorithm::HmacSha256,
        }
    }
}

impl FromStr for SigningAlgorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        const ALL: [SigningAlgorithm; 10] = [
            SigningAlgorithm::Rs256,
            SigningAlgorithm::Rs384,
            SigningAlgorithm::Rs512,
            SigningAlgorithm::Ps256,
            SigningAlgorithm::Ps384,
            SigningAlgorithm::Ps512,
            SigningAlgorithm::Es256,
            SigningAlgorithm::Es384,
            SigningAlgorithm::EdDsa,
            SigningAlgorithm::Hs256,
        ];
        ALL.into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or(UnknownAlgorithm)
    }
}

impl fmt::Display for SigningAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
