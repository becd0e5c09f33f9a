//! Hostile values of `returnTo`, as a table and at random. In any browser the result stays on our origin.

use proptest::prelude::*;

use super::*;

const BASE: &str = "https://app.example/";

fn base() -> Url {
    Url::parse(BASE).unwrap()
}

fn ours(url: &str) -> bool {
    url == "https://app.example"
        || ["/", "?", "#"]
            .iter()
            .any(|c| url.starts_with(&format!("https://app.example{c}")))
}

fn accepted(raw: &str) -> Option<String> {
    ReturnTo::parse(&base(), raw).map(|kept| kept.as_str().to_owned())
}

#[test]
fn places_of_ours_are_kept_absolute_and_normalised() {
    for (raw, kept) in [
        ("/", "https://app.example/"),
        ("/account", "https://app.example/account"),
        ("account", "https://app.example/account"),
        ("/a?b=c&d=%26#e", "https://app.example/a?b=c&d=%26#e"),
        ("/a#/route?x=1", "https://app.example/a#/route?x=1"),
        ("?x=1", "https://app.example/?x=1"),
        ("", "https://app.example/"),
        ("https://app.example/a", "https://app.example/a"),
        ("HTTPS://APP.EXAMPLE:443/a", "https://app.example/a"),
        ("/a/../b/./c", "https://app.example/b/c"),
        ("/ä?ö=ü", "https://app.example/%C3%A4?%C3%B6=%C3%BC"),
        (
            "/a?next=https://evil.example/",
            "https://app.example/a?next=https://evil.example/",
        ),
        ("https:a", "https://app.example/a"),
        ("/.//evil.example", "https://app.example//evil.example"),
        ("/..//evil.example", "https://app.example//evil.example"),
        ("/%2e//evil.example", "https://app.example//evil.example"),
        ("/\tevil.example", "https://app.example/evil.example"),
        ("/%5cevil.example", "https://app.example/%5cevil.example"),
        ("/%2f%2fevil.example", "https://app.example/%2f%2fevil.example"),
        ("/a\r\nSet-Cookie: x=y", "https://app.example/aSet-Cookie:%20x=y"),
    ] {
        assert_eq!(accepted(raw).as_deref(), Some(kept), "{raw:?}");
    }
}

/// Ways to name another host; each is tried after many prefixes.
const ELSEWHERE: [&str; 40] = [
    "//evil.example",
    "///evil.example",
    "////evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "\\/evil.example",
    "/\\/evil.example",
    "//\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r\n/evil.example",
    "\t//evil.example",
    "//app.example@evil.example",
    "//app.example:443@evil.example",
    "//app.example.evil.example",
    "//evil-app.example",
    "//app.example%2eevil.example",
    "//evil.example/app.example",
    "//evil.example#app.example",
    "//evil.example?app.example",
    "//evil.example\\@app.example",
    "//user@app.example",
    "//user:password@app.example",
    "//:password@app.example",
    "//app.example:8443",
    "//app.example:80",
    "//sub.app.example",
    "//app\u{3002}example.evil\u{ff0e}example",
    "//evil.example:443",
    "//0x7f000001",
    "//2130706433",
    "//[::1]",
    "//[::ffff:127.0.0.1]",
    "//localhost",
    "//app.example\u{200b}.evil.example",
    "//\u{24d0}pp.example.evil.example",
    "//evil%2eexample",
    "//app.example.",
    "//www.app.example/..//app.example",
    "/\t\n\r/evil.example",
];

/// Prefixes that do not change how a browser reads the rest.
const BEFORE: [&str; 12] = [
    "",
    " ",
    "\t",
    "\n",
    "\r",
    "\0",
    "\u{1f} ",
    "https:",
    "http:",
    "HtTpS:",
    "h\tttps:",
    "\u{c}https:",
];

const OTHER_SCHEMES: [&str; 34] = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "java\nscript:alert(1)",
    "\u{1}javascript:alert(1)",
    "javascript://app.example/%0aalert(1)",
    "javascript:https://app.example/",
    "data:text/html,<script>alert(1)</script>",
    "data://app.example/x",
    "vbscript:x",
    "blob:https://app.example/1b4e28ba",
    "blob:https://evil.example/1b4e28ba",
    "filesystem:https://app.example/temporary/x",
    "file:///etc/passwd",
    "file://app.example/etc/passwd",
    "ftp://app.example/",
    "ws://app.example/",
    "wss://app.example/",
    "view-source:https://app.example/",
    "about:blank",
    "mailto:a@app.example",
    "tel:1",
    "intent://app.example/#Intent;end",
    "http://app.example/",
    "http:/app.example/",
    "http:app.example/",
    "https://",
    "https://:443/",
    "https://app.example:99999/",
    "https://[::1/",
    "https://app.example:x/",
    "https://%00/",
    "https://a b/",
];

