//! Names of the lists of sessions: hashes, so that a store knows no person.

use aws_lc_rs::digest;

use super::id::first_bytes;
use super::{Name, Session};

/// Separates index names from all other hashes.
const CONTEXT: &[u8] = b"vestibule session index v1";

/// Name of the list of a person's sessions.
pub fn by_subject(issuer: &str, subject: &str) -> Name {
    hashed(&[b"subject", issuer.as_bytes(), subject.as_bytes()])
}

/// Name of the list of sessions with this session of the provider.
pub fn by_provider_sid(issuer: &str, sid: &str) -> Name {
    hashed(&[b"sid", issuer.as_bytes(), sid.as_bytes()])
}

/// Name of the list of sessions with this verified email address, in normalized form.
pub(crate) fn by_email(issuer: &str, email: &str) -> Name {
    hashed(&[b"email", issuer.as_bytes(), email.as_bytes()])
}

/// Name of the list of all sessions of a provider.
pub(crate) fn by_issuer(issuer: &str) -> Name {
    hashed(&[b"issuer", issuer.as_bytes()])
}

/// Name for a demand or mark on those sessions of a list that have no provider `sid`.
pub(crate) fn without_sid(list: Name) -> Name {
    hashed(&[b"without sid", list.digits().as_bytes()])
}

/// The names of marks and demands for a new session: by person, provider session and verified email.
pub(crate) fn mark_names<'a>(
    issuer: &str,
    subject: &str,
    sids: impl Iterator<Item = &'a str>,
    email: Option<&str>,
) -> Vec<Name> {
    let person = [
        Some(by_subject(issuer, subject)),
        email.map(|email| by_email(issuer, email)),
    ];
    let person = person.into_iter().flatten();
    let named: Vec<Name> = sids.map(|sid| by_provider_sid(issuer, sid)).collect();
    if named.is_empty() {
        person.flat_map(|list| [list, without_sid(list)]).collect()
    } else {
        person.chain(named).collect()
    }
}

/// The sessions in a list.
#[derive(Clone, Copy, Debug)]
pub enum IndexKey<'a> {
    /// A person's: issuer and subject.
    Person(&'a str, &'a str),
    /// A provider session's: issuer and sid.
    ProviderSession(&'a str, &'a str),
    /// A verified email address's: issuer and address, in normalized form.
    Email(&'a str, &'a str),
    /// All of an issuer.
    Provider(&'a str),
}

impl IndexKey<'_> {
    /// Name of the list.
    pub(crate) fn index(&self) -> Name {
        match self {
            Self::Person(issuer, subject) => by_subject(issuer, subject),
            Self::ProviderSession(issuer, sid) => by_provider_sid(issuer, sid),
            Self::Email(issuer, email) => by_email(issuer, email),
            Self::Provider(issuer) => by_issuer(issuer),
        }
    }

    /// Whether a session belongs in the list. An entry alone proves nothing: any writer can add one.
    pub(crate) fn is(&self, session: &Session) -> bool {
        match *self {
            Self::Person(issuer, subject) => session.issuer == issuer && session.subject == subject,
            Self::ProviderSession(issuer, sid) => {
                session.issuer == issuer && session.sids().any(|known| known == sid)
            }
            Self::Email(issuer, email) => {
                session.issuer == issuer && session.user.verified_email().as_deref() == Some(email)
            }
            Self::Provider(issuer) => session.issuer == issuer,
        }
    }
}

/// A name made from parts.
pub(crate) fn hashed(parts: &[&[u8]]) -> Name {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(CONTEXT);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    Name::from_bytes(first_bytes(context.finish().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // conformance: B-095
    #[test]
    fn moving_a_letter_between_issuer_and_subject_makes_another_name() {
        assert_ne!(by_subject("https://a", "bc"), by_subject("https://ab", "c"));
        assert_ne!(by_subject("i", "x"), by_provider_sid("i", "x"));
        assert_ne!(by_subject("i", "x"), by_subject("j", "x"));
        assert_ne!(by_provider_sid("i", "x"), by_provider_sid("j", "x"));
        assert_eq!(by_subject("i", "x"), by_subject("i", "x"));
    }
}
