//! Unguessable values for `state`, `nonce` and the PKCE verifier.

use openidconnect::CsrfToken;

/// 256 random bits as 43 unreserved characters, for `state`, `nonce` and, as RFC 7636 section 4.1 recommends,
/// a code verifier.
pub(crate) fn token() -> String {
    const BYTES: u32 = 32;
    CsrfToken::new_random_len(BYTES).into_secret()
}
