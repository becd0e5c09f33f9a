//! Everything a provider, or whoever pretends to be one, can send: mutated from seeds, it never makes a parser panic, and what
//! comes through keeps what the parsers promise.
//!
//! The seeds are in `seeds/`, one folder for each parser. The runs are short and the same each time; a failing input is
//! printed. What the whole edge does with such inputs is looked into by the `fuzz` package.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::json::strict_object;
use crate::jws::{MAX_TOKEN_BYTES, Unverified};
use crate::key_set::{KeySet, SignatureVerdict};
use crate::nested_json::nested_object;
use crate::security_event_token::ExpectedEvent;
use crate::{
    AcceptedAlgorithms, EventSubject, Expected, ExpectedOfRefresh, IdToken, LogoutToken, Metadata,
    ProviderSettings, SecurityEventToken, SigningAlgorithm, SimpleSubject, TransmitterMetadata, userinfo,
};

const ISSUER: &str = "https://op.example";
const NOW: u64 = 1_800_000_000;
const RUNS: u64 = 4_000;

/// What parsers stumble over.
const DICTIONARY: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    ".",
    "..",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "e30",
    "\"iss\":",
    "\"alg\":\"none\"",
    "\"crit\":[]",
    "https://evil.example",
    "http://127.0.0.1",
    "\u{feff}",
    "AAAAAAAAAAAAAAAA",
];

/// A small generator (xorshift), the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).expect("fits")
    }
}

fn seeds(parser: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(parser);
    let entries = std::fs::read_dir(&folder).expect("the folder of seeds");
    let mut seeds: Vec<_> = entries
        .map(|entry| std::fs::read(entry.expect("an entry").path()).expect("a seed"))
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 3, "{parser}");
    seeds
}

