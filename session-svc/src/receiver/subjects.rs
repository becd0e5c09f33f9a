//! Whose sessions an event is about (RFC 9493, and OpenID Shared Signals Framework 1.0, section 3).

use oidc::{EventSubject, SimpleSubject, SubjectIdentifier};

use crate::session::claims::comparable_email;
use crate::sessions::Selector;

/// What Keycloak names the session of a person who is signed out everywhere.
const EVERY_SESSION: &str = "ALL";

/// Who is looked for where an event names a provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubjectNames<'a> {
    /// Whoever names them: some call the provider by this name too, which has one more for those who sign in there.
    pub(super) transmitter: &'a str,
    /// The provider whose sessions are meant.
    pub(super) provider: &'a str,
    /// Whether people are known by their verified email address.
    pub(super) by_email: bool,
}

impl SubjectNames<'_> {
    /// What selects the sessions an event is about; nothing where nobody can be found by what it says.
    pub(super) fn selectors(self, subject: &EventSubject) -> Vec<Selector> {
        match subject {
            // It must be discarded (section 3.6).
            EventSubject::Critical(_) => Vec::new(),
            EventSubject::Simple(subject) => {
                let mut selectors = self.people(subject);
                // Of a text without further meaning, a session is one; as somebody it is among them.
                selectors.extend(sids(subject).map(|sid| Selector {
                    sid: Some(sid),
                    ..Selector::default()
                }));
                selectors
            }
            EventSubject::Complex(complex) => {
                let people = complex.user.as_ref().map(|user| self.people(user));
                let mut sids: Vec<String> = complex.session.iter().flat_map(sids).collect();
                if people.is_some() {
                    sids.retain(|sid| sid != EVERY_SESSION);
                }
                match people {
                    Some(people) if sids.is_empty() => people,
                    Some(people) => {
                        let pairs = people.iter().flat_map(|person| {
                            sids.iter().map(|sid| Selector {
                                sid: Some(sid.clone()),
                                ..person.clone()
                            })
                        });
                        pairs.collect()
                    }
                    None => {
                        let alone = sids.into_iter().map(|sid| Selector {
                            sid: Some(sid),
                            ..Selector::default()
                        });
                        alone.collect()
                    }
                }
            }
        }
    }

    fn is_named(self, issuer: &str) -> bool {
        issuer == self.provider || issuer == self.transmitter
    }

    /// Whoever is known by one of these identifiers.
    fn people(self, subject: &SimpleSubject) -> Vec<Selector> {
        let person = |identifier: &SubjectIdentifier| match identifier {
            SubjectIdentifier::IssSub { iss, sub } if self.is_named(iss) => Some(Selector {
                subject: Some(sub.clone()),
                ..Selector::default()
            }),
            SubjectIdentifier::Email(email) if self.by_email => Some(Selector {
                email: Some(comparable_email(email)),
                ..Selector::default()
            }),
            SubjectIdentifier::Opaque(id) => Some(Selector {
                subject: Some(id.clone()),
                ..Selector::default()
            }),
            SubjectIdentifier::IssSub { .. } | SubjectIdentifier::Email(_) | SubjectIdentifier::Other(_) => {
                None
            }
        };
        subject.identifiers().iter().filter_map(person).collect()
    }
}

fn sids(subject: &SimpleSubject) -> impl Iterator<Item = String> + '_ {
    subject
        .identifiers()
        .iter()
        .filter_map(|identifier| match identifier {
            SubjectIdentifier::Opaque(id) => Some(id.clone()),
            _ => None,
        })
}
