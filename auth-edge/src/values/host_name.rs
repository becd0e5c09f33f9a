//! Host names in requests: `Host`, `:authority`, `X-Forwarded-Host`.
//!
//! Invariant: letter case, a trailing dot (RFC 1034, section 3.1) and the port do not change the host.

/// Whether an authority names this host, which has the form that [`parse`] returns.
#[must_use]
pub(crate) fn is(authority: &str, host: &str) -> bool {
    without_port(authority).eq_ignore_ascii_case(host)
}

/// A host name for comparison: in lower case, without trailing dot and port; `None` if the text is no host.
#[must_use]
pub(crate) fn parse(text: &str) -> Option<String> {
    let name = without_port(text).to_ascii_lowercase();
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let address = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let bracketed = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let fits = match bracketed {
        Some(inside) => !inside.is_empty() && inside.bytes().all(address),
        None => !name.is_empty() && !name.starts_with('.') && name.bytes().all(plain),
    };
    fits.then_some(name)
}

fn without_port(authority: &str) -> &str {
    let name = match authority.rsplit_once(':') {
        // The colons of an IPv6 address are in brackets.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_spelling_is_the_same_host() {
        for spelling in [
            "app.example.com",
            "APP.Example.COM",
            "app.example.com.",
            "app.example.com:8443",
            "app.example.com.:443",
            "app.example.com:",
        ] {
            assert!(is(spelling, "app.example.com"), "{spelling}");
            assert_eq!(parse(spelling).as_deref(), Some("app.example.com"), "{spelling}");
        }
        for other in [
            "app.example.com.evil.example",
            "xapp.example.com",
            "app.example.com..",
            "",
            ":80",
        ] {
            assert!(!is(other, "app.example.com"), "{other}");
        }
        assert!(is("[2001:DB8::1]:443", "[2001:db8::1]") && is("[2001:db8::1]", "[2001:db8::1]"));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            ".",
            "a b",
            "https://a.example",
            "a.example/x",
            "u@a.example",
            "*.example",
            "[]",
            "é.example",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("[::1]:3000").as_deref(), Some("[::1]"));
    }
}
