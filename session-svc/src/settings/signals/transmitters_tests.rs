use chassis::settings::toml_file::{self, FileMistakes};

use super::*;

const BARE: &str =
    "[[transmitter]]\nid = \"idp\"\nissuer = \"https://id.example\"\naudience = \"https://edge.example\"\n";

fn parse(text: &str) -> Result<TransmittersFile, FileMistakes> {
    toml_file::parse(text, read).map(Option::unwrap)
}

fn mistakes(lines: &str) -> String {
    parse(&format!("{BARE}{lines}\n")).unwrap_err().to_string()
}

#[test]
fn a_transmitter_is_read_with_its_defaults() {
    let file = parse(BARE).unwrap();
    let [one] = file.transmitters.as_slice() else {
        panic!("one transmitter");
    };
    assert_eq!(
        (one.id.as_str(), one.settings.issuer.as_str()),
        ("idp", "https://id.example")
    );
    assert_eq!(one.provider, "https://id.example");
    assert_eq!(one.audience, ["https://edge.example"]);
    assert!(one.by_email && !one.settings.drafts);
    assert!(one.authorization.is_none() && !one.has_global_token_revocation);
    assert!(file.has_email());
    let without = parse(&format!("{BARE}email = false\n")).unwrap();
    assert!(!without.has_email());
}

#[test]
fn every_mistake_is_named_with_its_line() {
    for (lines, told) in [
        (
            "configuration_url = \"http://id.example\"",
            "line 5: \"http://id.example\" has to be an https address",
        ),
        (
            "authorization_file = \"/nowhere\"",
            "line 5: the file /nowhere cannot be read",
        ),
        ("authorization_file = \"/dev/null\"", "the file has no text"),
        ("delivery = \"poll\"", "line 5: unknown key"),
        ("emails = true", "line 5: unknown key"),
        ("email = 1", "expected true or false"),
    ] {
        let mistakes = mistakes(lines);
        assert!(mistakes.contains(told), "{lines}: {mistakes}");
    }
    for (text, told) in [
        ("[policy]\n", "there is no transmitter"),
        ("[[transmitter]]\nid = \"A B\"\n", "id \"A B\" has to be a-z"),
        (
            "[[transmitter]]\nissuer = \"http://id.example\"\n",
            "has to be an https address",
        ),
        (
            "[[transmitter]]\nissuer = \"https://id.example?a\"\n",
            "no query, fragment or user",
        ),
    ] {
        let mistakes = parse(text).unwrap_err().to_string();
        assert!(mistakes.contains(told), "{text}: {mistakes}");
    }
}

#[test]
fn two_transmitters_share_neither_id_nor_issuer() {
    let twice = format!("{BARE}{BARE}");
    let mistakes = parse(&twice).unwrap_err().to_string();
    assert!(mistakes.contains("id \"idp\" appears twice"), "{mistakes}");
    assert!(
        mistakes.contains("issuer \"https://id.example\" appears twice"),
        "{mistakes}"
    );
}

#[test]
fn a_header_that_ends_sessions_identifies_one_transmitter() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "Bearer a").unwrap();
    let header = format!("authorization_file = {:?}\n", file.path());
    let other = "[[transmitter]]\nid = \"tool\"\nissuer = \"https://tool.example\"\naudience = \"a\"\n";
    let both =
        |revokes: &str| format!("{BARE}{header}global_token_revocation = true\n{other}{header}{revokes}");
    assert!(parse(&both("")).unwrap().transmitters[0].has_global_token_revocation);
    let mistakes = parse(&both("global_token_revocation = true\n"))
        .unwrap_err()
        .to_string();
    assert!(
        mistakes.contains("authorization_file appears twice"),
        "{mistakes}"
    );
}