fn mutated(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => {
                let word = DICTIONARY[random.below(DICTIONARY.len())].bytes();
                bytes.splice(at..at, word);
            }
            3 => {
                let end = (at + random.below(16)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => {
                let end = (at + random.below(32)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

/// Prints the input if judging it fails.
struct Named<'a>(&'a [u8]);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was {}", self.0.escape_ascii());
        }
    }
}

fn run(parser: &str, target: impl Fn(&[u8])) {
    let seeds = seeds(parser);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let target = |input: &[u8]| {
        let _named = Named(input);
        target(input);
    };
    seeds.iter().for_each(|seed| target(seed));
    for _ in 0..RUNS {
        let (seed, other) = (random.below(seeds.len()), random.below(seeds.len()));
        target(&mutated(&seeds[seed], &seeds[other], &mut random));
    }
}

fn object(bytes: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[test]
fn metadata_of_any_shape_is_for_the_issuer_and_over_https_or_it_is_refused() {
    run("metadata", |bytes| {
        if let Ok(metadata) = Metadata::from_document(&object(bytes), ISSUER, bytes.len() % 2 == 0) {
            assert_eq!(metadata.issuer, ISSUER);
            let all = [
                metadata.authorization_endpoint.url(),
                &metadata.token_endpoint,
                &metadata.jwks_uri,
            ];
            assert!(all.iter().all(|url| url.scheme() == "https"));
        }
    });
}

#[test]
fn keys_of_any_shape_verify_nothing_that_was_not_signed() {
    for algorithm in [
        SigningAlgorithm::Rs256,
        SigningAlgorithm::Es256,
        SigningAlgorithm::EdDsa,
    ] {
        let raw = token(&format!("{{\"alg\":\"{algorithm}\"}}"), "{}");
        let token = Unverified::parse(&raw, &AcceptedAlgorithms::Auto).expect("a token");
        run("jwks", |bytes| {
            if let Ok(published) = serde_json::from_slice(bytes) {
                let keys = KeySet::new(&published);
                assert_ne!(keys.verify(&token), SignatureVerdict::Verified);
            }
        });
    }
}

/// A compact token with a signature nobody made.
fn token(header: &str, claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", encode(header), encode(claims), "A".repeat(86))
}

#[test]
fn tokens_of_any_shape_parse_only_with_the_right_algorithm_and_without_crit() {
    let named = AcceptedAlgorithms::Named(vec![SigningAlgorithm::Rs256]);
    run("token", |bytes| {
        let raw = String::from_utf8_lossy(bytes);
        if let Ok(token) = Unverified::parse(&raw, &named) {
            assert!(raw.len() <= MAX_TOKEN_BYTES);
            let header = raw
                .split('.')
                .next()
                .and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
            let header = strict_object(&header.expect("base64url")).expect("an object");
            assert_eq!(header.get("alg"), Some(&Value::from("RS256")));
            assert!(!header.contains_key("crit"));
            let _ = token.claims();
        }
    });
}

#[test]
fn claims_of_any_shape_are_those_that_were_requested_or_refused() {
    let settings = ProviderSettings::new(ISSUER, "client");
    let expected = Expected {
        nonce: "nonce",
        access_token: Some("token"),
        max_age: Some(600),
        acr_values: Some("gold"),
        organization: Some("org_1"),
    };
    run("id_token", |bytes| {
        let claims = strict_object(bytes).unwrap_or_default();
        if let Ok(token) = IdToken::of_login(
            (claims.clone(), SigningAlgorithm::Rs256),
            &settings,
            &expected,
            NOW,
        ) {
            assert_eq!(
                (token.iss.as_str(), &claims["nonce"]),
                (ISSUER, &Value::from("nonce"))
            );
            assert!(!token.sub.is_empty() && token.auth_time.is_some());
        }
        let expected = ExpectedOfRefresh {
            iss: ISSUER,
            sub: "alice",
            nonce: Some("nonce"),
            access_token: "access",
        };
        let _ = IdToken::of_refresh(
            (claims.clone(), SigningAlgorithm::Rs256),
            &settings,
            &expected,
            NOW,
        );
        if let Ok(token) = LogoutToken::validate(&claims, &settings, NOW) {
            assert!(token.sub.is_some() || token.sid.is_some());
            assert!(!claims.contains_key("nonce") && !token.jti.is_empty());
        }
        if let Ok(person) = userinfo::about(claims, "alice") {
            assert_eq!(person["sub"], "alice");
            assert!(!person.contains_key("iss") && !person.contains_key("acr"));
        }
    });
}

#[test]
fn configurations_of_any_shape_are_for_the_issuer_and_over_https_or_they_are_refused() {
    run("transmitter", |bytes| {
        if let Ok(metadata) = TransmitterMetadata::from_document(&object(bytes), ISSUER) {
            assert_eq!(metadata.issuer, ISSUER);
            assert_eq!(metadata.jwks_uri.scheme(), "https");
        }
    });
}

#[test]
fn security_events_of_any_shape_are_one_event_about_one_subject_or_refused() {
    let audiences = ["client".to_owned()];
    let expected = ExpectedEvent {
        drafts: false,
        issuer: ISSUER,
        audiences: &audiences,
        tolerance_secs: 60,
    };
    let is_bounded = |subject: &SimpleSubject| {
        let shown = format!("{subject:?}");
        (1..=16).contains(&subject.identifiers().len())
            && !shown.contains("alice")
            && !shown.contains("user@")
    };
    run("security_event", |bytes| {
        let read = nested_object(bytes);
        if let Some(claims) = &read {
            let anybody: Map<String, Value> = serde_json::from_slice(bytes).expect("an object");
            assert_eq!(claims, &anybody);
        }
        let claims = read.unwrap_or_default();
        let Ok(token) = SecurityEventToken::validate(&claims, &expected, NOW) else {
            return;
        };
        assert_eq!(token.iss, ISSUER);
        assert!(
            ["exp", "sub", "nonce"]
                .iter()
                .all(|name| !claims.contains_key(*name))
        );
        assert!((1..=512).contains(&token.jti.len()) && token.iat <= NOW + 60);
        assert!(token.occurred_at() <= token.iat);
        let said = token
            .event
            .reason_admin
            .values()
            .chain(token.event.reason_user.values());
        assert!(said.into_iter().all(|text| !text.contains(char::is_control)));
        match token.subject {
            EventSubject::Simple(subject) => assert!(is_bounded(&subject)),
            EventSubject::Complex(complex) => {
                let known = [&complex.user, &complex.session];
                assert!(known.into_iter().flatten().all(is_bounded));
                assert!(complex.others.len() <= 16);
            }
            EventSubject::Critical(_) => panic!("nothing was said to be critical"),
        }
    });
}
