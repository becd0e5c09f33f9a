//! Hashes that identify stored tokens and proofs.

use aws_lc_rs::digest;

/// A hash of texts, each prefixed with its length, so that no two lists hash the same bytes.
pub(in crate::gateway) fn digest_of(parts: &[&str]) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in parts {
        hash.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(hash.finish().as_ref());
    digest
}
