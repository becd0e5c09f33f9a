//! Whom or what a security event is about (RFC 9493, and OpenID Shared Signals Framework 1.0 section 3).
//!
//! Invariants: identifiers are neither empty nor longer than any that could be known here; aliases hold no aliases, and a
//! complex subject no complex one, since they have no such constructor; nobody's identifier is in a `Debug` output.
//!
//! Deliberately absent
//! - The contents of formats by which nobody can be found here (`account`, `phone_number`, `did`, `uri`, `jwt_id`,
//!   `saml_assertion_id`, `ip-addresses`, those of others): the format is kept, so that a receiver can say what it does not know.
//! - A refusal of members that a format does not describe. RFC 9493 section 3 forbids them to whoever writes an identifier; of
//!   whoever reads one SSF 1.0 section 4.2.3 says that it MUST ignore what it does not understand, anywhere in the token.
//! - The form of an email address by which it is compared (RFC 9493 section 3.2.2.1): whoever compares has one.

use std::fmt;

use serde_json::{Map, Value};

/// Longest text of an identifier in bytes: longer than any issuer, subject or session that comes with an ID token.
const MAX_IDENTIFIER_BYTES: usize = 1_024;
/// Longest email address in bytes (RFC 5321 section 4.5.3.1.3, without the brackets).
const MAX_EMAIL_BYTES: usize = 254;
/// Longest name of a format, or of a member of a complex subject, in bytes. Registered ones should have 20 (RFC 9493 section
/// 8.1.1); others may be URIs.
const MAX_NAME_BYTES: usize = 128;
/// Most identifiers of one principal. There are a dozen formats, and hardly anybody is known by more.
const MAX_ALIASES: usize = 16;
/// Most members of a complex subject: SSF defines seven.
const MAX_MEMBERS: usize = 16;

const ALIASES: &str = "aliases";
const COMPLEX: &str = "complex";
const USER: &str = "user";
const SESSION: &str = "session";

/// The `sub_id` of a security event (SSF 1.0 section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSubject {
    /// One principal by one or more identifiers.
    Simple(SimpleSubject),
    /// One principal by what it is part of.
    Complex(ComplexSubject),
    /// A complex subject with this member, which the transmitter wants never passed over and by which nothing can be found
    /// here: the event MUST be discarded (SSF 1.0 section 3.6).
    Critical(String),
}

/// One principal by one identifier, or by several of which any may be known: aliases (RFC 9493 section 3.2.8).
#[derive(Clone, PartialEq, Eq)]
pub struct SimpleSubject(Vec<SubjectIdentifier>);

/// One principal by what it is part of (SSF 1.0 section 3.3): all that is said has to be true of it, and what is not said may
/// be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComplexSubject {
    /// The person.
    pub user: Option<SimpleSubject>,
    /// The session.
    pub session: Option<SimpleSubject>,
    /// Names of further members, by which nothing can be found here: `device`, `tenant`, `org_unit`, `group`, `application`, or
    /// names of the transmitter's.
    pub others: Vec<String>,
}

/// An identifier of a principal (RFC 9493 section 3.2).
#[derive(Clone, PartialEq, Eq)]
pub enum SubjectIdentifier {
    /// `iss_sub`: a subject of an issuer, which need not be that of the event (RFC 9493 section 4.2).
    IssSub {
        /// Issuer.
        iss: String,
        /// Subject at that issuer.
        sub: String,
    },
    /// `email`: an email address, as it was sent.
    Email(String),
    /// `opaque`: a text without further meaning. Of an event about a stream it is the stream's id (SSF 1.0 section 8.1.4.1).
    Opaque(String),
    /// An identifier in this format, by which nobody can be found here.
    Other(String),
}

/// A subject is none (RFC 9493 section 3, SSF 1.0 section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// It is absent, or no JSON object.
    #[error("it is no object")]
    NoObject,
    /// `format` is absent, empty, too long or no text.
    #[error("its format is absent")]
    Format,
    /// A member that the format requires is absent, empty, too long or no text.
    #[error("it is in the format {format} and its {member} is absent, empty or too long")]
    Member {
        /// The format.
        format: &'static str,
        /// The member.
        member: &'static str,
    },
    /// Aliases within aliases, or a complex subject within another or within aliases.
    #[error("it is nested")]
    Nested,
    /// More aliases, or more or longer members of a complex subject, than anybody has.
    #[error("it has too many members, or too long ones")]
    TooMany,
    /// A complex subject without any member.
    #[error("it is complex and has no member")]
    Empty,
}

impl EventSubject {
    /// Reads a `sub_id`.
    ///
    /// # Errors
    /// It is no subject.
    pub(crate) fn of(value: Option<&Value>) -> Result<Self, SubjectError> {
        let members = members(value)?;
        if format(members)? == COMPLEX {
            return ComplexSubject::of(members).map(Self::Complex);
        }
        SimpleSubject::of(members).map(Self::Simple)
    }

    /// The subject unless it has a member that is critical to the transmitter and by which nothing can be found here (SSF 1.0
    /// section 3.6).
    pub(crate) fn unless_critical(self, critical: &[String]) -> Self {
        let Self::Complex(complex) = &self else {
            return self;
        };
        let passed_over = critical.iter().find(|name| complex.passes_over(name));
        passed_over.cloned().map_or(self, Self::Critical)
    }
}

