//! The folder of the program: its secrets, its sessions, its account pages, and the route table that its settings
//! describe.
//!
//! Invariant: a secret that exists is never replaced. A crash leaves either no secret or a whole one.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use chassis::random;
use chassis::settings::Source;

/// The account pages, built for the path `/vestibule/`.
#[derive(rust_embed::RustEmbed)]
#[folder = "../../web/dist-one"]
#[allow_missing = true]
struct WebApp;

const DATA_DIR: &str = "EDGE_DATA_DIR";
const ROUTES: &str = "EDGE_ROUTES";
const PAGES: &str = "web";
const UPSTREAM: &str = "EDGE_UPSTREAM";
const DOMAINS: &str = "EDGE_EMAIL_DOMAIN";

/// Gives values to the settings that follow from others. Creates the folder and its secrets at the first start.
pub(crate) fn provide(source: &mut Source) {
    let folder = source.value(DATA_DIR).to_owned();
    let folder = Path::new(&folder);
    if let Err(error) = create_folder(folder).and_then(|()| write_pages(&folder.join(PAGES))) {
        source.wrong(
            DATA_DIR,
            format!("the folder {} cannot be used: {error}", folder.display()),
        );
        return;
    }
    for (setting, file) in [
        ("EDGE_SECRET", "edge-secret"),
        ("SESSION_ENCRYPTION_KEY", "session-key"),
    ] {
        let path = folder.join(file);
        match create_secret(&path) {
            Ok(()) => source.provide_file(setting, path),
            Err(error) => source.wrong(DATA_DIR, format!("{} cannot be created: {error}", path.display())),
        }
    }
    source.provide(
        "SESSION_STORE",
        &format!("file:{}", folder.join("sessions.redb").display()),
    );
    let base_url = format!("http://{}", source.value("EDGE_LISTEN"));
    source.provide("EDGE_BASE_URL", &base_url);
    provide_routes(source, folder);
}

/// The route table that `EDGE_UPSTREAM` and `EDGE_EMAIL_DOMAIN` describe, in a file, so that it can be read and copied.
fn provide_routes(source: &mut Source, folder: &Path) {
    let (upstream, domains) = (
        source.value(UPSTREAM).to_owned(),
        source.value(DOMAINS).to_owned(),
    );
    match (source.value(ROUTES), upstream.as_str(), domains.as_str()) {
        ("", "", _) => {
            let text = "is required: the address of your application, such as http://127.0.0.1:8080. Or describe several in EDGE_ROUTES";
            return source.wrong(UPSTREAM, text.to_owned());
        }
        ("", ..) => {}
        (_, "", "") => return,
        (_, "", _) => {
            return source.wrong(
                DOMAINS,
                "write [allow] in the file of EDGE_ROUTES instead".to_owned(),
            );
        }
        (..) => return source.wrong(UPSTREAM, "keep one of EDGE_UPSTREAM and EDGE_ROUTES".to_owned()),
    }
    let pages = folder.join(PAGES).display().to_string();
    for (name, text) in [(DATA_DIR, &pages), (UPSTREAM, &upstream), (DOMAINS, &domains)] {
        if text.contains(['"', '\\']) || text.contains(char::is_control) {
            return source.wrong(
                name,
                "must not contain quotes, backslashes or control characters".to_owned(),
            );
        }
    }
    let file = folder.join("routes.toml");
    match replace(&file, routes(&upstream, &domains, &pages).as_bytes()) {
        Ok(()) => source.provide(ROUTES, &file.display().to_string()),
        Err(error) => source.wrong(DATA_DIR, format!("{} cannot be written: {error}", file.display())),
    }
}

fn routes(upstream: &str, domains: &str, pages: &str) -> String {
    let domains: Vec<String> = domains
        .split(',')
        .map(str::trim)
        .filter(|domain| !domain.is_empty())
        .map(|domain| format!("\"{domain}\""))
        .collect();
    let allow = match domains.as_slice() {
        [] => String::new(),
        domains => format!("[allow]\nemail_domains = [{}]\n\n", domains.join(", ")),
    };
    format!(
        r#"# Written at each start from EDGE_UPSTREAM and EDGE_EMAIL_DOMAIN. For your own rules, copy it and set EDGE_ROUTES.
{allow}[[route]]
path = "/vestibule/*" # the account pages
guard = "none"
upstream = "dir:{pages}"
strip_prefix = true

[[route]]
path = "/*"
guard = "page"
upstream = "{upstream}"

[route.headers]
X-Forwarded-User = "subject"
X-Forwarded-Email = "claim:email"
X-Forwarded-Groups = "claim:groups"
X-Forwarded-Preferred-Username = "claim:preferred_username"
"#
    )
}

