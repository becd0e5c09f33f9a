//! One verification key of the provider (RFC 7517, RFC 7518 section 6, RFC 8037).
//!
//! It is a `JsonWebKey` of `openidconnect` whose signatures `ring` verifies: RSA's in a fifth of the time of the crate's own
//! key. Invariant: it verifies nothing of an algorithm it does not fit.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{CoreJsonCurveType, CoreJsonWebKeyType, CoreJsonWebKeyUse};
use openidconnect::{
    JsonWebKey, JsonWebKeyAlgorithm, JsonWebKeyId, JsonWebKeyUse as _, JwsSigningAlgorithm as _,
    SignatureVerificationError,
};
use ring::digest;
use ring::signature::RsaPublicKeyComponents;
use serde::{Deserialize, Serialize};

use crate::SigningAlgorithm;

/// RFC 7518 section 3.3.
const LEAST_RSA_BITS: usize = 2048;
/// The first byte of an uncompressed point (SEC 1 section 2.3.3).
const UNCOMPRESSED: u8 = 4;

/// A public key. One with a member we do not understand does not come to be.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ProviderKey {
    kty: CoreJsonWebKeyType,
    #[serde(rename = "use")]
    usage: Option<CoreJsonWebKeyUse>,
    key_ops: Option<Vec<String>>,
    alg: Option<SigningAlgorithm>,
    kid: Option<JsonWebKeyId>,
    crv: Option<CoreJsonCurveType>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl ProviderKey {
    /// Whether it is there to verify signatures of the algorithm, and strong enough for it.
    pub(crate) fn fits(&self, algorithm: SigningAlgorithm) -> bool {
        let is_whole = match self.kty {
            CoreJsonWebKeyType::RSA => self.rsa().is_some(),
            CoreJsonWebKeyType::Symmetric => false,
            _ => self.point(algorithm).is_some(),
        };
        let operations = self.key_ops.as_ref();
        is_whole
            && Some(&self.kty) == algorithm.key_type().as_ref()
            && self.crv == algorithm.elliptic().map(|(curve, _)| curve)
            && self.alg.is_none_or(|alg| alg == algorithm)
            && self.usage.as_ref().is_none_or(|usage| usage.allows_signature())
            && operations.is_none_or(|all| all.iter().any(|one| one == "verify"))
    }

    fn rsa(&self) -> Option<RsaPublicKeyComponents<Vec<u8>>> {
        let (n, e) = (number(self.n.as_deref()?)?, number(self.e.as_deref()?)?);
        let zeros = n.first()?.leading_zeros() as usize;
        (n.len() * 8 - zeros >= LEAST_RSA_BITS).then_some(RsaPublicKeyComponents { n, e })
    }

    /// The point as `ring` takes it. Some providers leave out zeros in front of a coordinate (RFC 7518 section 6.2.1.2), which one
    /// key in 128 has: nobody could sign in there until it is replaced.
    fn point(&self, algorithm: SigningAlgorithm) -> Option<Vec<u8>> {
        let (curve, length) = algorithm.elliptic()?;
        let x = self.x.as_deref()?;
        if curve == CoreJsonCurveType::Ed25519 {
            return bytes(x).filter(|x| x.len() == length); // no number (RFC 8037 section 2)
        }
        let mut point = vec![UNCOMPRESSED];
        for coordinate in [number(x)?, number(self.y.as_deref()?)?] {
            let zeros = length.checked_sub(coordinate.len())?;
            point.resize(point.len() + zeros, 0);
            point.extend(coordinate);
        }
        Some(point)
    }
}

impl JsonWebKey for ProviderKey {
    type KeyUse = CoreJsonWebKeyUse;
    type SigningAlgorithm = SigningAlgorithm;

    fn key_id(&self) -> Option<&JsonWebKeyId> {
        self.kid.as_ref()
    }

    fn key_type(&self) -> &CoreJsonWebKeyType {
        &self.kty
    }

    fn key_use(&self) -> Option<&CoreJsonWebKeyUse> {
        self.usage.as_ref()
    }

    fn signing_alg(&self) -> JsonWebKeyAlgorithm<&SigningAlgorithm> {
        let alg = self.alg.as_ref();
        alg.map_or(JsonWebKeyAlgorithm::Unspecified, JsonWebKeyAlgorithm::Algorithm)
    }

    /// A shared secret is no key of a provider: it fits no algorithm.
    fn new_symmetric(_key: Vec<u8>) -> Self {
        Self {
            kty: CoreJsonWebKeyType::Symmetric,
            usage: None,
            key_ops: None,
            alg: None,
            kid: None,
            crv: None,
            n: None,
            e: None,
            x: None,
            y: None,
        }
    }

    fn verify_signature(
        &self,
        algorithm: &SigningAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureVerificationError> {
        if !self.fits(*algorithm) {
            return Err(SignatureVerificationError::InvalidKey(format!(
                "does not fit {algorithm}"
            )));
        }
        let verified = if let Some(how) = algorithm.rsa() {
            self.rsa()
                .is_some_and(|key| key.verify(how, message, signature).is_ok())
        } else {
            self.point(*algorithm)
                .is_some_and(|point| algorithm.verifies_under_point(&point, message, signature))
        };
        if verified {
            return Ok(());
        }
        Err(SignatureVerificationError::CryptoError(
            "does not verify".to_owned(),
        ))
    }

    fn hash_bytes(&self, bytes: &[u8], algorithm: &SigningAlgorithm) -> Result<Vec<u8>, String> {
        Ok(digest::digest(algorithm.digest(), bytes).as_ref().to_vec())
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

/// A number without zeros in front (RFC 7518 section 2).
fn number(text: &str) -> Option<Vec<u8>> {
    Some(bytes(text)?.into_iter().skip_while(|byte| *byte == 0).collect())
}
