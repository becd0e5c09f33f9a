//! Requests to the provider through a forward proxy, and which hosts are reached without it.
//!
//! Invariants: loopback is never looked for behind a proxy, which has a loopback of its own; plain http, which only loopback
//! may speak, therefore never goes through one; the proxy's credentials are in no `Debug` output, error or log line.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::{Host, Url};

use crate::settings::endpoint::is_loopback;

/// A proxy that opens tunnels (RFC 9110, section 9.3.6), and the hosts that need none.
#[derive(Clone)]
pub struct ForwardProxy {
    url: Url,
    direct: Vec<Direct>,
}

/// The text is no address of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be the URL of a proxy such as http://proxy.example:3128, with http or https and without a path"
)]
pub struct NoProxyUrl;

impl ForwardProxy {
    /// Takes a proxy's URL, with user and password if it wants some; `http://` may be left out.
    ///
    /// # Errors
    /// When it is no URL of that kind.
    pub fn new(url: &str, direct: Vec<Direct>) -> Result<Self, NoProxyUrl> {
        let url = if url.contains("://") {
            Url::parse(url)
        } else {
            Url::parse(&format!("http://{url}"))
        };
        let url = url.map_err(|_| NoProxyUrl)?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if !bare || !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(NoProxyUrl);
        }
        Ok(Self { url, direct })
    }

    /// The same hosts reached without it, the proxy elsewhere or with another password.
    ///
    /// # Errors
    /// As for [`ForwardProxy::new`].
    pub fn moved(&self, url: &str) -> Result<Self, NoProxyUrl> {
        Self::new(url, self.direct.clone())
    }

    /// Host and port of the proxy a URL is reached through; `None` for a direct connection. Shows no credentials.
    #[must_use]
    pub fn authority_for(&self, url: &Url) -> Option<String> {
        let proxy = self.for_url(url)?;
        let port = proxy.port_or_known_default().unwrap_or_default();
        Some(format!("{}:{port}", proxy.host_str().unwrap_or_default()))
    }

    /// The proxy to reach this URL through; `None` for a direct connection.
    pub(crate) fn for_url(&self, url: &Url) -> Option<Url> {
        let is_direct =
            url.scheme() != "https" || is_loopback(url) || self.direct.iter().any(|direct| direct.holds(url));
        (!is_direct).then(|| self.url.clone())
    }
}

impl fmt::Debug for ForwardProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardProxy")
            .field("host", &self.url.host_str())
            .field("direct", &self.direct)
            .finish_non_exhaustive()
    }
}

/// A member of `NO_PROXY`: hosts that are reached without the proxy.
///
/// `*` is every host, `example.com` the host and all below it, `.example.com` and `*.example.com` those below it alone,
/// `10.1.2.3` and `10.0.0.0/8` addresses that a URL names as such. A port may follow a name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direct {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    Network(IpNet),
    Domain { name: String, itself: bool },
}

/// The text names no host, domain or network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is neither a host, a domain, an address nor a network such as 10.0.0.0/8")]
pub struct NoHosts;

impl FromStr for Direct {
    type Err = NoHosts;

    fn from_str(text: &str) -> Result<Self, NoHosts> {
        if let Some(network) = parse_network(text) {
            let hosts = Hosts::Network(network);
            return Ok(Self { hosts, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| NoHosts)?)),
            None => (text, None),
        };
        let hosts = if host == "*" {
            Hosts::All
        } else if let Some(network) = parse_network(host.trim_matches(['[', ']'])) {
            Hosts::Network(network)
        } else {
            domain(host)?
        };
        Ok(Self { hosts, port })
    }
}

/// How many bits of an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2) stand before the IPv4 address.
const MAPPED_PREFIX_BITS: u8 = 96;

/// Reads a network, or a single address. IPv4 written as IPv6 (`::ffff:10.0.0.0/104`) becomes the IPv4 network it means, since
/// addresses are compared in that form.
#[must_use]
pub fn parse_network(text: &str) -> Option<IpNet> {
    let address = text.parse::<IpAddr>().map(IpNet::from).ok();
    let network: IpNet = address.or_else(|| text.parse().ok())?;
    let mapped = match network.addr() {
        IpAddr::V6(address) => address.to_ipv4_mapped(),
        IpAddr::V4(_) => None,
    };
    match (mapped, network.prefix_len().checked_sub(MAPPED_PREFIX_BITS)) {
        (Some(address), Some(bits)) => IpNet::new(address.into(), bits).ok(),
        _ => Some(network),
    }
}

