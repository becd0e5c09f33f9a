use std::io::Write as _;

use super::*;

const BARE: &str =
    "[[transmitter]]\nid = \"idp\"\nissuer = \"https://id.example\"\naudience = \"https://edge.example\"\n";

fn mistakes(lines: &str) -> String {
    parse(&format!("{BARE}{lines}\n")).unwrap_err().to_string()
}

#[test]
fn a_transmitter_is_read_with_what_is_usual() {
    let file = parse(&format!("{BARE}delivery = \"push\"\n")).unwrap();
    let [one] = file.transmitters.as_slice() else {
        panic!("one transmitter");
    };
    assert_eq!(
        (one.id.as_str(), one.settings.issuer.as_str()),
        ("idp", "https://id.example")
    );
    assert_eq!(one.provider, "https://id.example");
    assert_eq!(one.audience, ["https://edge.example"]);
    assert_eq!(one.delivery, DeliveryMethod::Push(None));
    assert!(one.by_email && !one.settings.drafts);
    assert_eq!((&one.credentials, &one.authorization_file), (&None, &None));
    assert!(file.has_email());
    let without = parse(&format!("{BARE}delivery = \"push\"\nemail = false\n")).unwrap();
    assert!(!without.has_email());
}

#[test]
fn credentials_are_a_token_or_a_grant() {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    secret.write_all(b"secret").unwrap();
    let path = secret.path().display().to_string();
    let token = format!("{BARE}delivery = \"poll\"\ntoken_file = \"{path}\"\n");
    let token = parse(&token).unwrap().transmitters.remove(0);
    assert_eq!(
        token.credentials,
        Some(StreamCredentials::Token(path.clone().into()))
    );
    assert_eq!(token.delivery, DeliveryMethod::Poll);
    let client = format!(
        "{BARE}delivery = \"poll\"\ntoken_endpoint = \"https://id.example/token\"\nclient_id = \"us\"\nclient_secret_file = \"{path}\"\n"
    );
    let client = parse(&client).unwrap().transmitters.remove(0);
    assert!(matches!(
        client.credentials,
        Some(StreamCredentials::Client { scope: None, .. })
    ));
}

#[test]
fn every_mistake_is_named_with_its_line() {
    for (lines, told) in [
        ("", "line 1: the transmitter has no delivery"),
        (
            "delivery = \"pull\"",
            "line 5: delivery \"pull\" is unknown: write \"push\" or \"poll\"",
        ),
        (
            "delivery = \"poll\"\npush_url = \"https://e.example\"",
            "line 6: push_url is for",
        ),
        (
            "delivery = \"push\"\npush_url = \"http://e.example\"",
            "has to be an https address",
        ),
        (
            "delivery = \"push\"\ntoken_file = \"/nowhere\"",
            "line 6: the file /nowhere cannot be read",
        ),
        ("delivery = \"push\"\nclient_id = \"us\"", "are needed together"),
        ("delivery = \"push\"\nemails = true", "line 6: unknown key"),
        ("delivery = \"push\"\nemail = 1", "expected true or false"),
    ] {
        let mistakes = mistakes(lines);
        assert!(mistakes.contains(told), "{lines}: {mistakes}");
    }
    for (text, told) in [
        ("", "there is no transmitter"),
        ("[[transmitter]]\nid = \"A B\"\n", "id \"A B\" has to be a-z"),
        (
            "[[transmitter]]\nissuer = \"http://id.example\"\n",
            "has to be an https address without query and fragment",
        ),
        (
            "[[transmitter]]\nissuer = \"https://id.example?a\"\n",
            "without query and fragment",
        ),
    ] {
        let mistakes = parse(text).unwrap_err().to_string();
        assert!(mistakes.contains(told), "{text}: {mistakes}");
    }
}

#[test]
fn two_transmitters_share_neither_id_nor_issuer() {
    let twice = format!("{BARE}delivery = \"push\"\n{BARE}delivery = \"push\"\n");
    let mistakes = parse(&twice).unwrap_err().to_string();
    assert!(mistakes.contains("id \"idp\" is there twice"), "{mistakes}");
    assert!(
        mistakes.contains("issuer \"https://id.example\" is there twice"),
        "{mistakes}"
    );
}
