//! Reads what proxies before the edge report about the browser. Only configured proxies are trusted.
//!
//! Invariants
//! - Without a configured trusted proxy no header has an effect.
//! - Each fact of a checked request has one source: Envoy's attributes, or one family of headers of a trusted
//!   proxy.
//!
//! The edge reads only `X-Forwarded-For`, `-Proto`, `-Host`, `-Uri`, `-Method`, `-Prefix`, `X-Original-URL`
//! and `X-Original-Method`, as bytes: a client's addition to a line cannot hide a proxy's. Deliberately
//! absent: `Forwarded` (RFC 7239), which proxies rarely send by default; changes to the edge's address.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::values::header_name::members;

/// The longest `X-Forwarded-For` chain that is read: more proxies than any real deployment has.
const MAX_CHAIN: usize = 32;

/// The longest original URL accepted, in bytes: the longest returnTo, with its encoding.
const MAX_ORIGINAL_URL_BYTES: usize = 4_096;

/// Bits of an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2) before the IPv4 address.
const MAPPED_PREFIX_BITS: u8 = 96;

/// The hops of a request, the last one last.
pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The client if a trusted proxy sends no valid address. Belongs to no real client: such requests share one
/// rate limit and one set of allowances, not those of the proxy.
pub(crate) const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The request that another proxy asks about, as the proxy describes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OriginalRequest {
    /// The absolute URL that the browser requested; `None` if programs could read it differently.
    pub(crate) url: Option<String>,
    /// The method.
    pub(crate) method: Option<Method>,
}

/// Whether a header of this folded name describes the origin or the target of a request.
pub(crate) fn describes_origin(folded: &str) -> bool {
    folded.starts_with("x-forwarded-")
        || folded.starts_with("x-original-")
        || matches!(
            folded,
            "forwarded" | "x-real-ip" | "x-client-ip" | "x-rewrite-url"
        )
}

/// The networks whose `X-Forwarded-*` headers are trusted.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Trusts exactly these networks.
    pub(crate) fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Reads one list entry: a network, or a single address. IPv4 written as IPv6 (`::ffff:10.0.0.0/104`)
    /// becomes an IPv4 network, since addresses are compared in that form.
    ///
    /// # Errors
    /// `None` for other texts, or for the whole internet.
    pub(crate) fn parse_network(text: &str) -> Option<IpNet> {
        let address = text.parse::<IpAddr>().map(IpNet::from).ok();
        let network: IpNet = address.or_else(|| text.parse().ok())?;
        let mapped = match network.addr() {
            IpAddr::V6(address) => address.to_ipv4_mapped(),
            IpAddr::V4(_) => None,
        };
        let network = match (mapped, network.prefix_len().checked_sub(MAPPED_PREFIX_BITS)) {
            (Some(address), Some(bits)) => IpNet::new(address.into(), bits).ok()?,
            _ => network,
        };
        (network.prefix_len() > 0).then_some(network)
    }

    /// Whether this peer's headers are trusted.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.0.iter().any(|network| network.contains(&peer))
    }

    /// The browser's address: the last address in the chain that is not a trusted proxy. A trusted proxy that
    /// names no client is the client itself. [`UNKNOWN`] if a trusted proxy sends something else than an
    /// address (`unknown`, a custom name, client input), or if the chain is too long.
    pub(crate) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if self.0.is_empty() {
            return client;
        }
        let hops = members(headers, X_FORWARDED_FOR).rev();
        let mut hops = hops.filter(|hop| !hop.is_empty());
        for hop in hops.by_ref().take(MAX_CHAIN) {
            if !self.trusts(client) {
                return client;
            }
            let Some(address) = parse_hop(hop) else {
                return UNKNOWN;
            };
            client = address;
        }
        if self.trusts(client) && hops.next().is_some() {
            return UNKNOWN;
        }
        client
    }

    /// The path below which a trusted proxy publishes the edge, without a trailing slash; empty if the header
    /// is missing or is not one path.
    pub(crate) fn prefix<'h>(&self, peer: IpAddr, headers: &'h HeaderMap) -> &'h str {
        let prefix = single(headers, "x-forwarded-prefix").filter(|_| self.trusts(peer));
        let prefix = prefix
            .map(|prefix| prefix.trim_end_matches('/'))
            .unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte);
        let is_path = prefix.starts_with('/') && !prefix.starts_with("//") && prefix.bytes().all(is_plain);
        if is_path { prefix } else { "" }
    }

    /// The path or URL that a trusted proxy checks, for forward authentication.
    pub(crate) fn asked_about<'h>(&self, peer: IpAddr, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        let asked = only(headers, "x-original-url").or_else(|| only(headers, "x-forwarded-uri"));
        asked.filter(|_| self.trusts(peer)).map(HeaderValue::as_bytes)
    }

    /// The request that a trusted proxy asks about. `X-Original-URL` pairs with `X-Original-Method`, and
    /// `X-Forwarded-Uri` with `X-Forwarded-Method`. A proxy sets one pair and forwards the client's other pair.
    pub(crate) fn original_request(&self, peer: IpAddr, headers: &HeaderMap) -> OriginalRequest {
        if !self.trusts(peer) {
            return OriginalRequest::default();
        }
        let (url, method) = if headers.contains_key("x-original-url") {
            (by_original_url(headers), "x-original-method")
        } else {
            let target = single(headers, "x-forwarded-uri");
            let url = target.and_then(|target| at_forwarded_host(headers, target));
            (url, "x-forwarded-method")
        };
        OriginalRequest {
            url: url.filter(|url| url.len() <= MAX_ORIGINAL_URL_BYTES),
            method: agreed(headers, method, |name| Method::try_from(name).ok()),
        }
    }
}

