//! Which addresses in an upstream's answer are rewritten to ours.

use http::HeaderMap;
use url::Url;

use super::AddressMap;
use crate::gateway::headers::tests::headers;
use crate::providers::sites::Sites;

/// An answer's headers as the edge forwards them.
fn mapped(base: &str, upstream: &str, prefix: &str, sent: &[(&str, &str)]) -> HeaderMap {
    let sites = Sites::new(&Url::parse(base).unwrap(), ("/api/auth/login", Vec::new()), []);
    let mut sent = headers(sent);
    let map = AddressMap {
        site: sites.of(&HeaderMap::new()),
        upstream: &Url::parse(upstream).unwrap(),
        prefix,
    };
    map.map_headers(&mut sent);
    sent
}

#[test]
fn what_begins_with_the_upstreams_address_becomes_ours() {
    for (sent, expected) in [
        ("http://10.0.0.7:8080/docs/", "https://app.example/docs/"),
        ("HTTP://10.0.0.7:8080", "https://app.example/"),
        ("http://10.0.0.7:8080?a=b#c", "https://app.example/?a=b#c"),
        ("//10.0.0.7:8080/docs/", "https://app.example/docs/"),
        // With our host, and a port or scheme that only the upstream knows.
        ("http://app.example:8080/docs/", "https://app.example/docs/"),
        ("http://APP.example/docs/", "https://app.example/docs/"),
        ("https://app.example/docs/", "https://app.example/docs/"),
        // Other hosts' addresses, and addresses that only resemble the upstream's.
        ("http://10.0.0.7/docs/", "http://10.0.0.7/docs/"),
        ("http://10.0.0.7:8081/", "http://10.0.0.7:8081/"),
        ("http://10.0.0.7:80800/", "http://10.0.0.7:80800/"),
        (
            "http://10.0.0.7:8080.evil.example/",
            "http://10.0.0.7:8080.evil.example/",
        ),
        (
            "http://10.0.0.7:8080@evil.example/",
            "http://10.0.0.7:8080@evil.example/",
        ),
        ("http://u@10.0.0.7:8080/", "http://u@10.0.0.7:8080/"),
        ("http://app.example:9000/", "http://app.example:9000/"),
        (
            "https://app.example.evil.example/",
            "https://app.example.evil.example/",
        ),
        ("ftp://10.0.0.7:8080/", "ftp://10.0.0.7:8080/"),
        ("/docs//10.0.0.7:8080/", "/docs//10.0.0.7:8080/"),
        ("/docs/", "/docs/"),
        ("docs/", "docs/"),
        ("", ""),
    ] {
        for (name, before, after) in [
            ("location", "", ""),
            ("content-location", "", ""),
            ("refresh", "5; url=", ""),
            ("refresh", "0;URL=", ""),
            ("link", "<", ">; rel=\"next\""),
            ("link", "<https://other.example/a>; rel=a, <", ">; rel=b"),
        ] {
            let sent = format!("{before}{sent}{after}");
            let expected = format!("{before}{expected}{after}");
            let got = mapped(
                "https://app.example",
                "http://10.0.0.7:8080",
                "",
                &[(name, &sent)],
            );
            assert_eq!(got, headers(&[(name, &expected)]), "{name}: {sent}");
        }
    }
    let quoted = [("refresh", "5; url=\"http://10.0.0.7:8080/a\"")];
    let got = mapped("https://app.example", "http://10.0.0.7:8080", "", &quoted);
    assert_eq!(got, headers(&[("refresh", "5; url=https://app.example/a")]));
}

#[test]
fn a_port_of_our_own_stays() {
    let sent = [("location", "http://localhost:3000/a")];
    let got = mapped("http://localhost:3000", "https://orders", "", &sent);
    assert_eq!(got, headers(&sent));
    let sent = [("location", "https://orders/a")];
    let got = mapped("http://localhost:3000", "https://orders", "", &sent);
    assert_eq!(got, headers(&[("location", "http://localhost:3000/a")]));
}

#[test]
fn a_stripped_prefix_comes_back_once() {
    for (name, sent, expected) in [
        ("location", "/login?next=/a", "/shop/login?next=/a"),
        ("location", "/", "/shop/"),
        ("location", "http://10.0.0.7:8080/a", "https://app.example/shop/a"),
        ("location", "http://10.0.0.7:8080", "https://app.example/shop/"),
        ("location", "/shop", "/shop"),
        ("location", "/shop/a", "/shop/a"),
        ("location", "/shop?a", "/shop?a"),
        ("location", "/shopping", "/shop/shopping"),
        ("location", "https://app.example/a", "https://app.example/shop/a"),
        ("location", "next", "next"),
        ("location", "//other.example/a", "//other.example/a"),
        ("location", "/api/auth/logout?a=b", "/api/auth/logout?a=b"),
        (
            "link",
            "</a.css>; rel=preload, <b.css>; rel=preload",
            "</shop/a.css>; rel=preload, <b.css>; rel=preload",
        ),
        ("set-cookie", "a=/; Path=/; HttpOnly", "a=/; Path=/shop; HttpOnly"),
        ("set-cookie", "a=b; path = /admin", "a=b; Path=/shop/admin"),
        ("set-cookie", "a=b; Path=/shop/admin", "a=b; Path=/shop/admin"),
        ("set-cookie", "a=b; Secure", "a=b; Secure"),
        ("set-cookie", "path=/a; Secure", "path=/a; Secure"),
        (
            "set-cookie",
            "__Host-a=b; Secure; Path=/",
            "__Host-a=b; Secure; Path=/",
        ),
    ] {
        let got = mapped(
            "https://app.example",
            "http://10.0.0.7:8080",
            "/shop",
            &[(name, sent)],
        );
        assert_eq!(got, headers(&[(name, expected)]), "{sent}");
    }
}
