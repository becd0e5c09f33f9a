//! The file of several providers: its content, and every mistake in it.

use std::path::Path;

use chassis::settings::{Reader, Service, SettingNotice, Source};
use oidc::{ClientAuth, Par, ResponseMode};
use provider_settings::{ConfiguredProviders, TOPIC, read};
use tempfile::TempDir;

static SERVICE: Service = Service {
    name: "test",
    prefixes: &["TEST_"],
    shared_prefix: Some(provider_settings::PREFIX),
    about: "reads the providers' settings",
    first_settings: &[],
    fixed: &[],
    topics: &[&TOPIC],
};

/// A folder with this text as `providers.toml`, and with a secret file.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "a secret that is long enough, it is\n").unwrap();
    std::fs::write(folder.path().join("short"), "short\n").unwrap();
    let text = text.replace("{folder}", folder.path().to_str().unwrap());
    std::fs::write(folder.path().join("providers.toml"), text).unwrap();
    folder
}

fn read_with(
    folder: &Path,
    further: &[(&str, &str)],
) -> Result<(ConfiguredProviders, Vec<SettingNotice>), Vec<String>> {
    let file = folder.join("providers.toml").to_str().unwrap().to_owned();
    let pairs = [&[("OIDC_PROVIDERS", file.as_str())], further].concat();
    let source = Source::from_pairs(&SERVICE, &pairs);
    let mut reader = Reader::new(&source);
    let providers = read(&mut reader);
    let place = format!("{file}, ");
    let shown = |mistake: &SettingNotice| format!("{}: {}", mistake.name, mistake.text.replace(&place, ""));
    reader
        .finish(providers)
        .map_err(|wrong| wrong.mistakes.iter().map(shown).collect())
}

fn mistakes(text: &str) -> Vec<String> {
    let folder = folder(text);
    read_with(folder.path(), &[]).unwrap_err()
}

const TWO: &str = r#"default = "staff"

[[provider]]
id = "staff"
issuer_url = "https://login.example.com"
client_id = "edge"
client_secret_file = "{folder}/secret"
scope = ["openid", "email"]
resource = ["https://api.example.com", "https://more.example.com"]
clock_tolerance = 5
par = "require"

[[provider]]
id = "partner"
issuer_url = "https://idp.partner.example"
client_id = "edge-at-partner"
client_auth_method = "none"
response_mode = "form_post"
authorization_params = ["prompt=login"]
hosts = ["partner.example.com", "other.example.com:8443"]
callback_path = "/partner/callback"
"#;

#[test]
fn every_table_is_a_provider_with_settings_of_its_own() {
    let folder = folder(TWO);
    let (providers, warnings) = read_with(folder.path(), &[]).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(providers.ids(), ["staff", "partner"]);
    assert!(providers.listed && providers.default == 0);
    let (staff, partner) = (&providers.all[0], &providers.all[1]);
    assert_eq!(staff.settings.issuer, "https://login.example.com");
    assert_eq!(staff.settings.scope, "openid email");
    assert_eq!(staff.settings.resources.len(), 2);
    assert_eq!(
        (staff.settings.clock_tolerance_secs, staff.settings.par),
        (5, Par::Require)
    );
    assert!(matches!(
        staff.settings.credentials.auth,
        ClientAuth::SecretByMetadata(_)
    ));
    assert!(matches!(partner.settings.credentials.auth, ClientAuth::None));
    assert_eq!(partner.settings.scope, "openid profile email", "the default");
    assert_eq!(partner.settings.response_mode, ResponseMode::FormPost);
    assert_eq!(partner.settings.authorization_params.len(), 1);
    assert_eq!(partner.hosts.len(), 2);
    assert_eq!(partner.callback_path.as_deref(), Some("/partner/callback"));
}

#[test]
fn one_table_needs_no_default() {
    let text = TWO.replace("default = \"staff\"", "");
    let one = text.split("[[provider]]\nid = \"partner\"").next().unwrap();
    let folder = folder(one);
    let (providers, _) = read_with(folder.path(), &[]).unwrap();
    assert_eq!(
        (providers.ids(), providers.default),
        (vec!["staff".to_owned()], 0)
    );
}

// conformance: B-064
#[test]
fn two_providers_of_one_issuer_are_a_mistake() {
    let text = TWO.replace("https://idp.partner.example", "https://login.example.com");
    assert_eq!(
        mistakes(&text),
        [
            "OIDC_PROVIDERS: line 15: issuer_url \"https://login.example.com\" appears twice: two providers cannot \
          share an issuer, which identifies their answers and sessions"
        ]
    );
}

#[test]
fn what_picks_a_provider_picks_one() {
    let text = TWO
        .replace("id = \"partner\"", "id = \"staff\"\nhosts = [\"x.example\"]")
        .replace(
            "hosts = [\"partner.example.com\", \"other.example.com:8443\"]\n",
            "",
        )
        .replace(
            "par = \"require\"",
            "hosts = [\"x.example\"]\ncallback_path = \"/partner/callback\"",
        );
    let found = mistakes(&text).join("\n");
    for name in [
        "id \"staff\"",
        "host \"x.example\"",
        "callback_path \"/partner/callback\"",
    ] {
        let line = format!("{name} appears twice: it has to name one provider");
        assert!(found.contains(&line), "{name}: {found}");
    }
}