/// The URL of `X-Original-URL`. An unreadable value also blocks the other pair, which may be the client's.
fn by_original_url(headers: &HeaderMap) -> Option<String> {
    let url = single(headers, "x-original-url")?;
    match parts(url) {
        Some((scheme, authority, target)) if !url.starts_with('/') => absolute(scheme, authority, target),
        _ => at_forwarded_host(headers, url),
    }
}

fn at_forwarded_host(headers: &HeaderMap, target: &str) -> Option<String> {
    let scheme = agreed(headers, "x-forwarded-proto", web_scheme)?;
    let host = agreed(headers, "x-forwarded-host", |host| {
        Some(host.to_ascii_lowercase())
    })?;
    absolute(scheme, &host, target).filter(|_| target.starts_with('/'))
}

/// The absolute URL of the request, if all programs read its parts alike.
pub(crate) fn absolute(scheme: &str, authority: &str, target: &str) -> Option<String> {
    let scheme = web_scheme(scheme)?;
    let fits = !authority.is_empty()
        && !authority.contains(['/', '\\', '@', '?', '#'])
        && (target.is_empty() || target.starts_with('/'));
    fits.then(|| format!("{scheme}://{authority}{target}"))
}

/// Scheme, authority and target of an absolute URL, unchanged: a URL parser would normalise them.
pub(crate) fn parts(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let (authority, target) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Some((scheme, authority, target))
}

/// The scheme of the page that requested this. Traefik reports a WebSocket as `ws` or `wss`.
fn web_scheme(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "http" | "ws" => Some("http"),
        "https" | "wss" => Some("https"),
        _ => None,
    }
}

/// The value that all lines and all list elements of a header agree on. A second proxy appends its own value,
/// and a client that adds a value must not choose.
fn agreed<T: PartialEq>(headers: &HeaderMap, name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let elements = members(headers, name).filter(|element| !element.is_empty());
    let mut values = elements.map(|element| std::str::from_utf8(element).ok().and_then(&read));
    let first = values.next()??;
    values
        .all(|value| value.as_ref() == Some(&first))
        .then_some(first)
}

/// A header that occurs exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// The text of a header that occurs exactly once.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    std::str::from_utf8(only(headers, name)?.as_bytes()).ok()
}