fn domain(text: &str) -> Result<Hosts, NoHosts> {
    let below = text.strip_prefix("*.").or_else(|| text.strip_prefix('.'));
    let name = below.unwrap_or(text).trim_end_matches('.').to_ascii_lowercase();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(legal) {
        return Err(NoHosts);
    }
    Ok(Hosts::Domain {
        name,
        itself: below.is_none(),
    })
}

impl Direct {
    fn holds(&self, url: &Url) -> bool {
        if self.port.is_some() && self.port != url.port_or_known_default() {
            return false;
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        match (&self.hosts, address) {
            (Hosts::All, _) => true,
            (Hosts::Network(network), Some(address)) => network.contains(&address),
            (Hosts::Domain { name, itself }, None) => {
                let host = url.host_str().unwrap_or_default().trim_end_matches('.');
                match host.strip_suffix(name.as_str()) {
                    Some("") => *itself,
                    Some(below) => below.ends_with('.'),
                    None => false,
                }
            }
            (Hosts::Network(_), None) | (Hosts::Domain { .. }, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn straight(direct: &str, url: &str) -> bool {
        let direct = direct.split(',').map(|member| member.parse().unwrap());
        let proxy = ForwardProxy::new("proxy.example:3128", direct.collect()).unwrap();
        proxy.for_url(&Url::parse(url).unwrap()).is_none()
    }

    #[test]
    fn the_members_of_no_proxy_hold_what_operators_expect() {
        for (direct, url, expected) in [
            ("*", "https://op.example/", true),
            ("op.example", "https://op.example/", true),
            ("op.example", "https://login.op.example:8443/", true),
            ("op.example", "https://shop.example/", false),
            ("OP.example.", "https://op.example./", true),
            (".op.example", "https://op.example/", false),
            (".op.example", "https://login.op.example/", true),
            ("*.op.example", "https://login.op.example/", true),
            ("op.example:8443", "https://op.example:8443/", true),
            ("op.example:8443", "https://op.example/", false),
            ("op.example:443", "https://op.example/", true),
            ("10.0.0.0/8", "https://10.1.2.3/", true),
            ("10.0.0.0/8", "https://11.1.2.3/", false),
            ("10.1.2.3", "https://10.1.2.3/", true),
            ("10.1.2.3:8443", "https://10.1.2.3/", false),
            ("fd00::/8", "https://[fd00::1]/", true),
            ("::ffff:10.0.0.0/104", "https://10.1.2.3/", true),
            ("::ffff:10.1.2.3", "https://10.1.2.3/", true),
            ("::ffff:10.0.0.0/104", "https://11.1.2.3/", false),
            ("[fd00::1]:443", "https://[fd00::1]/", true),
            ("2.3", "https://10.1.2.3/", false),
            ("other.example,op.example", "https://op.example/", true),
        ] {
            assert_eq!(straight(direct, url), expected, "{direct} {url}");
        }
    }

    #[test]
    fn loopback_and_plain_http_never_go_through_a_proxy() {
        for url in [
            "https://localhost:9000/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://op.localhost/",
            "http://localhost/",
            "http://op.example/",
        ] {
            assert!(straight("none.example", url), "{url}");
        }
    }

    #[test]
    fn what_is_no_proxy_and_what_is_no_host_is_refused() {
        for url in [
            "",
            "socks5://proxy.example",
            "http://",
            "http://proxy.example/path",
            "http://proxy.example?a",
            "ftp://proxy.example",
        ] {
            assert_eq!(
                ForwardProxy::new(url, Vec::new()).map(|_| ()),
                Err(NoProxyUrl),
                "{url}"
            );
        }
        for member in [
            "",
            ".",
            "a b",
            "op.example:x",
            "https://op.example",
            "10.0.0.0/33",
            "op.example/8",
        ] {
            assert_eq!(member.parse::<Direct>(), Err(NoHosts), "{member}");
        }
    }

    #[test]
    fn the_password_is_not_shown() {
        let proxy = ForwardProxy::new("http://user:pa55word@proxy.example:3128", Vec::new()).unwrap();
        let shown = format!("{proxy:?}");
        assert!(
            shown.contains("proxy.example") && !shown.contains("pa55word"),
            "{shown}"
        );
    }
}
