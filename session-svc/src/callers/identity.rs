//! Who a caller is, by its certificate.
//!
//! Rules, in this order
//! 1. One URI that is a SPIFFE ID is the identity (SPIFFE X.509-SVID, section 2). A certificate with a SPIFFE ID and any
//!    other URI beside it is no SVID and has no identity. DNS names beside a SPIFFE ID do not count.
//! 2. Otherwise each DNS name is an identity, in lower case, without wildcards: the caller may do what any of its names may.
//! 3. The common name, addresses and other URIs never count.

use std::fmt;

use chassis::tls::PeerCertificate;

/// What a SPIFFE ID begins with.
const SPIFFE: &str = "spiffe://";

/// What a DNS name begins with where it stands beside SPIFFE IDs.
const DNS: &str = "dns:";

/// Most bytes of a SPIFFE ID (SPIFFE-ID, section 2.3).
const MAX_SPIFFE_BYTES: usize = 2_048;

/// Most bytes of a trust domain (SPIFFE-ID, section 2.1) and of a DNS name (RFC 1035, section 3.1).
const MAX_NAME_BYTES: usize = 255;

/// Most bytes of a label of a DNS name (RFC 1035, section 3.1).
const MAX_LABEL_BYTES: usize = 63;

/// One name of a caller; shown as it stands in the list of callers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallerIdentity(String);

/// Why a text names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAnIdentity {
    /// Neither of the two forms.
    #[error("has to be \"spiffe://TRUST-DOMAIN/PATH\" or \"dns:NAME\"")]
    Form,
    /// Wildcards and patterns.
    #[error("has to be one whole name: there are no wildcards")]
    Wildcard,
    /// A SPIFFE ID that breaks the rules for them.
    #[error(
        "is no SPIFFE ID: the trust domain takes a-z, 0-9, \".\", \"-\", \"_\", and the path whole segments of letters, digits, \".\", \"-\", \"_\""
    )]
    Spiffe,
    /// A DNS name that breaks the rules for them.
    #[error("is no DNS name: labels of a-z, 0-9, \"-\", \"_\" in lower case, without a dot at the end")]
    Dns,
}

impl CallerIdentity {
    /// Reads a name as it stands in the list of callers.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, NotAnIdentity> {
        let (legal, otherwise) = if let Some(rest) = text.strip_prefix(SPIFFE) {
            (
                is_spiffe(rest) && text.len() <= MAX_SPIFFE_BYTES,
                NotAnIdentity::Spiffe,
            )
        } else if let Some(name) = text.strip_prefix(DNS) {
            (is_dns_name(name), NotAnIdentity::Dns)
        } else {
            (false, NotAnIdentity::Form)
        };
        match legal {
            true => Ok(Self(text.to_owned())),
            false if text.contains('*') => Err(NotAnIdentity::Wildcard),
            false => Err(otherwise),
        }
    }

    /// As it stands in the list of callers.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    names: Vec<CallerIdentity>,
}

impl Caller {
    /// Whom a connection without a client certificate brings: nobody in particular.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Whom a verified certificate names; nobody in particular if it names nobody.
    #[must_use]
    pub(crate) fn of(certificate: &PeerCertificate) -> Self {
        Self {
            names: names(certificate.uris(), certificate.dns_names()),
        }
    }

    /// Every name of the caller.
    #[must_use]
    pub(crate) fn names(&self) -> &[CallerIdentity] {
        &self.names
    }

    /// The first name, for the log.
    #[must_use]
    pub(crate) fn shown(&self) -> Option<&str> {
        self.names.first().map(CallerIdentity::as_str)
    }
}

fn names(uris: &[String], dns_names: &[String]) -> Vec<CallerIdentity> {
    let is_svid = |uri: &String| {
        uri.get(..SPIFFE.len())
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(SPIFFE))
    };
    if uris.iter().any(is_svid) {
        return match uris {
            [only] => CallerIdentity::parse(only).into_iter().collect(),
            _ => Vec::new(),
        };
    }
    let named = |name: &String| CallerIdentity::parse(&format!("{DNS}{}", name.to_ascii_lowercase())).ok();
    dns_names.iter().filter_map(named).collect()
}

