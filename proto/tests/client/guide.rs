//! docs/session-api.md agrees with the code on every reason.

use vestibule_session_api::client::{Advice, SessionError};
use vestibule_session_api::error;
use vestibule_session_api::v1::ErrorReason;

const GUIDE: &str = include_str!("../../../docs/session-api.md");

/// A status code as gRPC spells it: `FailedPrecondition` is `FAILED_PRECONDITION`.
fn spelled(code: tonic::Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[test]
fn the_table_of_errors_is_the_code() {
    let reasons = (1..).map_while(|number| ErrorReason::try_from(number).ok());
    let mut rows = 0;
    for reason in reasons {
        let name = reason.as_str_name();
        let row = GUIDE
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("{name} is not in the guide"));
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(columns[2], format!("`{}`", spelled(error::code(reason))), "{row}");
        let told = SessionError {
            reason,
            message: String::new(),
            metadata: Default::default(),
        };
        let advice = match told.advice() {
            Advice::TryAgain => "try again",
            Advice::ReadAgain => "read again",
            Advice::SignIn => "sign in",
            Advice::GrantScopes => "grant scopes",
            Advice::Mistake => "mistake",
        };
        assert_eq!(columns[4], advice, "{row}");
        rows += 1;
    }
    let written = GUIDE.lines().filter(|line| line.starts_with("| `ERR_")).count();
    assert_eq!(rows, written, "the guide knows a reason that does not exist");
}
