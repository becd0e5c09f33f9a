//! Unguessable values for `state`, `nonce` and the PKCE verifier.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};

/// 256 random bits as 43 characters of the unreserved set: fit for `state`, `nonce` and, as RFC 7636
/// section 4.1 recommends, for a code verifier.
pub(crate) fn token() -> Result<String, Unspecified> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