fn is_spiffe(rest: &str) -> bool {
    let Some((domain, path)) = rest.split_once('/') else {
        return false;
    };
    let in_domain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    let in_path = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_segment =
        |segment: &str| !segment.is_empty() && !matches!(segment, "." | "..") && segment.bytes().all(in_path);
    (1..=MAX_NAME_BYTES).contains(&domain.len())
        && domain.bytes().all(in_domain)
        && path.split('/').all(is_segment)
}

fn is_dns_name(name: &str) -> bool {
    let in_label = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    let is_label = |label: &str| (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.bytes().all(in_label);
    name.len() <= MAX_NAME_BYTES && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uris: &[&str], dns_names: &[&str]) -> Vec<String> {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let names = names(&owned(uris), &owned(dns_names));
        names.iter().map(CallerIdentity::to_string).collect()
    }

    #[test]
    fn a_spiffe_id_comes_before_dns_names_and_stands_alone() {
        let edge = "spiffe://prod/ns/auth/sa/auth-edge";
        assert_eq!(of(&[edge], &["edge.internal"]), [edge]);
        assert!(of(&[edge, "spiffe://prod/ns/auth/sa/other"], &[]).is_empty());
        assert!(of(&[edge, "https://edge.example"], &["edge.internal"]).is_empty());
        assert!(
            of(&["SPIFFE://prod/ns/auth"], &["edge.internal"]).is_empty(),
            "a malformed SPIFFE ID does not fall back to DNS names"
        );
    }

    #[test]
    fn dns_names_count_one_by_one_in_lower_case_and_without_wildcards() {
        assert_eq!(
            of(
                &["https://edge.example"],
                &["Edge.internal", "*.internal", "edge"]
            ),
            ["dns:edge.internal", "dns:edge"]
        );
        assert!(of(&[], &[]).is_empty());
    }

    #[test]
    fn a_name_of_the_list_is_one_whole_name() {
        for good in [
            "spiffe://prod.example/ns/auth/sa/auth-edge",
            "spiffe://prod/A_b.c",
            "dns:orders.internal",
            "dns:orders",
        ] {
            assert_eq!(CallerIdentity::parse(good).unwrap().as_str(), good);
        }
        for (bad, why) in [
            ("orders.internal", NotAnIdentity::Form),
            ("", NotAnIdentity::Form),
            ("CN=orders", NotAnIdentity::Form),
            ("spiffe://prod", NotAnIdentity::Spiffe),
            ("spiffe://prod/", NotAnIdentity::Spiffe),
            ("spiffe:///ns", NotAnIdentity::Spiffe),
            ("spiffe://Prod/ns", NotAnIdentity::Spiffe),
            ("spiffe://prod:443/ns", NotAnIdentity::Spiffe),
            ("spiffe://me@prod/ns", NotAnIdentity::Spiffe),
            ("spiffe://prod/ns/../sa", NotAnIdentity::Spiffe),
            ("spiffe://prod/ns//sa", NotAnIdentity::Spiffe),
            ("spiffe://prod/ns?x=1", NotAnIdentity::Spiffe),
            ("spiffe://prod/%61", NotAnIdentity::Spiffe),
            ("spiffe://prod/ns/*", NotAnIdentity::Wildcard),
            ("dns:*.internal", NotAnIdentity::Wildcard),
            ("dns:Orders.internal", NotAnIdentity::Dns),
            ("dns:orders.internal.", NotAnIdentity::Dns),
            ("dns:", NotAnIdentity::Dns),
            ("dns:orders internal", NotAnIdentity::Dns),
        ] {
            assert_eq!(CallerIdentity::parse(bad), Err(why), "{bad}");
        }
    }
}
