//! A person's claims as they are kept: without the "sub" they begin with, because the subject stands beside them.
//!
//! The text comes back word for word. Releases before left "sub" out wherever it stood; read again, theirs begin with it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::session::claims::SUBJECT;

/// Claims without the subject, if it is what they begin with; as they are if not.
pub(super) fn without(claims: &str, subject: &str) -> String {
    match claims.strip_prefix(&beginning(subject)) {
        Some("}") => String::new(),
        Some(others) if others.starts_with(',') => format!("{{{}", &others[1..]),
        Some(_) | None => claims.to_owned(),
    }
}

/// Claims with the subject, if they lack it.
pub(super) fn with(claims: String, subject: &str) -> String {
    if claims.is_empty() {
        return format!("{}}}", beginning(subject));
    }
    let lacks_subject = serde_json::from_str::<SubjectMember>(&claims).is_ok_and(|named| named.sub.is_none());
    match claims.strip_prefix('{').filter(|_| lacks_subject) {
        Some(others) => format!("{},{others}", beginning(subject)),
        None => claims,
    }
}

fn beginning(subject: &str) -> String {
    format!(r#"{{"{SUBJECT}":{}"#, Value::from(subject))
}

/// Whether claims name somebody.
#[derive(Deserialize)]
struct SubjectMember {
    sub: Option<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_come_back_word_for_word() {
        for (claims, kept) in [
            (r#"{"sub":"a\"da"}"#, ""),
            (r#"{"sub":"a\"da", "n": 1e2}"#, r#"{ "n": 1e2}"#),
            (r#"{"sub":"a\"da","act":{"sub":"x"}}"#, r#"{"act":{"sub":"x"}}"#),
            (
                r#"{"name":"Ada","sub":"a\"da"}"#,
                r#"{"name":"Ada","sub":"a\"da"}"#,
            ),
            (r#"{ "sub":"a\"da"}"#, r#"{ "sub":"a\"da"}"#),
            (r#"{"sub":"a\"da" }"#, r#"{"sub":"a\"da" }"#),
            (r#"{"sub":"a\u0022da"}"#, r#"{"sub":"a\u0022da"}"#),
        ] {
            assert_eq!(without(claims, "a\"da"), kept);
            assert_eq!(with(kept.to_owned(), "a\"da"), claims);
        }
    }

    #[test]
    fn what_is_no_object_is_left_as_it_is() {
        for broken in ["{", "[]", "{\"name\":}"] {
            assert_eq!(with(broken.to_owned(), "ada"), broken);
        }
    }
}
