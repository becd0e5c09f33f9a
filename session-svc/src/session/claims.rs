//! Claims about a person, or whatever else callers keep with a session.
//!
//! Most calls never look inside, so they may be held as the JSON text they are kept as, which shares the bytes it was read from;
//! it is read when somebody looks.
//!
//! Invariant: no claim shows in `Debug`.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde_json::{Error, Map, Value};

/// Claims by their names.
pub type Object = Map<String, Value>;

/// The claim that names the person.
pub const SUBJECT: &str = "sub";

/// Claims, read or as they are kept.
#[derive(Clone)]
pub struct Claims(ClaimsForm);

#[derive(Clone)]
enum ClaimsForm {
    Object(Object),
    Text(Text),
}

/// Claims as they are kept.
#[derive(Clone)]
pub struct Text {
    /// A JSON object; nothing if it would be empty.
    pub json: Bytes,
    /// The "sub" of claims whose text leaves it out.
    pub subject: Option<String>,
}

impl Claims {
    /// No claims.
    pub fn new() -> Self {
        Self::from(Object::new())
    }

    /// The claims a text says, unread.
    pub fn of_text(text: Text) -> Self {
        Self(ClaimsForm::Text(text))
    }

    /// The text, if they are held so.
    pub fn text(&self) -> Option<&Text> {
        match &self.0 {
            ClaimsForm::Object(_) => None,
            ClaimsForm::Text(text) => Some(text),
        }
    }

    /// The claims; fails if the text they are held as is no JSON object.
    pub fn object(&self) -> Result<Cow<'_, Object>, Error> {
        match &self.0 {
            ClaimsForm::Object(object) => Ok(Cow::Borrowed(object)),
            ClaimsForm::Text(text) => text.read().map(Cow::Owned),
        }
    }
}

impl Text {
    fn read(&self) -> Result<Object, Error> {
        let mut object = match &*self.json {
            [] => Object::new(),
            json => serde_json::from_slice(json)?,
        };
        if let Some(subject) = &self.subject {
            object.entry(SUBJECT).or_insert_with(|| subject.as_str().into());
        }
        Ok(object)
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Object> for Claims {
    fn from(object: Object) -> Self {
        Self(ClaimsForm::Object(object))
    }
}

impl PartialEq for Claims {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.object(), other.object()), (Ok(one), Ok(other)) if one == other)
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &'static str, subject: Option<&str>) -> Claims {
        Claims::of_text(Text {
            json: Bytes::from_static(json.as_bytes()),
            subject: subject.map(str::to_owned),
        })
    }

    fn read(json: &str) -> Claims {
        serde_json::from_str::<Object>(json).unwrap().into()
    }

    #[test]
    fn a_text_says_what_is_left_out_of_it() {
        for (json, subject, said) in [
            ("", None, "{}"),
            ("", Some("ada"), r#"{"sub":"ada"}"#),
            (r#"{"name":"Ada"}"#, Some("ada"), r#"{"name":"Ada","sub":"ada"}"#),
            (r#"{"sub":"Ada"}"#, Some("ada"), r#"{"sub":"Ada"}"#),
            (r#"{"name":"Ada"}"#, None, r#"{"name":"Ada"}"#),
        ] {
            assert_eq!(
                text(json, subject).object().unwrap(),
                read(said).object().unwrap()
            );
            assert_eq!(text(json, subject), read(said));
        }
        assert_ne!(text("", Some("ada")), text("", Some("bob")));
    }

    #[test]
    fn a_text_that_is_no_object_is_refused_and_like_nothing() {
        let broken = text("[]", None);
        assert!(broken.object().is_err());
        assert_ne!(broken, broken.clone());
    }

    #[test]
    fn debug_tells_no_claim() {
        let claims = [read(r#"{"name":"Ada"}"#), text(r#"{"name":"Ada"}"#, Some("ada"))];
        assert_eq!(format!("{claims:?}"), "[…, …]");
    }
}
