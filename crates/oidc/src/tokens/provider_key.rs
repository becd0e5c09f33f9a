//! One verification key of the provider (RFC 7517, RFC 7518 section 6, RFC 8037).
//!
//! Invariant: it never verifies a signature of an algorithm that it does not fit.

use aws_lc_rs::signature::RsaPublicKeyComponents;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use crate::SigningAlgorithm;
use crate::client::algorithm::ED25519;

/// RFC 7518 section 3.3.
const LEAST_RSA_BITS: usize = 2048;
/// The first byte of an uncompressed point (SEC 1 section 2.3.3).
const UNCOMPRESSED: u8 = 4;

/// A public key. A key with an unsupported member is rejected.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ProviderKey {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<SigningAlgorithm>,
    pub(crate) kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl ProviderKey {
    /// Whether the key is for signatures of the algorithm, and strong enough.
    pub(crate) fn fits(&self, algorithm: SigningAlgorithm) -> bool {
        let curve = algorithm.elliptic().map(|(curve, _)| curve);
        let is_whole = || match curve {
            Some(_) => self.point(algorithm).is_some(),
            None => algorithm.rsa().is_some() && self.rsa().is_some(),
        };
        let operations = self.key_ops.as_ref();
        self.kty == algorithm.key_type()
            && self.crv.as_deref() == curve
            && is_whole()
            && self.alg.is_none_or(|alg| alg == algorithm)
            && self.usage.as_ref().is_none_or(|usage| usage == "sig")
            && operations.is_none_or(|all| all.iter().any(|one| one == "verify"))
    }

    fn rsa(&self) -> Option<RsaPublicKeyComponents<Vec<u8>>> {
        let (n, e) = (number(self.n.as_deref()?)?, number(self.e.as_deref()?)?);
        let zeros = n.first()?.leading_zeros() as usize;
        (n.len() * 8 - zeros >= LEAST_RSA_BITS).then_some(RsaPublicKeyComponents { n, e })
    }

    /// The uncompressed point (SEC 1). Some providers omit leading zeros of a coordinate (RFC 7518 section 6.2.1.2);
    /// one key in 128 has some. Without padding, all sign-ins would fail until the key changes.
    fn point(&self, algorithm: SigningAlgorithm) -> Option<Vec<u8>> {
        let (curve, length) = algorithm.elliptic()?;
        let x = self.x.as_deref()?;
        if curve == ED25519 {
            return bytes(x).filter(|x| x.len() == length); // bytes, not a number (RFC 8037 section 2)
        }
        let mut point = vec![UNCOMPRESSED];
        for coordinate in [number(x)?, number(self.y.as_deref()?)?] {
            let zeros = length.checked_sub(coordinate.len())?;
            point.resize(point.len() + zeros, 0);
            point.extend(coordinate);
        }
        Some(point)
    }

    /// Whether a signature verifies with this key.
    pub(crate) fn verifies(&self, algorithm: SigningAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        match algorithm.rsa() {
            Some((how, _)) => self
                .rsa()
                .is_some_and(|key| key.verify(how, message, signature).is_ok()),
            None => self
                .point(algorithm)
                .is_some_and(|point| algorithm.verifies_under_point(&point, message, signature)),
        }
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

/// A number without leading zeros (RFC 7518 section 2).
fn number(text: &str) -> Option<Vec<u8>> {
    Some(bytes(text)?.into_iter().skip_while(|byte| *byte == 0).collect())
}
