//! Which sessions an operator means.
//!
//! Invariant: a filter is about one issuer, and matches no session of another one.

use std::net::IpAddr;

use ipnet::IpNet;

use super::index::{self, IndexKey};
use super::{Device, Handle, Name, Session};

/// Which sessions an operator means.
#[derive(Clone, Debug)]
pub(crate) struct SessionFilter {
    /// Issuer identifier of the provider.
    pub(crate) issuer: String,
    /// Which sessions of that issuer.
    pub(crate) by: FilterBy,
    /// Those that began at this time or later, in milliseconds since the Unix epoch.
    pub(crate) created_after_ms: u64,
    /// Those that began before this time, in milliseconds since the Unix epoch.
    pub(crate) created_before_ms: u64,
}

/// Which sessions of an issuer.
#[derive(Clone, Debug)]
pub(crate) enum FilterBy {
    /// The one of this handle.
    Handle(Handle),
    /// Those of this user.
    Subject(String),
    /// Those of this session of the provider.
    ProviderSid(String),
    /// Those with this verified email address, in normalized form.
    Email(String),
    /// Those that began at, or were last used from, an address of this network.
    Address(IpNet),
    /// Those whose user has this name, in lower case.
    Name(String),
    /// All.
    Everyone,
}

/// The claims that hold the name of a user (OpenID Connect Core, section 5.1).
const NAME_CLAIMS: [&str; 2] = ["name", "preferred_username"];

impl FilterBy {
    /// The network of a text: an address, or CIDR notation. `None` for another text.
    pub(crate) fn network(text: &str) -> Option<IpNet> {
        let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
        text.parse().ok().or_else(address)
    }

    /// Normalizes a name for comparison.
    pub(crate) fn comparable_name(text: &str) -> String {
        text.trim().to_lowercase()
    }
}

impl SessionFilter {
    /// The list that contains the sessions; `None` for a handle.
    pub(crate) fn index_key(&self) -> Option<IndexKey<'_>> {
        let issuer = &self.issuer;
        match &self.by {
            FilterBy::Handle(_) => None,
            FilterBy::Subject(subject) => Some(IndexKey::Person(issuer, subject)),
            FilterBy::ProviderSid(sid) => Some(IndexKey::ProviderSession(issuer, sid)),
            FilterBy::Email(email) => Some(IndexKey::Email(issuer, email)),
            FilterBy::Address(_) | FilterBy::Name(_) | FilterBy::Everyone => Some(IndexKey::Provider(issuer)),
        }
    }

    /// Whether a session that began at this time matches.
    pub(crate) fn has_time(&self, created_at_ms: u64) -> bool {
        (self.created_after_ms..self.created_before_ms).contains(&created_at_ms)
    }

    /// Whether a session matches, given that its list contains it.
    pub(crate) fn is_met_by(&self, session: &Session) -> bool {
        session.issuer == self.issuer
            && self.has_time(session.created_at_ms)
            && match &self.by {
                FilterBy::Address(network) => {
                    let is_from = |device: &Device| {
                        let address = device.address.parse::<IpAddr>();
                        address.is_ok_and(|address| network.contains(&address))
                    };
                    is_from(&session.last_seen_on) || is_from(&session.created_on)
                }
                FilterBy::Name(name) => NAME_CLAIMS.iter().any(|claim| {
                    let text = session.user.text_of(claim);
                    text.is_some_and(|text| FilterBy::comparable_name(&text) == *name)
                }),
                _ => true,
            }
    }

    /// The kind and value of the filter.
    pub(crate) fn description(&self) -> (&'static str, String) {
        match &self.by {
            FilterBy::Handle(handle) => ("handle", handle.to_string()),
            FilterBy::Subject(subject) => ("subject", subject.clone()),
            FilterBy::ProviderSid(sid) => ("provider_sid", sid.clone()),
            FilterBy::Email(email) => ("email", email.clone()),
            FilterBy::Address(network) => ("address", network.to_string()),
            FilterBy::Name(name) => ("name", name.clone()),
            FilterBy::Everyone => ("everyone", String::new()),
        }
    }

    /// A name of the filter, to bind its page tokens to it.
    pub(crate) fn name(&self) -> Name {
        let (kind, value) = self.description();
        index::hashed(&[
            b"search",
            self.issuer.as_bytes(),
            kind.as_bytes(),
            value.as_bytes(),
            &self.created_after_ms.to_be_bytes(),
            &self.created_before_ms.to_be_bytes(),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_or_cidr_and_nothing_else() {
        for (text, contained, outside) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("2001:db8::/32", "2001:db8:1::7", "2001:db9::"),
            ("2001:db8::7", "2001:db8::7", "192.0.2.7"),
        ] {
            let network = FilterBy::network(text).unwrap();
            assert!(network.contains(&contained.parse::<IpAddr>().unwrap()), "{text}");
            assert!(!network.contains(&outside.parse::<IpAddr>().unwrap()), "{text}");
        }
        for text in ["", "192.0.2", "192.0.2.0/33", "host", "192.0.2.0/24 "] {
            assert_eq!(FilterBy::network(text), None, "{text}");
        }
    }
}
