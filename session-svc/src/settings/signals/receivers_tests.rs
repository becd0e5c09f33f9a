//! Valid files of receivers, and the errors for invalid ones.

use std::path::Path;

use chassis::settings::toml_file::{self, FileMistakes};

use super::*;

fn parse(text: &str) -> Result<Receivers, FileMistakes> {
    toml_file::parse(text, read).map(Option::unwrap)
}

const KEY: &str = include_str!("../../../../dev/scripted-provider/keys/rsa-0.pem");

/// A directory with a key and a header.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("key.pem", KEY),
        ("no-key", "no key\n"),
        ("header", "Bearer secret\n"),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// The text with `@` for the directory.
fn at(directory: &Path, text: &str) -> String {
    text.replace('@', &format!("{}/", directory.display()))
}

#[test]
fn a_receiver_has_defaults_unless_its_table_says_more() {
    let directory = directory();
    let text = r#"
issuer = "https://sessions.example/ssf"
signing_key_file = "@key.pem"

[[receiver]]
id = "one"
audience = "https://one.example"
url = "https://one.example/events"
authorization_file = "@header"

[[receiver]]
id = "two"
audience = "two"
url = "https://two.example/events"
subject = "email"
providers = ["https://idp.example"]
"#;
    let receivers = parse(&at(directory.path(), text)).unwrap();
    assert_eq!(receivers.issuer, "https://sessions.example/ssf");
    let [one, two] = &receivers.all[..] else {
        panic!("{receivers:?}");
    };
    assert_eq!(one.subject, SubjectFormat::IssSub);
    assert!(one.receives("https://any.example") && !two.receives("https://any.example"));
    let shown = format!("{receivers:?}");
    for secret in ["Bearer", "PRIVATE"] {
        assert!(!shown.contains(secret), "{secret} is shown");
    }
}

#[test]
fn every_mistake_is_named_at_once_with_its_line() {
    let directory = directory();
    let text = r#"
issuer = "http://sessions.example"
signing_key_file = "@no-key"
[[receiver]]
id = "One"
url = "https://one.example"
authorization_file = "@missing"
[[receiver]]
id = "two"
audience = "two"
url = "https://two.example"
subject = "phone"
colour = "red"
[[receiver]]
id = "two"
audience = "two"
[[receiver]]
id = "four"
audience = "four"
url = "http://four.example"
"#;
    let mistakes = parse(&at(directory.path(), text)).unwrap_err();
    let found: Vec<(usize, &str)> = mistakes
        .iter()
        .map(|mistake| (mistake.line, mistake.text.as_str()))
        .collect();
    let expected = [
        (2, "https address"),
        (3, "signing_key_file is not a PEM"),
        (4, "no audience"),
        (5, "has to be a-z"),
        (7, "cannot be read"),
        (12, "subject \"phone\" is unknown"),
        (13, "colour"),
        (14, "the id \"two\" appears twice"),
        (14, "has no url"),
        (20, "https address"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.0, expected.0, "{found:?}");
        assert!(found.1.contains(expected.1), "{found:?}: {expected:?}");
    }
}

#[test]
fn a_file_without_receivers_is_a_mistake() {
    let directory = directory();
    let text = "issuer = \"https://sessions.example\"\nsigning_key_file = \"@key.pem\"\n";
    let mistakes = parse(&at(directory.path(), text)).unwrap_err();
    assert!(mistakes.to_string().contains("no receiver"), "{mistakes}");
}
