//! What is refused, by name, and what is not.

use chassis::settings::{SettingsError, Source};

use super::*;

const PROVIDER: [(&str, &str); 3] = [
    ("OIDC_ISSUER_URL", "https://issuer.example"),
    ("OIDC_CLIENT_ID", "client"),
    ("OIDC_CLIENT_SECRET", "a-secret-of-more-than-32-characters"),
];

fn settings(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
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
fn only_redis_has_replicas_that_acknowledge_endings() {
    let (name, key) = (
        "SESSION_ENDING_REPLICAS",
        ("SESSION_ENCRYPTION_KEY", "00".repeat(32)),
    );
    let key = (key.0, key.1.as_str());
    assert_eq!(mistakes(&[(name, "1")]), [name]);
    let careful = settings(&[(name, "1"), ("SESSION_STORE", "redis://127.0.0.1"), key]).unwrap();
    assert_eq!(
        Some(careful.store),
        "redis://127.0.0.1"
            .parse::<StoreSettings>()
            .unwrap()
            .with_ending_replicas(1)
    );
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
    assert_eq!(
        (settings.limits.refresh_ahead_ms, settings.limits.refresh_lease),
        (0, crate::refresh::DEFAULT_LEASE)
    );
    assert_eq!(settings.providers.all[0].settings.refresh_timeout.as_secs(), 20);
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
fn heartbeats_come_at_least_as_often_as_the_session_api_promises() {
    let name = "SESSION_WATCH_HEARTBEAT_MS";
    for given in ["1000", "10000"] {
        assert!(settings(&[(name, given)]).is_ok(), "{given}");
    }
    assert_eq!(mistakes(&[(name, "10001")]), [name]);
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

const LIST: &str = "[[caller]]\nidentity = \"dns:orders.internal\"\nrpcs = [\"GetSession\"]\n";

const TLS: [(&str, &str); 3] = [
    ("SESSION_TLS_CERT_FILE", "cert.pem"),
    ("SESSION_TLS_KEY_FILE", "key.pem"),
    ("SESSION_CLIENT_CA_FILE", "ca.pem"),
];

#[test]
fn a_list_of_callers_needs_mutual_tls() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), LIST).unwrap();
    let list = ("SESSION_CALLERS", file.path().to_str().unwrap());
    let listed = settings(&[&TLS[..], &[list]].concat()).unwrap().callers.unwrap();
    assert_eq!(
        (listed.path.as_path(), listed.policy),
        (file.path(), callers::parse(LIST).unwrap())
    );
    for without in [&[][..], &TLS[..2], &[("SESSION_INSECURE", "true")]] {
        let wrong = settings(&[without, &[list]].concat()).unwrap_err().to_string();
        assert!(
            wrong.contains("needs SESSION_CLIENT_CA_FILE: callers are known by their certificates"),
            "{wrong}"
        );
    }
    assert!(settings(&TLS).unwrap().callers.is_none());
}

#[test]
fn a_list_of_callers_that_cannot_be_read_is_a_mistake_each_line_of_it() {
    let mistakes = |path: &str| mistakes(&[&TLS[..], &[("SESSION_CALLERS", path)]].concat());
    assert_eq!(mistakes("/nowhere/callers.toml"), ["SESSION_CALLERS"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(mistakes(path), ["SESSION_CALLERS"], "an empty list");
    std::fs::write(path, [0xff]).unwrap();
    assert_eq!(mistakes(path), ["SESSION_CALLERS"]);
    std::fs::write(
        path,
        "[[caller]]\nidentity = \"me\"\nrpcs = [\"Fly\", \"Swim\"]\n",
    )
    .unwrap();
    assert_eq!(mistakes(path), ["SESSION_CALLERS"; 3]);
}

#[test]
fn plaintext_for_anyone_is_refused_on_every_address_but_loopback() {
    for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[2001:db8::1]:1"] {
        assert_eq!(
            mistakes(&[("SESSION_LISTEN", listen)]),
            ["SESSION_LISTEN"],
            "{listen}"
        );
        let insecure = [("SESSION_LISTEN", listen), ("SESSION_INSECURE", "true")];
        assert!(settings(&insecure).is_ok(), "{listen}");
    }
    for listen in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "localhost:1"] {
        assert!(settings(&[("SESSION_LISTEN", listen)]).is_ok(), "{listen}");
    }
}
