//! Where a program listens: an IP address and a port.
//!
//! An address of either family may stand in brackets, so that manifests that are told an address at run time write it in one way:
//! `[$(POD_IP)]:9300`. One of IPv6 has to: without brackets nobody can tell where it ends and the port begins (RFC 3986, section 3.2.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What an address looks like, for a message.
const EXPECTED: &str = "an IP address and a port such as 127.0.0.1:3000 or [::]:3000";

/// The address a text names; `localhost` is 127.0.0.1.
///
/// # Errors
/// What it must be.
pub(super) fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text.strip_prefix("localhost:") {
        return match port.parse() {
            Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
            Err(_) => Err(EXPECTED.to_owned()),
        };
    }
    // With the scope of a link-local address too.
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Some((ip, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        return match (ip.parse::<IpAddr>(), port.parse::<u16>()) {
            (Ok(ip), Ok(port)) => Ok((ip, port).into()),
            _ => Err(EXPECTED.to_owned()),
        };
    }
    match text
        .rsplit_once(':')
        .map(|(ip, port)| (ip.parse::<Ipv6Addr>(), port))
    {
        Some((Ok(ip), port)) => Err(format!("an IPv6 address in brackets, and a port: [{ip}]:{port}")),
        _ if text.parse::<Ipv6Addr>().is_ok() => {
            Err(format!("an IPv6 address in brackets, and a port: [{text}]:3000"))
        }
        _ => Err(EXPECTED.to_owned()),
    }
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
                Ok(address),
                "{text}"
            );
        }
    }

    #[test]
    fn an_ipv6_address_without_brackets_is_shown_with_them() {
        let told = |text| parse(text).unwrap_err();
        assert!(
            told("fd00::5:9300").ends_with("[fd00::5]:9300"),
            "{}",
            told("fd00::5:9300")
        );
        assert!(told(":::3000").ends_with("[::]:3000"), "{}", told(":::3000"));
        assert!(
            told("fd00::abcd").ends_with("[fd00::abcd]:3000"),
            "{}",
            told("fd00::abcd")
        );
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
        ] {
            assert_eq!(parse(text), Err(EXPECTED.to_owned()), "{text}");
        }
    }
}
