//! Which URLs we speak to: https everywhere, http only to loopback.

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
}
