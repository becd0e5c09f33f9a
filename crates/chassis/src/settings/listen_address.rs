//! The address of a listener: an IP address and a port.
//!
//! Both families may have brackets, so manifests can insert an address of either family: `[$(POD_IP)]:9300`.
//! IPv6 needs them to separate address and port (RFC 3986, section 3.2.2).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The expected form of an address, for messages.
pub(super) const EXPECTED: &str =
    "an IP address, of IPv6 in brackets, and a port such as 127.0.0.1:3000 or [::]:3000";

/// Parses an address; `localhost` is 127.0.0.1.
pub(super) fn parse(text: &str) -> Option<SocketAddr> {
    if let Some(port) = text.strip_prefix("localhost:") {
        return Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into());
    }
    // This also parses the scope of a link-local address.
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (ip, port) = text.strip_prefix('[')?.split_once("]:")?;
    Some((ip.parse::<IpAddr>().ok()?, port.parse().ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_family_may_stand_in_brackets() {
        for (text, address) in [
            ("127.0.0.1:3000", "127.0.0.1:3000"),
            ("[10.0.0.7]:9300", "10.0.0.7:9300"),
            ("[fd00::5]:9300", "[fd00::5]:9300"),
            ("[::]:3000", "[::]:3000"),
            ("[fe80::1%2]:80", "[fe80::1%2]:80"),
            ("localhost:80", "127.0.0.1:80"),
        ] {
            assert_eq!(
                parse(text).map(|address| address.to_string()).as_deref(),
                Some(address),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            ":80",
            "10.0.0.7",
            "[10.0.0.7]",
            "[fd00::5]",
            "[]:80",
            "[fd00::5]:",
            "[fd00::5]:70000",
            "[host]:80",
            "localhost:",
            "[[::]]:80",
            "fd00::5:9300",
            ":::3000",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
