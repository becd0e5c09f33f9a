//! Random bytes from the operating system, for values that must be unpredictable.

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

/// The operating system returned no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct NoRandomness;

/// Returns `N` random bytes.
///
/// # Errors
/// The operating system returns none.
pub fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    // aws-lc's error has no details.
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_unspecified| NoRandomness)?;
    Ok(bytes)
}
