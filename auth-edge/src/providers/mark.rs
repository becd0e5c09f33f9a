//! A short name of an issuer, for what a browser keeps of a sign-in.

use ring::digest;

/// Bytes of an issuer's mark: 128 bits, so that none is found that has another's.
pub(crate) const MARK_BYTES: usize = 16;

/// Which issuer a sign-in was begun at: the beginning of its identifier's SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IssuerMark(pub(crate) [u8; MARK_BYTES]);

impl IssuerMark {
    /// The mark of an issuer identifier, byte for byte as configured.
    #[must_use]
    pub(crate) fn of(issuer: &str) -> Self {
        let hash = digest::digest(&digest::SHA256, issuer.as_bytes());
        let mut mark = [0; MARK_BYTES];
        mark.iter_mut()
            .zip(hash.as_ref())
            .for_each(|(to, from)| *to = *from);
        Self(mark)
    }
}
