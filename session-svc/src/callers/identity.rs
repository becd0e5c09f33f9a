//! Identifies a caller by its certificate.
//!
//! Rules, in this order
//! 1. One URI that is a SPIFFE ID is the identity (SPIFFE X.509-SVID, section 2). A certificate with a SPIFFE
//!    ID and another URI is no SVID and has no identity. DNS names next to a SPIFFE ID do not count.
//! 2. Otherwise each DNS name without wildcards is an identity, in lower case. The rights of all names add up.
//! 3. The common name, addresses and other URIs never count.

use chassis::tls::PeerCertificate;

/// The prefix of a SPIFFE ID.
const SPIFFE: &str = "spiffe://";

/// The prefix of a DNS name in a list with SPIFFE IDs.
const DNS: &str = "dns:";

/// The most bytes of a SPIFFE ID (SPIFFE-ID, section 2.3).
const MAX_SPIFFE_BYTES: usize = 2_048;

/// The most bytes of a trust domain (SPIFFE-ID, section 2.1) and of a DNS name (RFC 1035, section 3.1).
const MAX_NAME_BYTES: usize = 255;

/// The most bytes of a label of a DNS name (RFC 1035, section 3.1).
const MAX_LABEL_BYTES: usize = 63;

/// The error for a text that has neither of the two forms.
const NO_FORM: &str = "has to be \"spiffe://TRUST-DOMAIN/PATH\" or \"dns:NAME\"";

/// The error for wildcards and patterns.
const WILDCARD: &str = "has to be one whole name: there are no wildcards";

/// The error for an invalid SPIFFE ID.
const NO_SPIFFE_ID: &str = "is no SPIFFE ID: the trust domain takes a-z, 0-9, \".\", \"-\", \"_\", and the path whole segments of letters, digits, \".\", \"-\", \"_\"";

/// The error for an invalid DNS name.
const NO_DNS_NAME: &str =
    "is no DNS name: labels of a-z, 0-9, \"-\", \"_\" in lower case, without a dot at the end";

/// Checks a name in the list of callers.
///
/// # Errors
/// The error in the name.
pub(super) fn check_name(text: &str) -> Result<(), &'static str> {
    let (legal, otherwise) = if let Some(rest) = text.strip_prefix(SPIFFE) {
        (is_spiffe(rest) && text.len() <= MAX_SPIFFE_BYTES, NO_SPIFFE_ID)
    } else if let Some(name) = text.strip_prefix(DNS) {
        (is_dns_name(name), NO_DNS_NAME)
    } else {
        (false, NO_FORM)
    };
    match legal {
        true => Ok(()),
        false if text.contains('*') => Err(WILDCARD),
        false => Err(otherwise),
    }
}

/// A caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    names: Vec<String>,
}

impl Caller {
    /// The caller of a connection without a client certificate: it has no name.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// The caller that a verified certificate names; it may have no name.
    #[must_use]
    pub(crate) fn of(certificate: &PeerCertificate) -> Self {
        Self {
            names: names(&certificate.uris, &certificate.dns_names),
        }
    }

    /// Every name of the caller.
    #[must_use]
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The first name, for the log.
    #[must_use]
    pub(crate) fn log_name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}

fn names(uris: &[String], dns_names: &[String]) -> Vec<String> {
    let is_svid = |uri: &String| {
        uri.get(..SPIFFE.len())
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(SPIFFE))
    };
    let is_name = |name: &String| check_name(name).is_ok();
    if uris.iter().any(is_svid) {
        let only = if uris.len() == 1 { uris } else { &[] };
        return only.iter().filter(|uri| is_name(uri)).cloned().collect();
    }
    let named = dns_names
        .iter()
        .map(|name| format!("{DNS}{}", name.to_ascii_lowercase()));
    named.filter(is_name).collect()
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
        names(&owned(uris), &owned(dns_names))
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
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("orders.internal", NO_FORM),
            ("", NO_FORM),
            ("CN=orders", NO_FORM),
            ("spiffe://prod", NO_SPIFFE_ID),
            ("spiffe://prod/", NO_SPIFFE_ID),
            ("spiffe:///ns", NO_SPIFFE_ID),
            ("spiffe://Prod/ns", NO_SPIFFE_ID),
            ("spiffe://prod:443/ns", NO_SPIFFE_ID),
            ("spiffe://me@prod/ns", NO_SPIFFE_ID),
            ("spiffe://prod/ns/../sa", NO_SPIFFE_ID),
            ("spiffe://prod/ns//sa", NO_SPIFFE_ID),
            ("spiffe://prod/ns?x=1", NO_SPIFFE_ID),
            ("spiffe://prod/%61", NO_SPIFFE_ID),
            ("spiffe://prod/ns/*", WILDCARD),
            ("dns:*.internal", WILDCARD),
            ("dns:Orders.internal", NO_DNS_NAME),
            ("dns:orders.internal.", NO_DNS_NAME),
            ("dns:", NO_DNS_NAME),
            ("dns:orders internal", NO_DNS_NAME),
        ] {
            assert_eq!(check_name(bad), Err(why), "{bad}");
        }
    }
}
