use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chassis::settings::{Reader, Source};

use super::table::{MOD_AUTH_OPENIDC, OAUTH2_PROXY, Row, find, find_alpha};
use super::{Mistake, convert};
use crate::settings::{SERVICE, read};

const OPTIONS: &str = include_str!("../../tests/oauth2-proxy-options.txt");

/// Settings of every program.
const SHARED: [&str; 3] = ["LOG_FORMAT", "RUST_LOG", "AUDIT_LOG"];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/migrate")
}

/// Converts texts, each in a file of its own. Returns the report, whether it needs a decision, and the folder.
fn converted(texts: &[&str]) -> Result<(String, bool, tempfile::TempDir), Mistake> {
    let folder = tempfile::tempdir().unwrap();
    let path = |at: usize| folder.path().join(format!("in{at}"));
    for (at, text) in texts.iter().enumerate() {
        fs::write(path(at), text).unwrap();
    }
    let files: Vec<PathBuf> = (0..texts.len()).map(path).collect();
    let (report, needs_review) = convert(&files, folder.path())?;
    Ok((report, needs_review, folder))
}

fn written(folder: &tempfile::TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

fn routes_of(texts: &[&str]) -> String {
    let (_, _, folder) = converted(texts).unwrap();
    written(&folder, "routes.toml")
}

fn settings_of(texts: &[&str]) -> BTreeMap<String, String> {
    let (_, _, folder) = converted(texts).unwrap();
    let text = written(&folder, "settings.env");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once('=').unwrap());
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What the program finds wrong in the files of a folder.
fn mistakes(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("settings.env")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut pairs: Vec<(&str, &str)> = lines.map(|line| line.split_once('=').unwrap()).collect();
    let data = folder.join("data").display().to_string();
    pairs.push(("EDGE_DATA_DIR", &data));
    let mut source = Source::from_pairs(&SERVICE, &pairs);
    crate::data::provide(&mut source);
    let mut reader = Reader::new(&source);
    let settings = read(&mut reader);
    reader.finish(settings).err().map(|mistakes| mistakes.to_string())
}

#[test]
fn every_documented_option_has_a_row_and_every_counterpart_exists() {
    let names = || OPTIONS.lines().filter(|line| !line.starts_with('#'));
    let missing: Vec<&str> = names()
        .filter(|name| {
            find(&OAUTH2_PROXY, name).is_none_or(|row| row.name != *name) && find_alpha(name).is_none()
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(names().count() > 280, "the list is whole");
    let settings = SERVICE.topics.iter().flat_map(|topic| topic.settings);
    let known: BTreeSet<String> = settings
        .flat_map(|setting| [setting.name.to_owned(), setting.file_variable()])
        .chain(SHARED.map(str::to_owned))
        .collect();
    let is_name = |word: &&str| {
        ["EDGE_", "OIDC_", "SESSION_", "AUDIT_", "LOG_", "RUST_", "HTTPS_"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
    };
    let check = |row: &Row| {
        let text = format!("{} {}", row.action, row.text);
        let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        for word in words.filter(is_name) {
            assert!(known.contains(word), "{}: {word}", row.name);
        }
        let is_said = !row.text.is_empty() || row.action.contains(' ');
        assert!(
            is_said && ["text", "list", "bool"].contains(&row.kind),
            "{}",
            row.name
        );
    };
    OAUTH2_PROXY.iter().chain(MOD_AUTH_OPENIDC.iter()).for_each(check);
}

/// With `WRITE_EXAMPLES` in the environment the test writes the expected files.
#[test]
fn the_examples_of_the_documents_are_what_the_command_writes() {
    for (example, needs_review) in [
        ("oauth2-proxy", true),
        ("oauth2-proxy-nginx", false),
        ("oauth2-proxy-alpha", true),
        ("mod_auth_openidc", true),
    ] {
        let folder = examples().join(example);
        let expected = ["settings.env", "routes.toml", "report.txt"];
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let is_input = |path: &PathBuf| expected.iter().all(|name| !path.ends_with(name));
        let mut inputs: Vec<PathBuf> = entries.filter(is_input).collect();
        inputs.sort();
        let output = tempfile::tempdir().unwrap();
        let (report, review) = convert(&inputs, output.path()).unwrap();
        let prefix = format!("{}/", folder.display());
        let shown = format!("{}/", output.path().display());
        for name in expected {
            let found = match name {
                "report.txt" => report.clone(),
                name => fs::read_to_string(output.path().join(name)).unwrap(),
            };
            let found = found.replace(&prefix, "").replace(&shown, "");
            if std::env::var_os("WRITE_EXAMPLES").is_some() {
                fs::write(folder.join(name), &found).unwrap();
            }
            let wanted = fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert_eq!(found, wanted, "{example}/{name}");
        }
        assert_eq!(review, needs_review, "{example}");
    }
}

const BASE: &str = "--client-id=c --client-secret=0123456789abcdef --cookie-secret=0123456789abcdef \
    --oidc-issuer-url=https://op.example --provider=oidc --redirect-url=https://a.example/oauth2/callback ";

#[test]
fn the_program_accepts_what_the_command_writes() {
    let base = format!("{BASE} --upstream=http://a:1/ --upstream=http://b:2/b/");
    let more =
        " --email-domain=example.com --allowed-group=x --skip-auth-route=GET=^/open/.* --api-route=^/api
        --prompt=login --cookie-domain=.a.example --metrics-address=:9100
        --skip-auth-regex=^/b/x$ --acr-values=gold --pass-access-token --upstream-timeout=1m30s";
    let (report, needs_review, folder) = converted(&[&format!("{base}{more}")]).unwrap();
    assert!(!needs_review, "{report}");
    assert_eq!(
        mistakes(folder.path()),
        None,
        "{}",
        written(&folder, "routes.toml")
    );
}

#[test]
fn the_program_does_not_start_with_a_restriction_that_was_lost() {
    for lost in [
        "--google-group=a@x.example",
        "--allowed-role=client:admin",
        "--gitlab-project=a/b",
        "--bitbucket-team=t",
    ] {
        let (report, needs_review, folder) =
            converted(&[&format!("{BASE} --upstream=http://a:1 {lost}")]).unwrap();
        assert!(needs_review && report.contains("REVIEW"), "{report}");
        let mistakes = mistakes(folder.path()).unwrap();
        assert!(mistakes.contains("review"), "{mistakes}");
    }
}

#[test]
fn only_paths_that_an_expression_surely_matches_are_opened() {
    for (regex, path) in [
        ("^/open", Some("/open/*")),
        ("^/open$", Some("/open")),
        ("^/open/", Some("/open/*")),
        ("^/open/.*", Some("/open/*")),
        ("^/open/.*$", Some("/open/*")),
        (r"^/robots\\.txt$", Some("/robots.txt")),
        ("GET=^/open$", Some("/open")),
        ("/open", None),
        ("^/", None),
        ("^/.*", None),
        (".*", None),
        ("^/(a|b)", None),
        ("^/a[0-9]", None),
        ("^/a/../b", None),
        ("^//a", None),
        ("^/a|^/b", None),
        ("!=^/private", None),
        ("GET!=^/private", None),
        ("^/api/auth/login", None),
        ("^/oauth2/start", None),
        (r"^/\\w+", None),
    ] {
        let config = format!("upstreams = [\"http://a:1/\"]\nskip_auth_routes = [\"{regex}\"]");
        let (report, needs_review, folder) = converted(&[&config]).unwrap();
        let routes = written(&folder, "routes.toml");
        assert_eq!(needs_review, path.is_none(), "{regex}: {report}");
        let open = routes.matches("guard = \"none\"").count();
        assert_eq!(
            open,
            1 + usize::from(path.is_some()),
            "without the account pages: {regex}: {routes}"
        );
        if let Some(path) = path {
            assert!(
                routes.contains(&format!("path = \"{path}\"\nguard = \"none\"")),
                "{regex}: {routes}"
            );
        }
    }
}

#[test]
fn an_open_path_includes_the_upstreams_below_it() {
    let routes =
        routes_of(&["--upstream=http://a:1/ --upstream=http://b:2/open/b/ --skip-auth-route=^/open"]);
    for (path, upstream) in [("/open/*", "http://a:1"), ("/open/b/*", "http://b:2")] {
        let rule = format!("path = \"{path}\"\nguard = \"none\"\nupstream = \"{upstream}\"");
        assert!(routes.contains(&rule), "{routes}");
    }
}

#[test]
fn every_address_of_a_domain_may_pass_only_if_the_input_says_so() {
    let allow = |flags: &str| {
        let routes = routes_of(&[&format!("--upstream=http://a:1/ {flags}")]);
        let start = routes.find("[allow]");
        start.map(|start| routes[start..].split("\n\n").next().unwrap().to_owned())
    };
    assert_eq!(allow("--email-domain=*"), None);
    assert_eq!(
        allow("--email-domain=a.example,.b.example"),
        Some("[allow]\nemail_domains = [\"a.example\", \"*.b.example\"]".to_owned())
    );
    assert_eq!(
        allow("--email-domain=* --authenticated-emails-file=/e"),
        Some("[allow]\nemails_file = \"/e\"".to_owned())
    );
    assert_eq!(
        allow("--allowed-group=a --keycloak-group=b --oidc-groups-claim=realm_access.roles"),
        Some("[allow]\ngroups = [\"a\", \"b\"]\ngroups_claim = \"realm_access.roles\"".to_owned())
    );
}

#[test]
fn proxies_are_trusted_only_if_the_input_names_them() {
    for (flags, trusted) in [
        ("--reverse-proxy=true", None),
        ("--reverse-proxy --trusted-proxy-ip=10.0.0.1", Some("10.0.0.1")),
        ("--trusted-proxy-ip=10.0.0.1", None),
        ("--reverse-proxy --trusted-proxy-ip=0.0.0.0/0,::/0", None),
    ] {
        let settings = settings_of(&[&format!("--upstream=http://a:1/ {flags}")]);
        assert_eq!(
            settings.get("EDGE_TRUSTED_PROXIES").map(String::as_str),
            trusted,
            "{flags}"
        );
    }
}

#[test]
fn flags_override_the_environment_and_the_environment_overrides_files() {
    let cfg = "client_id = \"of-file\"\nscope = \"openid a\"";
    let env = "OAUTH2_PROXY_CLIENT_ID=of-environment\nOTHER=x\n";
    let settings = settings_of(&[
        cfg,
        env,
        "oauth2-proxy --client-id of-flags --cookie-samesite=Lax",
    ]);
    assert_eq!(settings["OIDC_CLIENT_ID"], "of-flags");
    assert_eq!(settings["OIDC_SCOPE"], "openid a");
    assert_eq!(settings["EDGE_COOKIE_SAME_SITE"], "lax");
    assert_eq!(settings["EDGE_LISTEN"], "127.0.0.1:4180");
    let settings = settings_of(&["args:\n  - --client-id=c\n  - \"--scope=openid b\"\n"]);
    assert_eq!(
        (
            settings["OIDC_CLIENT_ID"].as_str(),
            settings["OIDC_SCOPE"].as_str()
        ),
        ("c", "openid b")
    );
}

#[test]
fn a_provider_leads_to_its_issuer() {
    for (flags, issuer) in [
        ("--client-id=c", Some("https://accounts.google.com")),
        ("--provider=gitlab", Some("https://gitlab.com")),
        (
            "--provider=azure --azure-tenant=t",
            Some("https://login.microsoftonline.com/t/v2.0"),
        ),
        (
            "--provider=oidc --oidc-issuer-url=https://op.example",
            Some("https://op.example"),
        ),
        ("--provider=github --login-url=https://github.example/login", None),
        ("--provider=oidc", None),
    ] {
        let settings = settings_of(&[flags]);
        assert_eq!(
            settings.get("OIDC_ISSUER_URL").map(String::as_str),
            issuer,
            "{flags}"
        );
    }
}

#[test]
fn secrets_are_in_files_of_the_owner_and_nowhere_else() {
    let secrets = ["a-client-secret-of-this-test", "a-redis-secret"];
    let flags = format!(
        "--client-secret={} --cookie-secret=of-the-old-cookies --redis-connection-url=redis://:{}@r:1/2",
        secrets[0], secrets[1]
    );
    let (report, _, folder) = converted(&[&flags]).unwrap();
    let shown = report + &written(&folder, "settings.env") + &written(&folder, "routes.toml");
    for secret in secrets {
        assert!(!shown.contains(secret), "{shown}");
    }
    for (name, content) in [
        ("oidc-client-secret", secrets[0]),
        ("session-store", "redis://:a-redis-secret@r:1/2"),
    ] {
        assert_eq!(written(&folder, name), content);
        let mode = fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        assert!(shown.contains(&format!("{name}\n")), "{shown}");
    }
}

#[test]
fn no_file_is_overwritten() {
    for name in ["settings.env", "routes.toml", "oidc-client-secret"] {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in");
        fs::write(&input, "client_secret = \"0123456789abcdef\"").unwrap();
        fs::write(folder.path().join(name), "mine").unwrap();
        let mistake = convert(&[input], folder.path()).unwrap_err().to_string();
        assert!(
            mistake.contains(name) && mistake.contains("exists already"),
            "{mistake}"
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "nothing else was written"
        );
    }
}

#[test]
fn hostile_input_is_a_mistake_with_its_place() {
    let deep = "a:\n".to_owned()
        + &(1..40)
            .map(|depth| format!("{}a:\n", " ".repeat(depth)))
            .collect::<String>();
    let flow = format!("a: {}", "[".repeat(1000));
    let wide = format!("a: {}", "[".repeat(900_000));
    let many = (0..3000).map(|at| format!("--x{at}=1\n")).collect::<String>();
    for (text, problem) in [
        ("upstreamConfig: &a\n  x: *a", "Aliases"),
        ("a: 1\nb: *x", "line 2"),
        ("a: 1\na: 2", "line 2"),
        (&deep, "Depth"),
        (&flow, "line 1"),
        (&wide, "line 1"),
        ("a: 1\n---\nb: 2", "multiple YAML documents"),
        ("just words", "expected options"),
        ("client_id = \"a\"\nclient_id = \"b\"", "line 2"),
        ("client_id = \"a", "line 1"),
        ("--client-id", "in0:1: the flag has no value"),
        (&many, "too many options"),
        ("OIDCClientID \"a", "in0:1: a closing quote"),
    ] {
        let mistake = converted(&[text])
            .map(|(report, ..)| report)
            .unwrap_err()
            .to_string();
        assert!(mistake.contains(problem), "{problem}: {mistake}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, content, problem) in [
        ("large", vec![b'#'; (1 << 20) + 1], "larger than 1 MiB"),
        ("binary", vec![0xff, 0xfe, 0x41], "is not UTF-8 text"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let mistake = convert(&[path], folder.path()).unwrap_err().to_string();
        assert!(mistake.contains(problem), "{mistake}");
    }
    assert!(convert(&[folder.path().join("absent")], folder.path()).is_err());
}

#[test]
fn a_value_cannot_leave_its_line_or_its_quotes() {
    let nasty = "a\\\"]\\n[[route]]\\npath = \\\"/x\\\"\\u007f";
    let config = format!(
        "client_id = \"{nasty}\"\nprovider_display_name = \"$(id)\"\nclient_secret = \"{nasty}\"\n\
         allowed_groups = [\"{nasty}\"]\nauthenticated_emails_file = \"{nasty}\"\nupstreams = [\"http://a:1/\"]\n\
         skip_auth_routes = [\"{nasty}\"]\nscope = \"openid\\nEDGE_LISTEN=0.0.0.0:1\"\noidc_email_claim = \"{nasty}\""
    );
    let (report, needs_review, folder) = converted(&[&config]).unwrap();
    assert!(needs_review);
    assert!(
        !report.contains("\n[[route]]") && !report.contains('\u{7f}'),
        "{report}"
    );
    let settings = written(&folder, "settings.env");
    assert!(
        !settings.contains("0.0.0.0:1") && !settings.contains("$(id)"),
        "{settings}"
    );
    let routes = written(&folder, "routes.toml");
    let table = toml::de::DeTable::parse(&routes).unwrap();
    let names: BTreeSet<&str> = table.get_ref().keys().map(|key| &**key.get_ref()).collect();
    assert_eq!(names, BTreeSet::from(["allow", "review", "route"]), "{routes}");
    assert_eq!(
        routes.lines().filter(|line| *line == "[[route]]").count(),
        2,
        "{routes}"
    );
}

#[test]
fn apache_is_an_upstream_and_its_requirements_block() {
    for (required, needs_review) in [
        ("Require valid-user", false),
        ("Require all granted", false),
        ("Require claim groups:a", true),
        ("Require claims_expr .a", true),
        ("Require not claim a:x", true),
        ("require user kate", true),
        ("Require ip 10.0.0.1", true),
    ] {
        let config = format!("OIDCClientID c\n<Location /a>\n{required}\n</Location>");
        let (report, is_reviewed, folder) = converted(&[&config]).unwrap();
        let routes = written(&folder, "routes.toml");
        assert_eq!(is_reviewed, needs_review, "{required}: {report}");
        assert_eq!(routes.contains("review = "), needs_review, "{required}: {routes}");
        assert!(routes.contains("path = \"/*\"\nguard = \"page\"\nupstream = \"http://127.0.0.1:8080\""));
    }
}

#[test]
fn the_program_accepts_the_example_for_nextjs() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().display();
    for name in ["settings.env", "routes.toml"] {
        let text = fs::read_to_string(examples().join("nextjs-auth0").join(name)).unwrap();
        let text = text.replace("=routes.toml", &format!("={shown}/routes.toml"));
        let text = text.replace("=client-secret", &format!("={shown}/client-secret"));
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::write(
        folder.path().join("client-secret"),
        "an-example-of-a-client-secret-0001",
    )
    .unwrap();
    assert_eq!(mistakes(folder.path()), None);
}
