//! The accepted signature algorithms of the provider's tokens.
//!
//! Invariants: `none` is never accepted. Shared-secret algorithms must be named in the settings. Otherwise an
//! attacker could sign with the provider's public key as the secret (RFC 8725 section 3.1).

use crate::SigningAlgorithm;

/// The algorithm if the metadata list none (OpenID Connect Discovery 3 requires RS256).
const UNTOLD: SigningAlgorithm = SigningAlgorithm::Rs256;

impl SigningAlgorithm {
    /// All public-key algorithms.
    pub const PUBLIC_KEY: [Self; 10] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::Es512,
        Self::EdDsa,
    ];

    /// All algorithms that use the client secret.
    pub const SHARED_SECRET: [Self; 3] = [Self::Hs256, Self::Hs384, Self::Hs512];
}

/// The algorithms that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedAlgorithms {
    /// Public-key algorithms that the provider's metadata list.
    Auto,
    /// Exactly these, regardless of the metadata.
    Named(Vec<SigningAlgorithm>),
}

impl AcceptedAlgorithms {
    /// Whether the algorithm can be accepted at all, before the metadata are known.
    pub(crate) fn may_accept(&self, algorithm: SigningAlgorithm) -> bool {
        match self {
            Self::Auto => SigningAlgorithm::PUBLIC_KEY.contains(&algorithm),
            Self::Named(named) => named.contains(&algorithm),
        }
    }

    /// The accepted algorithms among those in the metadata; an empty list means that they list none.
    pub fn shared_with(&self, listed: &[impl AsRef<str>]) -> Vec<SigningAlgorithm> {
        match self {
            Self::Named(named) => named.clone(),
            Self::Auto if listed.is_empty() => vec![UNTOLD],
            Self::Auto => {
                let known = listed.iter().filter_map(|name| name.as_ref().parse().ok());
                known.filter(|algorithm| self.may_accept(*algorithm)).collect()
            }
        }
    }

    /// The minimum bytes of the client secret for these algorithms; 0 if none uses it.
    pub(crate) fn least_secret_bytes(&self) -> usize {
        match self {
            Self::Auto => 0,
            Self::Named(named) => {
                let least = named.iter().map(|algorithm| algorithm.least_secret_bytes());
                least.max().unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn auto_is_what_the_metadata_lists_and_a_public_key_verifies() {
        use SigningAlgorithm::{EdDsa, Es512, Rs256};
        let auto = AcceptedAlgorithms::Auto;
        for (names, accepted) in [
            (&["RS256", "ES512", "EdDSA"][..], vec![Rs256, Es512, EdDsa]),
            (&["none", "HS256", "HS512", "ES256K"], vec![]),
            (&["rs256", "RS256"], vec![Rs256]),
            (&[], vec![Rs256]),
        ] {
            assert_eq!(auto.shared_with(&listed(names)), accepted, "{names:?}");
        }
        for algorithm in SigningAlgorithm::SHARED_SECRET {
            assert!(!auto.may_accept(algorithm), "{algorithm}");
        }
    }

    #[test]
    fn what_is_named_is_accepted_whatever_the_metadata_lists() {
        let named = AcceptedAlgorithms::Named(vec![SigningAlgorithm::Hs384]);
        assert_eq!(named.shared_with(&listed(&["RS256"])), [SigningAlgorithm::Hs384]);
        assert!(!named.may_accept(SigningAlgorithm::Rs256));
        assert_eq!(named.least_secret_bytes(), 48);
    }
}
