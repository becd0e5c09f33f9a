//! The rule `[operator]`: who may find and end the sessions of all people, and at which providers.
//!
//! Invariant: every rule names people. Without a rule there is no service for operators.

use super::requirements::Requirements;
use crate::providers::IdentityProviders;

/// The rule for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorRule {
    /// The properties of an operator, which a new sign-in does not change: claims, lists, organization, provider.
    pub(crate) right: Requirements,
    /// The requirements that a new sign-in can meet: age, class, device.
    pub(crate) sign_in: Requirements,
    /// The providers whose sessions an operator may see.
    pub(crate) providers: OperatedProviders,
    /// The claims that an operator sees besides `sub`.
    pub(crate) claims: Vec<String>,
}

/// The providers whose sessions an operator may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OperatedProviders {
    /// Only the issuer of the operator's own session.
    Own,
    /// All configured providers.
    All,
    /// The providers with these ids, with all their tenants.
    Listed(Vec<String>),
}

impl OperatedProviders {
    /// Whether an operator with a session of the issuer `own` may see the sessions of `issuer`.
    #[must_use]
    pub(crate) fn include(&self, own: &str, issuer: &str, all: &IdentityProviders) -> bool {
        match self {
            Self::Own => issuer == own,
            Self::All => all.by_issuer(issuer).is_some(),
            Self::Listed(ids) => all.by_issuer(issuer).is_some_and(|found| ids.contains(&found.id)),
        }
    }

    /// The issuers that an operator may see, the own first. Issuers of other tenants are left out: no setting names
    /// them.
    pub(crate) fn issuers<'a>(&self, own: &'a str, all: &'a IdentityProviders) -> Vec<&'a str> {
        let mut configured: Vec<&str> = all.all.iter().map(|provider| provider.issuer()).collect();
        configured.retain(|issuer| *issuer != own);
        let listed = std::iter::once(own).chain(configured);
        listed.filter(|issuer| self.include(own, issuer, all)).collect()
    }
}
