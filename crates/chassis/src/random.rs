//! Random bytes from the operating system, for whatever must not be guessed.

use ring::rand::{SecureRandom, SystemRandom};

/// The operating system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct NoRandomness;

/// So many random bytes.
///
/// # Errors
/// The operating system gives none.
pub fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    // What ring says of a failure is that there was one.
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_unspecified| NoRandomness)?;
    Ok(bytes)
}