/// One hop: an address, an address with a port, or a bracketed one.
fn parse_hop(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?;
    let address = text
        .parse::<IpAddr>()
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
        .or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok())?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::{TrustedProxies, UNKNOWN};
    use http::{HeaderMap, HeaderName, HeaderValue};
    use std::net::IpAddr;

    fn proxies(list: &[&str]) -> TrustedProxies {
        TrustedProxies::new(
            list.iter()
                .map(|one| TrustedProxies::parse_network(one).expect("a network"))
                .collect(),
        )
    }

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    name.parse::<HeaderName>().expect("a header name"),
                    HeaderValue::from_bytes(value.as_bytes()).expect("a header value"),
                )
            })
            .collect()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn nobody_is_believed_by_default() {
        let headers = headers(&[
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "app.example"),
            ("x-forwarded-uri", "/a"),
        ]);
        let nobody = TrustedProxies::default();
        assert_eq!(nobody.client_address(ip("127.0.0.1"), &headers), ip("127.0.0.1"));
        assert_eq!(nobody.original_request(ip("127.0.0.1"), &headers).url, None);
    }

    #[test]
    fn the_whole_internet_cannot_be_trusted() {
        for text in ["0.0.0.0/0", "::/0", "", "example.com", "10.0.0.0/33"] {
            assert!(TrustedProxies::parse_network(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_no_trusted_proxy_holds() {
        let trusted = proxies(&["10.0.0.0/8", "::1"]);
        for (peer, chain, expected) in [
            ("10.0.0.1", "1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", "1.2.3.4"),
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("10.0.0.1", "nonsense, 10.0.0.2", "0.0.0.0"),
            ("10.0.0.1", "1.2.3.4, unknown", "0.0.0.0"),
            ("10.0.0.1", "1.2.3.4, _hidden:80", "0.0.0.0"),
            ("10.0.0.1", "1.2.3.4, \"[::1]\"", "0.0.0.0"),
            ("10.0.0.1", "1.2.3.4, 5.6.7.8:port", "0.0.0.0"),
            ("10.0.0.1", "1.2.3.4, 010.0.0.2", "0.0.0.0"),
            ("10.0.0.1", "1.2.3.4, é", "0.0.0.0"),
            ("10.0.0.1", "é, 1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "nonsense, 1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "6.6.6.6, , 1.2.3.4 ,, 10.0.0.2, ", "1.2.3.4"),
            ("10.0.0.1", "1.2.3.4,10.0.0.2", "1.2.3.4"),
            ("10.0.0.1", "[2001:db8::1]", "2001:db8::1"),
            ("10.0.0.1", "::ffff:1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "1.2.3.4:5678", "1.2.3.4"),
            ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
            ("::ffff:10.0.0.1", "1.2.3.4", "1.2.3.4"),
            ("9.9.9.9", "1.2.3.4", "9.9.9.9"),
            ("::1", "", "::1"),
        ] {
            let headers = headers(&[("x-forwarded-for", chain)]);
            assert_eq!(
                trusted.client_address(ip(peer), &headers),
                ip(expected),
                "{peer} {chain}"
            );
        }
    }

    #[test]
    fn a_network_written_as_mapped_addresses_holds_the_addresses_it_means() {
        for (network, peer, trusted) in [
            ("::ffff:127.0.0.0/104", "127.0.0.1", true),
            ("::ffff:127.0.0.0/104", "::ffff:127.0.0.1", true),
            ("::ffff:127.0.0.0/104", "128.0.0.1", false),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("fd00::/8", "fd00::1", true),
        ] {
            assert_eq!(proxies(&[network]).trusts(ip(peer)), trusted, "{network} {peer}");
        }
    }

    #[test]
    fn a_mapped_address_is_trusted_as_the_address_it_is() {
        let headers = headers(&[
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "app.example"),
            ("x-forwarded-uri", "/a"),
        ]);
        let trusted = proxies(&["10.0.0.0/8"]);
        assert!(
            trusted
                .original_request(ip("::ffff:10.0.0.1"), &headers)
                .url
                .is_some()
        );
        assert!(
            trusted
                .original_request(ip("::ffff:11.0.0.1"), &headers)
                .url
                .is_none()
        );
    }

    #[test]
    fn the_chain_may_come_in_several_headers() {
        let headers = headers(&[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "1.2.3.4")]);
        assert_eq!(
            proxies(&["10.0.0.1"]).client_address(ip("10.0.0.1"), &headers),
            ip("1.2.3.4")
        );
    }

    #[test]
    fn a_byte_that_is_no_text_hides_nothing_of_a_line() {
        let trusted = proxies(&["10.0.0.0/8"]);
        for byte in 0x80..=u8::MAX {
            for (line, expected) in [
                ([&[byte][..], b", 1.2.3.4"].concat(), ip("1.2.3.4")),
                (
                    [b"6.6.6.6", &[byte][..], b", 1.2.3.4, 10.0.0.2"].concat(),
                    ip("1.2.3.4"),
                ),
                ([b"1.2.3.4, ", &[byte][..]].concat(), UNKNOWN),
            ] {
                let mut headers = HeaderMap::new();
                headers.append(
                    "x-forwarded-for",
                    HeaderValue::from_bytes(&line).expect("a value"),
                );
                assert_eq!(
                    trusted.client_address(ip("10.0.0.1"), &headers),
                    expected,
                    "{line:?}"
                );
            }
        }
    }

    #[test]
    fn a_chain_is_walked_for_so_long_and_no_longer() {
        let chain: Vec<String> = (1..=40).map(|hop| format!("10.0.0.{hop}")).collect();
        let headers = |chain: &[String]| headers(&[("x-forwarded-for", &chain.join(", "))]);
        let trusted = proxies(&["10.0.0.0/8"]);
        let client = |chain| trusted.client_address(ip("10.0.1.1"), &headers(chain));
        assert_eq!(client(&chain), UNKNOWN, "it is no proxy's own request");
        assert_eq!(client(&chain[8..]), ip("10.0.0.9"));
    }

    #[test]
    fn an_original_url_that_could_be_read_in_two_ways_is_none() {
        let long = format!("/{}", "a".repeat(5_000));
        let host = ("x-forwarded-host", "app.example");
        for more in [
            &[
                host,
                ("x-forwarded-host", "evil.example"),
                ("x-forwarded-uri", "/a"),
            ][..],
            &[host, ("x-forwarded-uri", "/a"), ("x-forwarded-uri", "/b")],
            &[("x-forwarded-host", "u@evil.example"), ("x-forwarded-uri", "/a")],
            &[("x-forwarded-host", "evil.example/x"), ("x-forwarded-uri", "/a")],
            &[("x-forwarded-host", "evil.example\\x"), ("x-forwarded-uri", "/a")],
            &[("x-forwarded-host", "evil.example?x"), ("x-forwarded-uri", "/a")],
            &[("x-forwarded-host", "evil.example#x"), ("x-forwarded-uri", "/a")],
            &[host, ("x-forwarded-uri", &long)],
            &[("x-original-url", "https://app.example?/admin/secret")],
            &[("x-original-url", "https://app.example?a=b")],
            &[("x-original-url", "https://app.example#/public/a")],
            &[("x-original-url", "https://u@app.example/a")],
            &[("x-original-url", "https://app.example\\@evil.example/a")],
            &[("x-original-url", "https:///a")],
            &[
                ("x-original-url", "app.example/a"),
                host,
                ("x-forwarded-uri", "/b"),
            ],
            &[
                ("x-original-url", "/a"),
                ("x-original-url", "/b"),
                host,
                ("x-forwarded-uri", "/c"),
            ],
        ] {
            let headers = headers(&[&[("x-forwarded-proto", "https")], more].concat());
            let url = proxies(&["10.0.0.1"])
                .original_request(ip("10.0.0.1"), &headers)
                .url;
            assert_eq!(url, None, "{more:?}");
        }
        for scheme in [
            "javascript",
            "https:",
            "",
            ",",
            "https, http",
            "ws, wss",
            "https, é",
        ] {
            let headers = headers(&[("x-forwarded-proto", scheme), host, ("x-forwarded-uri", "/a")]);
            let url = proxies(&["10.0.0.1"])
                .original_request(ip("10.0.0.1"), &headers)
                .url;
            assert_eq!(url, None, "{scheme:?}");
        }
    }

    #[test]
    fn the_original_url_comes_from_either_family_of_headers() {
        let trusted = proxies(&["10.0.0.1"]);
        let forwarded = [
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "app.example"),
        ];
        for (more, expected) in [
            (("x-forwarded-uri", "/a?b=c"), Some("https://app.example/a?b=c")),
            (("x-original-url", "/a"), Some("https://app.example/a")),
            (
                ("x-original-url", "http://app.example/b"),
                Some("http://app.example/b"),
            ),
            (
                ("x-original-url", "https://app.example"),
                Some("https://app.example"),
            ),
            (
                ("x-original-url", "https://app.example/a?b=@c#d"),
                Some("https://app.example/a?b=@c#d"),
            ),
            (
                ("x-original-url", "WSS://app.example/a"),
                Some("https://app.example/a"),
            ),
            (("x-forwarded-uri", "@evil.example/"), None),
            (("x-forwarded-uri", "https://evil.example/"), None),
            (("x-forwarded-port", "1"), None),
        ] {
            let headers = headers(&[forwarded[0], forwarded[1], more]);
            assert_eq!(
                trusted.original_request(ip("10.0.0.1"), &headers).url.as_deref(),
                expected,
                "{more:?}"
            );
            assert_eq!(
                trusted.original_request(ip("10.0.0.2"), &headers).url,
                None,
                "{more:?} from anybody"
            );
        }
    }

    #[test]
    fn values_of_several_proxies_count_where_they_agree() {
        let trusted = proxies(&["10.0.0.1"]);
        for (proto, host, method, expected) in [
            (&["wss"][..], &["app.example"][..], &["GET"][..], Some("https")),
            (&["ws"], &["app.example"], &["GET"], Some("http")),
            (&["HTTPS"], &["APP.example"], &["GET"], Some("https")),
            (
                &["https, https"],
                &["app.example, app.example"],
                &["GET, GET"],
                Some("https"),
            ),
            (
                &["https", "wss"],
                &["app.example", "App.Example"],
                &["GET", "GET"],
                Some("https"),
            ),
            (
                &["https,"],
                &[" app.example ,, app.example"],
                &["GET"],
                Some("https"),
            ),
            (&["https", "http"], &["app.example"], &["GET"], None),
            (&["https"], &["evil.example, app.example"], &["GET"], None),
            (&["https"], &["app.example", "evil.example"], &["GET"], None),
        ] {
            let mut sent = vec![
                ("x-forwarded-uri", "/a,b"),
                // The edge reads neither: the port is part of the host.
                ("x-forwarded-port", "8443"),
                ("forwarded", "proto=http;host=evil.example"),
            ];
            sent.extend(proto.iter().map(|value| ("x-forwarded-proto", *value)));
            sent.extend(host.iter().map(|value| ("x-forwarded-host", *value)));
            sent.extend(method.iter().map(|value| ("x-forwarded-method", *value)));
            let mut lines = HeaderMap::new();
            for (name, value) in &sent {
                lines.append(*name, HeaderValue::from_static(value));
            }
            let request = trusted.original_request(ip("10.0.0.1"), &lines);
            let expected = expected.map(|scheme| format!("{scheme}://app.example/a,b"));
            assert_eq!(request.url, expected, "{sent:?}");
            assert_eq!(request.method, Some(http::Method::GET), "{sent:?}");
        }
        let differing = headers(&[("x-original-url", "/a"), ("x-original-method", "GET, POST")]);
        assert_eq!(trusted.original_request(ip("10.0.0.1"), &differing).method, None);
    }

    #[test]
    fn a_method_comes_from_the_family_that_names_the_url() {
        let trusted = proxies(&["10.0.0.1"]);
        let forwarded = [
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "app.example"),
            ("x-forwarded-uri", "/a"),
            ("x-forwarded-method", "GET"),
        ];
        let original = [
            ("x-original-url", "https://app.example/a"),
            ("x-original-method", "DELETE"),
        ];
        for (sent, method) in [
            (&forwarded[..], Some("GET")),
            (&[forwarded[0], forwarded[1], forwarded[2], original[1]], None),
            (&original, Some("DELETE")),
            (&[original[0], forwarded[3]], None),
            (&[&forwarded[..], &original].concat(), Some("DELETE")),
        ] {
            let request = trusted.original_request(ip("10.0.0.1"), &headers(sent));
            assert_eq!(
                request.method.as_ref().map(http::Method::as_str),
                method,
                "{sent:?}"
            );
        }
    }
}
