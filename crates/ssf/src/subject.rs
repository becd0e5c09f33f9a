//! The subject of a security event (RFC 9493, SSF 1.0 section 3).
//!
//! Identifiers are bounded and not empty. `Debug` hides them. Aliases and complex subjects never nest.
//!
//! Deliberately absent
//! - Formats without sessions here, like `account` and `did`: they become [`SubjectIdentifier::Other`].
//! - Refusing members a format does not describe. SSF 1.0 section 4.2.3 requires receivers to ignore them.

use std::fmt;

use serde_json::{Map, Value};

use crate::SecurityEventError;

/// Longest identifier in bytes: longer than any issuer, subject or session ID in an ID token.
const MAX_IDENTIFIER_BYTES: usize = 1_024;
/// Longest email address in bytes (RFC 5321 section 4.5.3.1.3, without the brackets).
const MAX_EMAIL_BYTES: usize = 254;
/// Most identifiers of one principal. There are a dozen formats.
const MAX_ALIASES: usize = 16;

/// The subject of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSubject {
    /// One principal, by one identifier or several (aliases), of which any may match.
    Simple(Vec<SubjectIdentifier>),
    /// A user, a session or another object; all given parts must match (SSF 1.0 section 3.3).
    Complex {
        /// The user; `None` if the subject names none.
        user: Option<Vec<SubjectIdentifier>>,
        /// The session; empty if the subject names none.
        session: Vec<SubjectIdentifier>,
    },
}

/// An identifier of a principal (RFC 9493 section 3.2).
#[derive(Clone, PartialEq, Eq)]
pub enum SubjectIdentifier {
    /// `iss_sub`: a subject at an issuer, which may differ from the event's issuer (RFC 9493 section 4.2).
    IssSub {
        /// Issuer.
        iss: String,
        /// Subject at that issuer.
        sub: String,
    },
    /// `email`: an email address, as it was sent.
    Email(String),
    /// `opaque`: a text without further meaning.
    Opaque(String),
    /// An identifier in another format, which matches no session.
    Other,
}

type Members = Map<String, Value>;

fn invalid(fault: &'static str) -> SecurityEventError {
    SecurityEventError::invalid("sub_id", fault)
}

impl EventSubject {
    /// Reads a `sub_id`.
    ///
    /// # Errors
    /// It is not a subject.
    pub(crate) fn of(value: Option<&Value>) -> Result<Self, SecurityEventError> {
        let members = members(value)?;
        if format(members)? != "complex" {
            return simple(members).map(Self::Simple);
        }
        let principal = |name| match members.get(name) {
            None => Ok(None),
            value => simple(self::members(value)?).map(Some),
        };
        let (user, session) = (principal("user")?, principal("session")?);
        if members.len() == 1 {
            return Err(invalid("is complex and has no member"));
        }
        let session = session.unwrap_or_default();
        Ok(Self::Complex { user, session })
    }

    /// The stream, if this is the subject of an event about a stream (SSF 1.0 section 8.1.4.1).
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Simple(identifiers) if matches!(identifiers.as_slice(), [SubjectIdentifier::Opaque(_)]))
    }
}

/// The identifiers of one principal, at least one.
fn simple(members: &Members) -> Result<Vec<SubjectIdentifier>, SecurityEventError> {
    if format(members)? != "aliases" {
        return Ok(vec![SubjectIdentifier::of(members)?]);
    }
    let aliases = members.get("identifiers").and_then(Value::as_array);
    let aliases = aliases.filter(|all| (1..=MAX_ALIASES).contains(&all.len()));
    let aliases = aliases.ok_or_else(|| invalid("has no aliases, or too many"))?;
    let alias = |value| SubjectIdentifier::of(self::members(Some(value))?);
    aliases.iter().map(alias).collect()
}

impl SubjectIdentifier {
    /// Reads an identifier that is neither aliases nor complex.
    fn of(members: &Members) -> Result<Self, SecurityEventError> {
        let text = |member: &str, longest| {
            let text = members.get(member).and_then(Value::as_str);
            text.filter(|text| !text.is_empty() && text.len() <= longest)
                .map(str::to_owned)
                .ok_or_else(|| invalid("lacks a member of its format"))
        };
        Ok(match format(members)? {
            "iss_sub" => Self::IssSub {
                iss: text("iss", MAX_IDENTIFIER_BYTES)?,
                sub: text("sub", MAX_IDENTIFIER_BYTES)?,
            },
            "email" => {
                let email = text("email", MAX_EMAIL_BYTES)?;
                let parts = email.rsplit_once('@');
                if parts.is_none_or(|(local, domain)| local.is_empty() || domain.is_empty()) {
                    return Err(invalid("is not an email address"));
                }
                Self::Email(email)
            }
            "opaque" => Self::Opaque(text("id", MAX_IDENTIFIER_BYTES)?),
            "aliases" | "complex" => return Err(invalid("is nested")),
            _ => Self::Other,
        })
    }
}

impl fmt::Debug for SubjectIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IssSub { .. } => "iss_sub",
            Self::Email(_) => "email",
            Self::Opaque(_) => "opaque",
            Self::Other => "other",
        })
    }
}

fn members(value: Option<&Value>) -> Result<&Members, SecurityEventError> {
    let members = value.and_then(Value::as_object);
    members.ok_or_else(|| invalid("is absent or no object"))
}

fn format(members: &Members) -> Result<&str, SecurityEventError> {
    let format = members.get("format").and_then(Value::as_str);
    let format = format.filter(|name| !name.is_empty());
    format.ok_or_else(|| invalid("has no format"))
}

#[cfg(test)]
#[path = "subject_tests.rs"]
mod tests;
