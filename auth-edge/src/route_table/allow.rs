//! `[allow]`: the users and networks that may pass.
//!
//! Invariants
//! - A user has to match every kind that the list names: an address or domain, a group, a network. No match in
//!   `not` may remain. A missing claim matches nothing.
//! - An address counts only if the provider verified it, unless the list says otherwise. Only ASCII letter case is
//!   ignored: a tag (`+x`), a look-alike letter or a subdomain makes another address.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde_json::{Map, Value};
use url::Host;

use crate::values::claim_path::ClaimPath;

/// The users and networks that may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowList {
    /// All kinds that are not empty have to match.
    pub(crate) only: Members,
    /// None may match.
    pub(crate) not: Members,
    /// The claim with the groups.
    pub(crate) groups_claim: ClaimPath,
    /// Whether addresses count without `email_verified`.
    pub(crate) accepts_unverified: bool,
    /// The file with further addresses.
    pub(crate) file: Option<PathBuf>,
}

/// Users and networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// Whole addresses.
    pub(crate) emails: BTreeSet<EmailAddress>,
    /// Domains of addresses.
    pub(crate) domains: Vec<DomainPattern>,
    /// Groups.
    pub(crate) groups: Vec<String>,
    /// Networks of clients.
    pub(crate) networks: Vec<IpNet>,
}

impl AllowList {
    /// The list of these users, whose addresses need no verification.
    #[must_use]
    pub(crate) fn of(only: Members) -> Self {
        Self {
            only,
            not: Members::default(),
            groups_claim: ClaimPath::of_names(vec!["groups".to_owned()]),
            accepts_unverified: true,
            file: None,
        }
    }

    /// Whether a client's network may pass.
    #[must_use]
    pub(crate) fn admits_network(&self, client: IpAddr) -> bool {
        let has = |members: &Members| members.networks.iter().any(|network| network.contains(&client));
        (self.only.networks.is_empty() || has(&self.only)) && !has(&self.not)
    }

    /// Whether it admits only people whom it names, by address or group.
    #[must_use]
    pub(crate) fn names_people(&self) -> bool {
        self.names_emails() || !self.only.groups.is_empty()
    }

    /// The claim that keeps a user out; `None` if the user may pass.
    #[must_use]
    pub(crate) fn unmet_claim(&self, claims: &Map<String, Value>) -> Option<String> {
        if !self.admits_email(claims) {
            return Some("email".to_owned());
        }
        if !self.admits_groups(claims) {
            return Some(self.groups_claim.to_string());
        }
        None
    }

    /// A file names addresses even while it is empty: then no user passes.
    fn names_emails(&self) -> bool {
        self.only.names_emails() || self.file.is_some()
    }

    fn admits_email(&self, claims: &Map<String, Value>) -> bool {
        let text = claims.get("email").and_then(Value::as_str);
        let address = text.and_then(EmailAddress::parse);
        // An address that cannot be read could be one of those.
        let is_excluded = address
            .as_ref()
            .map_or(text.is_some(), |address| self.not.has_email(address));
        if self.not.names_emails() && is_excluded {
            return false;
        }
        // Some providers send the text "true".
        let verified = claims.get("email_verified");
        let is_verified = verified.is_some_and(|value| *value == Value::Bool(true) || *value == "true");
        !self.names_emails()
            || (is_verified || self.accepts_unverified)
                && address.is_some_and(|address| self.only.has_email(&address))
    }

    fn admits_groups(&self, claims: &Map<String, Value>) -> bool {
        let found = self.groups_claim.find(claims);
        let groups: Vec<&str> = match found {
            Some(Value::Array(members)) => members.iter().filter_map(Value::as_str).collect(),
            Some(value) => value.as_str().into_iter().collect(),
            None => Vec::new(),
        };
        let has = |members: &Members| {
            members
                .groups
                .iter()
                .any(|group| groups.contains(&group.as_str()))
        };
        (self.only.groups.is_empty() || has(&self.only)) && !has(&self.not)
    }
}

impl Members {
    /// Whether it names no user and no network.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        !self.names_emails() && self.groups.is_empty() && self.networks.is_empty()
    }

    fn names_emails(&self) -> bool {
        !self.emails.is_empty() || !self.domains.is_empty()
    }

    fn has_email(&self, address: &EmailAddress) -> bool {
        self.emails.contains(address) || self.domains.iter().any(|domain| domain.matches(&address.domain))
    }
}

/// An e-mail address with ASCII letters in lower case and the domain in its ASCII form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EmailAddress {
    local: String,
    domain: String,
}

impl EmailAddress {
    /// Reads an address; `None` unless it has exactly one `@` and a plain domain.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (local, domain) = text.split_once('@')?;
        let is_plain = !local.is_empty() && !text.contains(|c: char| c.is_control() || c.is_whitespace());
        is_plain.then_some(())?;
        Some(Self {
            local: local.to_ascii_lowercase(),
            domain: ascii_domain(domain)?,
        })
    }
}

/// A domain, or with `*.` the domains below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DomainPattern {
    domain: String,
    is_of_subdomains: bool,
}

impl DomainPattern {
    /// Reads a pattern.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let below = text.strip_prefix("*.");
        Some(Self {
            domain: ascii_domain(below.unwrap_or(text))?,
            is_of_subdomains: below.is_some(),
        })
    }

    fn matches(&self, domain: &str) -> bool {
        if !self.is_of_subdomains {
            return domain == self.domain;
        }
        let labels = domain.strip_suffix(&self.domain);
        labels.is_some_and(|labels| labels.len() > 1 && labels.ends_with('.'))
    }
}

/// A domain in its ASCII form (RFC 5891). `None` for an address literal, and for letters that this form replaces
/// by ASCII letters: they only look like another domain.
fn ascii_domain(text: &str) -> Option<String> {
    let Ok(Host::Domain(domain)) = Host::parse(text) else {
        return None;
    };
    let is_same = text.is_ascii() || domain.split('.').any(|label| label.starts_with("xn--"));
    (is_same && !text.contains('@') && !text.ends_with('.') && !text.contains('%')).then_some(domain)
}

#[cfg(test)]
#[path = "allow_tests.rs"]
mod tests;