fn create_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes the account pages that the folder lacks. Files of earlier releases stay: open tabs still ask for them.
fn write_pages(folder: &Path) -> io::Result<()> {
    for (name, page) in WebApp::iter().filter_map(|name| Some((folder.join(&*name), WebApp::get(&name)?))) {
        if fs::read(&name).is_ok_and(|content| content == *page.data) {
            continue;
        }
        create_folder(name.parent().unwrap_or(folder))?;
        replace(&name, &page.data)?;
    }
    Ok(())
}

/// Creates a secret of 32 random bytes in hex, unless the file exists.
fn create_secret(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let bytes: [u8; 32] = random::bytes().map_err(io::Error::other)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let new = path.with_extension(std::process::id().to_string());
    write(&new, hex.as_bytes())?;
    // Unlike a rename, a link fails if another start was faster.
    let linked = fs::hard_link(&new, path);
    fs::remove_file(&new)?;
    linked.or_else(|error| if path.try_exists()? { Ok(()) } else { Err(error) })
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    write(&new, content)?;
    fs::rename(new, path)
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use chassis::settings::{Reader, Source};

    use super::*;
    use crate::settings::{SERVICE, read};

    fn started(pairs: &[(&str, &str)], folder: &Path) -> Result<(), String> {
        let folder = folder.join("data").display().to_string();
        let fixed = [
            ("EDGE_DATA_DIR", folder.as_str()),
            ("OIDC_ISSUER_URL", "https://op.example"),
            ("OIDC_CLIENT_ID", "c"),
            (
                "OIDC_CLIENT_SECRET",
                "a client secret of thirty-two or more characters",
            ),
        ];
        let mut source = Source::from_pairs(&SERVICE, &[&fixed[..], pairs].concat());
        provide(&mut source);
        let mut reader = Reader::new(&source);
        let settings = read(&mut reader);
        reader
            .finish(settings)
            .map(drop)
            .map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn a_first_start_makes_secrets_that_later_starts_keep() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = || {
            ["edge-secret", "session-key"]
                .map(|name| fs::read(folder.path().join("data").join(name)).unwrap())
        };
        let pairs = [
            ("EDGE_UPSTREAM", "http://127.0.0.1:8080"),
            ("EDGE_EMAIL_DOMAIN", "example.com, *.example.org"),
        ];
        started(&pairs, folder.path()).unwrap();
        let first = secrets();
        assert_eq!(first[0].len(), 64);
        assert_ne!(first[0], first[1]);
        started(&pairs, folder.path()).unwrap();
        assert_eq!(first, secrets());
        let files = fs::read_dir(folder.path().join("data")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != PAGES).collect();
        names.sort();
        assert_eq!(names, ["edge-secret", "routes.toml", "session-key"]);
    }

    #[test]
    fn settings_that_contradict_each_other_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for (pairs, expected) in [
            (&[][..], "EDGE_UPSTREAM"),
            (
                &[("EDGE_UPSTREAM", "http://a"), ("EDGE_ROUTES", "r.toml")],
                "keep one of",
            ),
            (
                &[("EDGE_ROUTES", "r.toml"), ("EDGE_EMAIL_DOMAIN", "a.example")],
                "[allow]",
            ),
            (&[("EDGE_UPSTREAM", "http://a\"\nupstream")], "quotes"),
            (
                &[("EDGE_UPSTREAM", "http://a"), ("EDGE_EMAIL_DOMAIN", "a\"]")],
                "quotes",
            ),
            (&[("EDGE_UPSTREAM", "http://a/path")], "upstream has to be"),
            (
                &[
                    ("EDGE_UPSTREAM", "http://a"),
                    ("EDGE_EMAIL_DOMAIN", "a@b.example"),
                ],
                "is not a domain",
            ),
        ] {
            let mistakes = started(pairs, folder.path()).unwrap_err();
            assert!(mistakes.contains(expected), "{mistakes}");
        }
    }
}
