//! The subject of an event in drafts of the standard: `subject` inside the event. Some vendors still use it.

use serde_json::{Map, Value};

/// Members of a complex subject (SSF 1.0, section 3.3). They identify a complex subject that has no `format`.
const COMPLEX_MEMBERS: [&str; 7] = [
    "user",
    "device",
    "session",
    "application",
    "tenant",
    "org_unit",
    "group",
];

/// The `subject` of the one event, converted to a `sub_id`; `None` if the event has no subject.
pub(crate) fn draft_subject(events: Option<&Value>) -> Option<Value> {
    let mut events = events?.as_object()?.values();
    let (event, None) = (events.next()?, events.next()) else {
        return None;
    };
    event.get("subject").map(in_final_words)
}

/// Converts `subject_type` to `format`, with `_` between words. A complex subject gets the format `complex`.
fn in_final_words(subject: &Value) -> Value {
    let Some(members) = subject.as_object() else {
        return subject.clone();
    };
    let is_complex = members
        .keys()
        .any(|name| COMPLEX_MEMBERS.contains(&name.as_str()));
    let format = match (members.get("format"), members.get("subject_type")) {
        (Some(format), _) => Some(format.clone()),
        (None, Some(draft)) => draft.as_str().map(|draft| Value::from(draft.replace('-', "_"))),
        (None, None) => is_complex.then(|| Value::from("complex")),
    };
    let others = members
        .iter()
        .filter(|(name, _)| !["format", "subject_type"].contains(&name.as_str()));
    let others = others.map(|(name, value)| {
        let value = if is_complex {
            in_final_words(value)
        } else {
            value.clone()
        };
        (name.clone(), value)
    });
    let format = format.map(|format| ("format".to_owned(), format));
    Value::Object(format.into_iter().chain(others).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn subjects_of_drafts_are_said_in_the_words_of_the_standard() {
        let person = json!({"format": "iss_sub", "iss": "https://op.example", "sub": "ada"});
        let draft = json!({"subject_type": "iss-sub", "iss": "https://op.example", "sub": "ada"});
        let opaque = json!({"format": "opaque", "id": "s"});
        for (subject, said) in [
            (person.clone(), person.clone()),
            (draft.clone(), person.clone()),
            (
                json!({"user": draft}),
                json!({"format": "complex", "user": person}),
            ),
            (
                json!({"user": person, "session": opaque}),
                json!({"format": "complex", "user": person, "session": opaque}),
            ),
            (
                json!({"format": "complex", "user": person}),
                json!({"format": "complex", "user": person}),
            ),
            (json!({"sub": "ada"}), json!({"sub": "ada"})),
            (json!("ada"), json!("ada")),
        ] {
            let events = json!({"https://schemas.openid.net/secevent/caep/event-type/session-revoked": {"subject": subject}});
            assert_eq!(draft_subject(Some(&events)), Some(said), "{subject}");
        }
    }

    #[test]
    fn of_several_events_none_says_whom_the_others_are_about() {
        let subject = json!({"subject": {"format": "opaque", "id": "s"}});
        for events in [
            json!({"a:b": subject, "c:d": subject}),
            json!({"a:b": {}}),
            json!({}),
            json!([]),
        ] {
            assert_eq!(draft_subject(Some(&events)), None, "{events}");
        }
    }
}
