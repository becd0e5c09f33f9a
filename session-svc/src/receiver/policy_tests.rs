use chassis::settings::toml_file;

use super::*;

fn read(text: &str) -> Result<EventPolicy, String> {
    toml_file::parse(text, EventPolicy::read).map_err(|mistakes| mistakes.to_string())
}

#[test]
fn each_action_is_known_by_its_word_and_a_row_by_its_name() {
    let policy = read("session-revoked = \"note\"\ncredential-change = \"acr:urn:gold\"\n").unwrap();
    assert_eq!(policy.0["session-revoked"], "note");
    assert_eq!(policy.0["credential-change"], "acr:urn:gold");
    assert_eq!(policy.0.len(), 2, "what is not said is as it is without a table");
    for (text, told) in [
        ("session-revoked = \"End\"", "action \"End\" is unknown"),
        ("session-revoked = \"acr:\"", "is unknown"),
        ("session-revoked = \"acr:gold silver\"", "is unknown"),
        ("session-revokd = \"end\"", "session-revoked"),
        ("session-revoked = 1", "text in quotes"),
    ] {
        let mistakes = read(text).unwrap_err();
        assert!(mistakes.contains(told), "{text}: {mistakes}");
    }
}

#[test]
fn no_row_is_there_twice() {
    let names: std::collections::BTreeSet<_> = ROWS.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), ROWS.len());
}
