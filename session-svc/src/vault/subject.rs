//! Stores a user's claims without a leading "sub", because the session has the subject.
//!
//! The restored text is byte-exact. Shortened claims begin with a comma or closing brace, unlike JSON.

use serde_json::Value;

use crate::session::claims::SUBJECT;

/// The first character of shortened claims.
const AFTER_SUBJECT: [char; 2] = [',', '}'];

/// The claims without a leading subject; unchanged if they do not begin with it.
pub(super) fn without(claims: &str, subject: &str) -> String {
    let others = claims.strip_prefix(&beginning(subject));
    let others = others.filter(|others| others.starts_with(AFTER_SUBJECT));
    others.unwrap_or(claims).to_owned()
}

/// The claims with the subject put back, if they were shortened.
pub(super) fn with(claims: &str, subject: &str) -> String {
    if claims.starts_with(AFTER_SUBJECT) {
        beginning(subject) + claims
    } else {
        claims.to_owned()
    }
}

fn beginning(subject: &str) -> String {
    format!(r#"{{"{SUBJECT}":{}"#, Value::from(subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_come_back_word_for_word() {
        for (claims, kept) in [
            (r#"{"sub":"a\"da"}"#, "}"),
            (r#"{"sub":"a\"da", "n": 1e2}"#, r#", "n": 1e2}"#),
            (r#"{"sub":"a\"da","act":{"sub":"x"}}"#, r#","act":{"sub":"x"}}"#),
            (
                r#"{"name":"Ada","sub":"a\"da"}"#,
                r#"{"name":"Ada","sub":"a\"da"}"#,
            ),
            (r#"{ "sub":"a\"da"}"#, r#"{ "sub":"a\"da"}"#),
            (r#" {"sub":"a\"da"}"#, r#" {"sub":"a\"da"}"#),
            (r#"{"sub":"a\"da" }"#, r#"{"sub":"a\"da" }"#),
            (r#"{"sub":"a\u0022da"}"#, r#"{"sub":"a\u0022da"}"#),
            ("{}", "{}"),
        ] {
            assert_eq!(without(claims, "a\"da"), kept);
            assert_eq!(with(kept, "a\"da"), claims);
        }
    }
}