impl SimpleSubject {
    fn of(members: &Map<String, Value>) -> Result<Self, SubjectError> {
        if format(members)? != ALIASES {
            return Ok(Self(vec![SubjectIdentifier::of(members)?]));
        }
        let identifiers = members.get("identifiers").and_then(Value::as_array);
        let identifiers = identifiers.filter(|all| !all.is_empty());
        let identifiers = identifiers.ok_or(SubjectError::Member {
            format: ALIASES,
            member: "identifiers",
        })?;
        if identifiers.len() > MAX_ALIASES {
            return Err(SubjectError::TooMany);
        }
        let alias = |value| SubjectIdentifier::of(self::members(Some(value))?);
        identifiers.iter().map(alias).collect::<Result<_, _>>().map(Self)
    }

    /// Its identifiers, at least one; they identify the same principal.
    #[must_use]
    pub fn identifiers(&self) -> &[SubjectIdentifier] {
        &self.0
    }

    /// Whether any of its identifiers is one by which somebody may be found here.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let is_known = |identifier: &SubjectIdentifier| !matches!(identifier, SubjectIdentifier::Other(_));
        self.0.iter().any(is_known)
    }

    /// The one opaque identifier it consists of.
    #[must_use]
    pub fn opaque(&self) -> Option<&str> {
        match self.0.as_slice() {
            [SubjectIdentifier::Opaque(id)] => Some(id),
            _ => None,
        }
    }
}

impl ComplexSubject {
    fn of(members: &Map<String, Value>) -> Result<Self, SubjectError> {
        // With `format`.
        if members.len() > 1 + MAX_MEMBERS || members.keys().any(|name| name.len() > MAX_NAME_BYTES) {
            return Err(SubjectError::TooMany);
        }
        let known = |name: &str| match members.get(name) {
            None => Ok(None),
            value => SimpleSubject::of(self::members(value)?).map(Some),
        };
        let others = members.keys().map(String::as_str);
        let others = others.filter(|name| !["format", USER, SESSION].contains(name));
        let complex = Self {
            user: known(USER)?,
            session: known(SESSION)?,
            others: others.map(str::to_owned).collect(),
        };
        if members.len() == 1 {
            return Err(SubjectError::Empty);
        }
        Ok(complex)
    }

    /// Whether it has the member and nothing can be found by it here.
    fn passes_over(&self, name: &str) -> bool {
        let is_unknown = |member: &Option<SimpleSubject>| member.as_ref().is_some_and(|one| !one.is_known());
        match name {
            USER => is_unknown(&self.user),
            SESSION => is_unknown(&self.session),
            other => self.others.iter().any(|name| name == other),
        }
    }
}

impl SubjectIdentifier {
    /// Reads an identifier that is neither of aliases nor complex.
    fn of(members: &Map<String, Value>) -> Result<Self, SubjectError> {
        let text = |format, member, longest| {
            let text = members.get(member).and_then(Value::as_str);
            text.filter(|text| !text.is_empty() && text.len() <= longest)
                .map(str::to_owned)
                .ok_or(SubjectError::Member { format, member })
        };
        Ok(match format(members)? {
            "iss_sub" => Self::IssSub {
                iss: text("iss_sub", "iss", MAX_IDENTIFIER_BYTES)?,
                sub: text("iss_sub", "sub", MAX_IDENTIFIER_BYTES)?,
            },
            "email" => {
                let email = text("email", "email", MAX_EMAIL_BYTES)?;
                // An addr-spec (RFC 5322 section 3.4.1), as far as it matters to whoever compares.
                let parts = email.rsplit_once('@');
                if parts.is_none_or(|(local, domain)| local.is_empty() || domain.is_empty()) {
                    return Err(SubjectError::Member {
                        format: "email",
                        member: "email",
                    });
                }
                Self::Email(email)
            }
            "opaque" => Self::Opaque(text("opaque", "id", MAX_IDENTIFIER_BYTES)?),
            ALIASES | COMPLEX => return Err(SubjectError::Nested),
            other => Self::Other(other.to_owned()),
        })
    }

    /// The name of its format.
    #[must_use]
    pub fn format(&self) -> &str {
        match self {
            Self::IssSub { .. } => "iss_sub",
            Self::Email(_) => "email",
            Self::Opaque(_) => "opaque",
            Self::Other(format) => format,
        }
    }
}

impl fmt::Debug for SimpleSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl fmt::Debug for SubjectIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SubjectIdentifier")
            .field(&self.format())
            .finish_non_exhaustive()
    }
}

fn members(value: Option<&Value>) -> Result<&Map<String, Value>, SubjectError> {
    value.and_then(Value::as_object).ok_or(SubjectError::NoObject)
}

fn format(members: &Map<String, Value>) -> Result<&str, SubjectError> {
    let format = members.get("format").and_then(Value::as_str);
    format
        .filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES)
        .ok_or(SubjectError::Format)
}

#[cfg(test)]
#[path = "subject_identifier_tests.rs"]
mod tests;
