//! Who passes an `[allow]`, and who only looks as if.

use serde_json::{Value, json};

use super::*;

fn list(only: Members, not: Members) -> AllowList {
    AllowList {
        only,
        not,
        groups_claim: ClaimPath::parse("groups").unwrap(),
        accepts_unverified: false,
        file: None,
    }
}

fn members(emails: &[&str], domains: &[&str], groups: &[&str], networks: &[&str]) -> Members {
    Members {
        emails: emails
            .iter()
            .map(|text| EmailAddress::parse(text).unwrap())
            .collect(),
        domains: domains
            .iter()
            .map(|text| DomainPattern::parse(text).unwrap())
            .collect(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        networks: networks.iter().map(|text| text.parse().unwrap()).collect(),
    }
}

fn passes(allow: &AllowList, claims: &Value) -> bool {
    allow.unmet_claim(claims.as_object().unwrap()).is_none()
}

fn verified(email: &str) -> Value {
    json!({"email": email, "email_verified": true})
}

#[test]
fn a_domain_admits_its_verified_addresses_alone() {
    let allow = list(
        members(&[], &["example.com", "*.example.org", "bücher.example"], &[], &[]),
        Members::default(),
    );
    for email in [
        "a@example.com",
        "A@EXAMPLE.com",
        "a+tag@example.com",
        "a@team.example.org",
        "a@b.team.example.org",
        "a@bücher.example",
        "a@xn--bcher-kva.example",
    ] {
        assert!(passes(&allow, &verified(email)), "{email}");
    }
    for email in [
        "a@sub.example.com",
        "a@example.com.evil.net",
        "a@evilexample.com",
        "a@example.org",
        "a@evilexample.org",
        "a@.example.org",
        "a@evil.net@example.com",
        "a@example.com@evil.net",
        "\"a@evil.net\"@example.com",
        "a@example.com.",
        "a@example.com ",
        " a@example.com",
        "a@example.com\n",
        "a@ехample.com",        // Cyrillic е and х
        "a@exam\u{ff50}le.com", // a full-width p, which IDNA maps to p
        "a@exampl\u{212f}.com", // a script e, likewise
        "a@exa%6dple.com",
        "a@[127.0.0.1]",
        "@example.com",
        "example.com",
        "",
    ] {
        assert!(!passes(&allow, &verified(email)), "{email}");
    }
}

#[test]
fn an_address_that_the_provider_has_not_verified_admits_nobody() {
    let mut allow = list(members(&[], &["example.com"], &[], &[]), Members::default());
    let claims = |verified: Value| json!({"email": "a@example.com", "email_verified": verified});
    for yes in [json!(true), json!("true")] {
        assert!(passes(&allow, &claims(yes)));
    }
    let missing = json!({"email": "a@example.com"});
    for no in [
        json!(false),
        json!("false"),
        json!("TRUE"),
        json!(1),
        json!(null),
        json!([true]),
    ] {
        assert!(!passes(&allow, &claims(no)));
    }
    assert!(!passes(&allow, &missing));
    assert!(!passes(
        &allow,
        &json!({"email": ["a@example.com"], "email_verified": true})
    ));
    allow.accepts_unverified = true;
    assert!(passes(&allow, &missing));
}

#[test]
fn an_address_matches_whole_and_by_ascii_case_alone() {
    let allow = list(members(&["Kate@example.com"], &[], &[], &[]), Members::default());
    for (email, expected) in [
        ("kate@example.com", true),
        ("KATE@Example.COM", true),
        ("kate+a@example.com", false),
        ("k.ate@example.com", false),
        ("\u{212a}ate@example.com", false), // the Kelvin sign becomes k in lower case
        ("kate@example.com.evil.net", false),
    ] {
        assert_eq!(passes(&allow, &verified(email)), expected, "{email}");
    }
}

#[test]
fn an_empty_file_of_addresses_admits_nobody() {
    let mut allow = list(Members::default(), Members::default());
    allow.file = Some("allowed-emails".into());
    assert!(!passes(&allow, &verified("a@example.com")));
}

#[test]
fn every_kind_has_to_match_and_an_exclusion_wins() {
    let allow = list(
        members(
            &["guest@other.net"],
            &["example.com"],
            &["staff", "admin"],
            &["10.0.0.0/8", "fd00::/8"],
        ),
        members(
            &["mallory@example.com"],
            &["bad.example.com"],
            &["suspended"],
            &["10.66.0.0/16"],
        ),
    );
    let with = |email: &str, groups: Value| json!({"email": email, "email_verified": true, "groups": groups});
    for (claims, expected) in [
        (with("a@example.com", json!(["staff"])), true),
        (with("guest@other.net", json!("admin")), true),
        (with("a@example.com", json!([])), false),
        (with("a@example.com", json!(["Staff"])), false),
        (with("a@example.com", json!("staff,admin")), false),
        (with("a@other.net", json!(["staff"])), false),
        (with("a@example.com", json!(["staff", "suspended"])), false),
        (with("MALLORY@example.com", json!(["staff"])), false),
        (with("a@bad.example.com", json!(["staff"])), false),
    ] {
        assert_eq!(passes(&allow, &claims), expected, "{claims}");
    }
    for (client, expected) in [
        ("10.1.2.3", true),
        ("10.66.0.1", false),
        ("192.0.2.1", false),
        ("fd00::1", true),
    ] {
        assert_eq!(
            allow.admits_network(client.parse().unwrap()),
            expected,
            "{client}"
        );
    }
}

#[test]
fn an_exclusion_alone_admits_all_others() {
    let allow = list(
        Members::default(),
        members(&["mallory@example.com"], &[], &["suspended"], &[]),
    );
    for (claims, expected) in [
        (json!({}), true),
        (verified("a@example.com"), true),
        (json!({"email": "mallory@example.com"}), false),
        (json!({"email": "x@y@example.com"}), false),
        (json!({"groups": ["suspended"]}), false),
    ] {
        assert_eq!(passes(&allow, &claims), expected, "{claims}");
    }
}
