//! What is refused, by name, and what is not.

use chassis::settings::{Source, Wrong};

use super::*;

const PROVIDER: [(&str, &str); 3] = [
    ("OIDC_ISSUER_URL", "https://issuer.example"),
    ("OIDC_CLIENT_ID", "client"),
    ("OIDC_CLIENT_SECRET", "a-secret-of-more-than-32-characters"),
];

fn settings(pairs: &[(&str, &str)]) -> Result<Settings, Wrong> {
    let pairs: Vec<_> = PROVIDER.iter().chain(pairs).copied().collect();
    let source = Source::from_pairs(&SERVICE, &pairs);
    let mut reader = Reader::new(&source);
    let settings = read(&mut reader);
    reader.finish(settings).map(|(settings, _)| settings)
}

fn mistakes(pairs: &[(&str, &str)]) -> Vec<String> {
    settings(pairs)
        .unwrap_err()
        .mistakes
        .into_iter()
        .map(|mistake| mistake.name)
        .collect()
}

#[test]
fn the_defaults_are_those_of_the_manual() {
    let settings = settings(&[]).unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:50051");
    assert_eq!(
        (settings.lifetime.rolling_ms, settings.lifetime.absolute_ms),
        (86_400_000, 604_800_000)
    );
    assert_eq!(
        (settings.limits.token_expiry_margin_ms, settings.limits.max_bytes),
        (60_000, 65_536)
    );
}

#[test]
fn every_mistake_is_named_at_once_and_no_key_is_shown() {
    let wrong = settings(&[
        ("SESSION_LISTEN", "0.0.0.0:50051"),
        ("SESSION_STORE", "mysql://user:hunter2@host"),
        ("SESSION_ENCRYPTION_KEY", "hunter2-hunter2"),
        ("SESSION_ROLLING_DURATION", "10"),
        ("SESSION_ABSOLUTE_DURATION", "5"),
    ])
    .unwrap_err();
    let text = wrong.to_string();
    for name in [
        "SESSION_LISTEN",
        "SESSION_STORE",
        "SESSION_ENCRYPTION_KEY",
        "SESSION_ROLLING_DURATION",
    ] {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_store_that_outlives_the_process_needs_a_key() {
    assert_eq!(
        mistakes(&[("SESSION_STORE", "file:/tmp/sessions")]),
        ["SESSION_ENCRYPTION_KEY"]
    );
    let key = "ab".repeat(32);
    assert!(
        settings(&[
            ("SESSION_STORE", "file:/tmp/sessions"),
            ("SESSION_ENCRYPTION_KEY", &key)
        ])
        .is_ok()
    );
}

#[test]
fn plaintext_off_loopback_has_to_be_asked_for() {
    let listen = ("SESSION_LISTEN", "0.0.0.0:50051");
    assert_eq!(mistakes(&[listen]), ["SESSION_LISTEN"]);
    assert!(settings(&[listen, ("SESSION_INSECURE", "true")]).is_ok());
    let (certificate, key) = (
        ("SESSION_TLS_CERT_FILE", "cert.pem"),
        ("SESSION_TLS_KEY_FILE", "key.pem"),
    );
    assert!(settings(&[listen, certificate, key]).is_ok());
    assert_eq!(mistakes(&[certificate]), ["SESSION_TLS_KEY_FILE"]);
    assert_eq!(
        mistakes(&[("SESSION_CLIENT_CA_FILE", "ca.pem")]),
        ["SESSION_CLIENT_CA_FILE"]
    );
}