// conformance: B-003
#[test]
fn more_than_five_hundred_hostile_values_are_dropped() {
    let mut tried = 0;
    for before in BEFORE {
        for elsewhere in ELSEWHERE {
            let raw = format!("{before}{elsewhere}");
            assert_eq!(accepted(&raw), None, "{raw:?}");
            tried += 1;
        }
    }
    for raw in OTHER_SCHEMES {
        assert_eq!(accepted(raw), None, "{raw:?}");
        tried += 1;
    }
    assert!(tried >= 500, "{tried}");
}

#[test]
fn the_length_counts_after_encoding() {
    let room = MAX_BYTES - BASE.len();
    assert!(accepted(&format!("/{}", "a".repeat(room))).is_some());
    assert!(accepted(&format!("/{}", "a".repeat(room + 1))).is_none());
    assert!(accepted(&format!("/{}", "ä".repeat(room / 6))).is_some());
    assert!(accepted(&format!("/{}", "ä".repeat(room / 6 + 1))).is_none());
    assert!(accepted(&"/".repeat(MAX_RAW_BYTES + 1)).is_none());
}

#[test]
fn the_port_is_part_of_the_origin() {
    let base = Url::parse("http://127.0.0.1:3000/").unwrap();
    let parse = |raw| ReturnTo::parse(&base, raw);
    assert!(parse("/a").is_some() && parse("http://127.0.0.1:3000/a").is_some());
    assert!(parse("http://127.0.0.1/a").is_none());
    assert!(parse("http://127.0.0.1:3001/a").is_none());
    assert!(parse("http://localhost:3000/a").is_none());
    assert!(parse("https://127.0.0.1:3000/a").is_none());
}

// conformance: B-006
#[test]
fn signing_out_may_lead_to_exactly_the_urls_of_the_list() {
    let allowed = [Url::parse("https://www.example/bye?x=1").unwrap()];
    let parse = |raw| ReturnTo::parse_for_logout(&base(), &allowed, raw).is_some();
    assert!(parse("https://www.example/bye?x=1") && parse("/signed-out"));
    let app = [Url::parse("com.example.app://bye").unwrap()];
    assert!(
        ReturnTo::parse_for_logout(&base(), &app, "com.example.app://bye").is_none(),
        "only the web, whatever the list says"
    );
    let long = format!("/{}signed-out", "a/../".repeat(1_700));
    assert!(!parse(&long), "long is long, also if little of it is left");
    for raw in [
        "https://www.example/bye",
        "https://www.example/bye?x=1&y=2",
        "https://www.example/bye?x=1#f",
        "http://www.example/bye?x=1",
        "https://u@www.example/bye?x=1",
        "https://www.example.evil.example/bye?x=1",
    ] {
        assert!(!parse(raw), "{raw}");
    }
}

proptest! {
    #[test]
    fn whatever_is_kept_is_ours(raw in "\\PC{0,60}") {
        if let Some(kept) = accepted(&raw) {
            prop_assert!(ours(&kept), "{raw:?} gave {kept}");
        }
    }

    #[test]
    fn whatever_is_made_of_separators_and_hosts_is_ours(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("/"), Just("\\"), Just("//"), Just("\t"), Just("\n"), Just("."), Just(".."), Just("%2e"), Just("%2f"),
                Just("%5c"), Just(":"), Just("@"), Just("?"), Just("#"), Just("https:"), Just("http:"), Just("blob:"),
                Just("javascript:"), Just("app.example"), Just("evil.example"), Just(" "), Just("\u{3002}"), Just("\0"),
            ],
            0..12,
        )
    ) {
        let raw = parts.concat();
        if let Some(kept) = accepted(&raw) {
            prop_assert!(ours(&kept), "{raw:?} gave {kept}");
            // A browser reads the Location header as the same URL that the edge parsed.
            prop_assert_eq!(String::from(Url::parse(&kept).unwrap()), kept);
        }
    }

    #[test]
    fn what_is_kept_is_a_fixed_point(raw in "[/a-z?#%.:@\\\\ -]{0,40}") {
        if let Some(kept) = accepted(&raw) {
            prop_assert_eq!(accepted(&kept), Some(kept));
        }
    }
}
