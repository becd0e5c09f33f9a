//! The allowed URLs: https everywhere, http only on loopback.

use url::{Host, Url};

/// Whether the URL's host is this machine: `localhost`, `127.0.0.0/8` or `::1`.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether the URL is https, or http on loopback.
pub fn endpoint_is_secure(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Whether this issuer's URL may be used: a public issuer must not direct us to http on our own machine.
pub(crate) fn is_usable_of(issuer: &str, url: &Url) -> bool {
    let on_loopback = || Url::parse(issuer).is_ok_and(|issuer| is_loopback(&issuer));
    endpoint_is_secure(url) && (url.scheme() == "https" || on_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for (url, secure) in [
            ("https://op.example/", true),
            ("http://localhost:9000/", true),
            ("http://op.localhost/", true),
            ("http://127.0.0.1/", true),
            ("http://127.255.0.1/", true),
            ("http://[::1]:9000/", true),
            ("http://op.example/", false),
            ("http://evillocalhost/", false),
            ("http://localhost.op.example/", false),
            ("http://127.0.0.1.op.example/", false),
            ("http://10.0.0.1/", false),
            ("http://0.0.0.0/", false),
            ("http://169.254.169.254/", false),
            ("http://[::]/", false),
            ("http://[fd00::1]/", false),
            ("ftp://localhost/", false),
            ("file:///etc/passwd", false),
        ] {
            let parsed = Url::parse(url).expect("a URL");
            assert_eq!(endpoint_is_secure(&parsed), secure, "{url}");
        }
    }

    #[test]
    fn a_public_issuer_names_no_plain_http_even_here() {
        for (issuer, url, usable) in [
            ("https://op.example", "https://op.example/a", true),
            ("https://op.example", "https://elsewhere.example/a", true),
            ("https://op.example", "http://127.0.0.1/a", false),
            ("https://op.example", "http://op.example/a", false),
            ("http://127.0.0.1:9000", "http://127.0.0.1/a", true),
            ("http://127.0.0.1:9000", "http://op.example/a", false),
            ("no issuer", "http://127.0.0.1/a", false),
        ] {
            let parsed = Url::parse(url).expect("a URL");
            assert_eq!(is_usable_of(issuer, &parsed), usable, "{issuer} {url}");
        }
    }
}