#[test]
fn every_mistake_is_told_at_once_with_its_line_and_in_the_words_of_the_file() {
    let text = r#"default = "nobody"
shared = true
[[provider]]
id = "Upper Case"
issuer_url = "http://login.example.com"
client_id = "edge"
client_secret = "a secret that stands here"
[[provider]]
id = "b"
client_secret_file = "{folder}/short"
scop = "openid"
dpop = "on"
hosts = ["https://partner.example.com"]
[[provider]]
id = "c"
issuer_url = "https://c.example"
client_id = "edge"
client_secret_file = "{folder}/missing"
id_token_signing_alg = "none"
http_timeout_ms = "soon"
"#;
    let found = mistakes(text);
    for expected in [
        "line 2: unknown key \"shared\"",
        "line 4: id \"Upper Case\" has to be",
        "line 5: issuer_url: must use https",
        "line 7: this file cannot contain secrets: write client_secret_file",
        "line 8: the provider has no issuer_url",
        "line 8: the provider has no client_id",
        "line 10: client_secret_file: must have at least 8 characters",
        "line 11: unknown key \"scop\": did you mean \"scope\"?",
        "line 8: dpop_key_file: is required with dpop=on",
        "line 13: host \"https://partner.example.com\" has to be",
        "line 18: client_secret_file: the file ",
        "line 19: id_token_signing_alg: must be only auto",
        "line 20: http_timeout_ms: must be whole milliseconds",
    ] {
        let line = format!("OIDC_PROVIDERS: {expected}");
        assert!(
            found.iter().any(|found| found.starts_with(&line)),
            "{expected}: {found:#?}"
        );
    }
    let all = found.join("\n");
    assert!(!all.contains("a secret that stands here"), "{all}");
    assert!(!all.contains("OIDC_CLIENT") && !all.contains("variable"), "{all}");
}

#[test]
fn a_default_is_the_id_of_one_of_them() {
    for (line, expected) in [
        ("", "line 1: default is required"),
        (
            "default = \"nobody\"",
            "line 1: no provider in this file has the id of default, \"nobody\"",
        ),
        ("default = 1", "line 1: expected a text in quotes"),
    ] {
        let found = mistakes(&TWO.replace("default = \"staff\"", line));
        assert!(
            found.iter().any(|found| found.contains(expected)),
            "{line}: {found:?}"
        );
    }
    assert!(mistakes("")[0].contains("there is no provider"));
    assert!(mistakes("[[provider]")[0].contains("line 1"));
}

#[test]
fn providers_and_their_ids_are_bounded() {
    let found = mistakes(&"[[provider]]\n".repeat(101)).join("\n");
    assert!(
        found.contains("there are 101 providers; at most 100 are taken"),
        "{found}"
    );
    assert!(
        !mistakes(&"[[provider]]\n".repeat(100))
            .join("\n")
            .contains("at most")
    );
    for (length, legal) in [(32, true), (33, false)] {
        let text = TWO.replace("partner\"\nissuer", &format!("{}\"\nissuer", "p".repeat(length)));
        let folder = folder(&text);
        assert_eq!(read_with(folder.path(), &[]).is_ok(), legal, "{length}");
    }
}

#[test]
fn the_plain_variables_are_a_mistake_beside_the_file() {
    let folder = folder(TWO);
    let beside = [
        ("OIDC_ISSUER_URL", "https://c.example"),
        ("OIDC_CLIENT_SECRET", "a secret of nobody"),
    ];
    let found = read_with(folder.path(), &beside).unwrap_err();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("OIDC_ISSUER_URL: is set next to OIDC_PROVIDERS"));
    assert!(found[1].starts_with("OIDC_CLIENT_SECRET: is set next to OIDC_PROVIDERS"));
}

#[test]
fn the_proxy_of_the_process_is_that_of_every_provider() {
    let folder = folder(TWO);
    let proxy = [("HTTPS_PROXY", "http://proxy.example:3128")];
    let (providers, _) = read_with(folder.path(), &proxy).unwrap();
    assert!(
        providers
            .settings()
            .all(|settings| settings.credentials.proxy.is_some())
    );
    let found = mistakes(&TWO.replace("par =", "https_proxy ="));
    assert!(found[0].contains("unknown key \"https_proxy\""), "{found:?}");
}

#[test]
fn the_file_for_kubernetes_is_one() {
    let text = include_str!("../../../../k8s/components/providers/providers.toml");
    let folder = folder(
        &text
            .replace("/etc/vestibule/provider/staff", "{folder}/secret")
            .replace("/etc/vestibule/provider/partner", "{folder}/secret"),
    );
    let (providers, warnings) = read_with(folder.path(), &[]).unwrap();
    assert_eq!(providers.ids(), ["staff", "partner"]);
    assert!(warnings.is_empty(), "{warnings:?}");
}
