//! Which settings are rejected, by name, and which are not.

use chassis::settings::{SettingsError, Source};

use super::*;
use crate::certificates::Certificates;

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
fn the_defaults_are_those_of_the_manual() {
    let settings = settings(&[]).unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:50051");
    assert_eq!(
        (settings.lifetime.rolling_ms, settings.lifetime.absolute_ms),
        (86_400_000, 604_800_000)
    );
    assert_eq!(settings.limits.revalidate_ms, 0);
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
fn a_wrapped_key_needs_vault_and_a_token() {
    const WRAPPED: (&str, &str) = ("SESSION_ENCRYPTION_KEY", "vault:v1:c2VhbGVk");
    const ADDRESS: (&str, &str) = ("SESSION_VAULT_ADDR", "https://vault.example:8200");
    const TOKEN: (&str, &str) = ("SESSION_VAULT_TOKEN_FILE", "/nowhere/token");
    assert_eq!(mistakes(&[WRAPPED]), ["SESSION_VAULT_ADDR"]);
    assert_eq!(mistakes(&[WRAPPED, ADDRESS]), ["SESSION_VAULT_TOKEN_FILE"]);
    assert_eq!(mistakes(&[TOKEN]), ["SESSION_VAULT_TOKEN_FILE"]);
    // The agent may write the token later.
    let read = |more: &[(&str, &str)]| settings(&[&[WRAPPED, ADDRESS, TOKEN], more].concat());
    let transit = |more| read(more).unwrap().transit.unwrap();
    let found = transit(&[]);
    assert_eq!(
        (found.mount.as_str(), found.key.as_str()),
        ("transit", "vestibule")
    );
    let found = transit(&[("SESSION_VAULT_KEY", "admin/team/crypt/sessions")]);
    assert_eq!(
        (found.mount.as_str(), found.key.as_str()),
        ("admin/team/crypt", "sessions")
    );
    assert_eq!(transit(&[("SESSION_VAULT_KEY", "sessions")]).mount, "transit");
    let login = transit(&[("SESSION_VAULT_LOGIN", "admin/auth/kubernetes/session-svc")])
        .login
        .unwrap();
    assert_eq!(
        (login.path.as_str(), login.role.as_str()),
        ("admin/auth/kubernetes", "session-svc")
    );
    for (name, value) in [
        ("SESSION_VAULT_KEY", "transit/"),
        ("SESSION_VAULT_KEY", "../sys/seal"),
        ("SESSION_VAULT_LOGIN", "kubernetes/session-svc"),
        ("SESSION_VAULT_LOGIN", "auth/session-svc"),
        ("SESSION_VAULT_LOGIN", "session-svc"),
        ("SESSION_VAULT_CA_FILE", "/nowhere/ca.pem"),
    ] {
        let wrong = read(&[(name, value)]).unwrap_err();
        assert_eq!(wrong.mistakes[0].name, name, "{value}");
    }
    for address in [
        "http://vault.example:8200",
        "https://user:hunter2@vault.example",
        "https://vault.example/?namespace=admin",
    ] {
        assert_eq!(
            mistakes(&[WRAPPED, ("SESSION_VAULT_ADDR", address), TOKEN]),
            ["SESSION_VAULT_ADDR"],
            "{address}"
        );
    }
    assert!(settings(&[WRAPPED, ("SESSION_VAULT_ADDR", "http://127.0.0.1:8200"), TOKEN]).is_ok());
}

#[test]
fn plaintext_off_loopback_has_to_be_asked_for() {
    let listen = ("SESSION_LISTEN", "0.0.0.0:50051");
    assert_eq!(mistakes(&[listen]), ["SESSION_LISTEN"]);
    assert!(settings(&[listen, ("SESSION_INSECURE", "true")]).is_ok());
    let files = TlsNames::make();
    let [certificate, key, ca] = files.pairs();
    assert!(settings(&[listen, certificate, key]).is_ok());
    assert_eq!(mistakes(&[certificate]), ["SESSION_TLS_KEY_FILE"]);
    assert_eq!(mistakes(&[ca]), ["SESSION_CLIENT_CA_FILE"]);
}

const LIST: &str = "[[caller]]\nidentity = \"dns:orders.internal\"\nrpcs = [\"GetSession\"]\n";

/// The settings of mutual TLS, and their files.
struct TlsNames {
    made: Certificates,
    paths: [String; 3],
}

impl TlsNames {
    fn make() -> Self {
        let made = Certificates::make();
        let paths = ["server.pem", "server.key", "ca.pem"].map(|name| made.text(name));
        Self { made, paths }
    }

    fn pairs(&self) -> [(&str, &str); 3] {
        let [certificate, key, ca] = &self.paths;
        [
            ("SESSION_TLS_CERT_FILE", certificate),
            ("SESSION_TLS_KEY_FILE", key),
            ("SESSION_CLIENT_CA_FILE", ca),
        ]
    }
}

#[test]
fn files_of_certificates_are_opened_and_judged() {
    let files = TlsNames::make();
    let made = |name: &str| files.made.text(name);
    let judged = |change: [(&str, String); 1]| {
        let mut pairs = files.pairs();
        for (name, path) in &change {
            for pair in pairs.iter_mut().filter(|pair| pair.0 == *name) {
                pair.1 = path;
            }
        }
        settings(&pairs).map(|_| ()).map_err(|wrong| wrong.to_string())
    };
    assert_eq!(judged([("SESSION_LISTEN", String::new())]), Ok(()));
    let (certificate, key, ca) = (
        "SESSION_TLS_CERT_FILE",
        "SESSION_TLS_KEY_FILE",
        "SESSION_CLIENT_CA_FILE",
    );
    for (name, path, said) in [
        (certificate, "/nowhere/tls.crt".to_owned(), "cannot be read"),
        (certificate, made("server.key"), "swapped"),
        (key, "/nowhere/tls.key".to_owned(), "cannot be read"),
        (key, made("server.pem"), "swapped"),
        (key, made("client.key"), "does not belong"),
        (ca, "/nowhere/ca.crt".to_owned(), "cannot be read"),
        (ca, made("ca.key"), "no certificate"),
    ] {
        let wrong = judged([(name, path.clone())]).unwrap_err();
        let whole = wrong.contains(name) && wrong.contains(&path) && wrong.contains(said);
        assert!(whole, "{name}={path}: {wrong}");
        assert!(wrong.starts_with("1 setting is wrong"), "{wrong}");
    }
}

#[test]
fn the_files_of_a_store_are_looked_at_and_its_engine_is_not_asked() {
    let files = TlsNames::make();
    let made = |name: &str| files.made.text(name);
    let key = ("SESSION_ENCRYPTION_KEY", &*"ab".repeat(32));
    let judged = |store: &str| {
        let wrong = settings(&[key, ("SESSION_STORE", store)]);
        wrong.map(|_| ()).map_err(|wrong| wrong.to_string())
    };
    let (ca, own) = (made("ca.pem"), made("client.pem"));
    let address = |ca: &str, own: &str, key: &str| {
        format!("rediss://127.0.0.1:9?ca_file={ca}&cert_file={own}&key_file={key}")
    };
    assert_eq!(judged(&address(&ca, &own, &made("client.key"))), Ok(()));
    let (empty, text) = (made("empty"), made("text"));
    std::fs::write(&empty, "").unwrap();
    std::fs::write(&text, "dear diary, this is no store").unwrap();
    for (store, said) in [
        (
            address("/nowhere/ca.pem", &own, &made("client.key")),
            "/nowhere/ca.pem cannot be read",
        ),
        (
            address(&made("ca.key"), &own, &made("client.key")),
            "no certificate",
        ),
        (address(&ca, &made("client.key"), &own), "swapped"),
        (address(&ca, &own, &made("server.key")), "does not belong"),
        ("file:/nowhere/sessions".to_owned(), "create its directory"),
        (format!("file:{ca}/sessions"), "create its directory"),
        ("file:/".to_owned(), "cannot be opened"),
        (format!("file:{empty}"), "is empty"),
        (format!("file:{text}"), "is not a session store"),
    ] {
        let wrong = judged(&store).unwrap_err();
        assert!(
            wrong.contains("SESSION_STORE") && wrong.contains(said),
            "{store}: {wrong}"
        );
    }
}

#[test]
fn a_list_of_callers_needs_mutual_tls() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), LIST).unwrap();
    let list = ("SESSION_CALLERS", file.path().to_str().unwrap());
    let tls = TlsNames::make();
    let tls = tls.pairs();
    let listed = settings(&[&tls[..], &[list]].concat()).unwrap().callers;
    let expected = (file.path().to_owned(), callers::parse(LIST).unwrap());
    assert_eq!(listed, Some(expected));
    for without in [&[][..], &tls[..2], &[("SESSION_INSECURE", "true")]] {
        let wrong = settings(&[without, &[list]].concat()).unwrap_err().to_string();
        assert!(
            wrong.contains("needs SESSION_CLIENT_CA_FILE: certificates identify the callers"),
            "{wrong}"
        );
    }
    assert!(settings(&tls).unwrap().callers.is_none());
}

#[test]
fn a_list_of_callers_that_cannot_be_read_is_a_mistake_each_line_of_it() {
    let tls = TlsNames::make();
    let mistakes = |path: &str| mistakes(&[&tls.pairs()[..], &[("SESSION_CALLERS", path)]].concat());
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

#[test]
fn a_mistake_in_the_file_of_receivers_is_a_mistake_of_the_setting() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let key = include_str!("../../dev/scripted-provider/keys/rsa-0.pem");
    std::fs::write(path("key"), key).unwrap();
    let file = format!(
        "issuer = \"https://sessions.example\"\nsigning_key_file = {:?}\n[[receiver]]\nid = \"files\"\naudience = \"files\"\nurl = \"https://files.example\"\n",
        path("key"),
    );
    std::fs::write(path("receivers"), &file).unwrap();
    std::fs::write(path("wrong"), file + "subject = \"phone\"\n").unwrap();
    assert!(settings(&[]).unwrap().receivers.is_none());
    let name = "SESSION_SIGNALS";
    assert_eq!(mistakes(&[(name, &path("wrong"))]), [name]);
    let read = settings(&[(name, &path("receivers"))]).unwrap();
    assert_eq!(read.receivers.unwrap().all.len(), 1);
}
