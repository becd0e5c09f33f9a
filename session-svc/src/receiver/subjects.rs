//! Selects the sessions of an event by its subject (RFC 9493, SSF 1.0 section 3).

use ssf::{EventSubject, SubjectIdentifier};

use super::settings::ConfiguredTransmitter;
use crate::session::claims::comparable_email;
use crate::sessions::Selector;

/// Keycloak's name for the session of a user who is signed out everywhere.
const EVERY_SESSION: &str = "ALL";

/// The names that count in a subject.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubjectNames<'a> {
    /// The transmitter: some use its name for the provider as well.
    pub(super) transmitter: &'a str,
    /// The provider whose sessions are meant.
    pub(super) provider: &'a str,
    /// Whether verified email addresses find users.
    pub(super) by_email: bool,
}

impl<'a> SubjectNames<'a> {
    /// The names in subjects of a transmitter with this issuer.
    pub(super) fn of(issuer: &'a str, configured: &'a ConfiguredTransmitter) -> Self {
        Self {
            transmitter: issuer,
            provider: &configured.provider,
            by_email: configured.by_email,
        }
    }

    /// Selects the sessions of a subject; empty if no session can match.
    pub(super) fn selectors(self, subject: &EventSubject) -> Vec<Selector> {
        match subject {
            // An opaque text may be a user or a session.
            EventSubject::Simple(identifiers) => {
                let mut selectors = self.users(identifiers);
                selectors.extend(of_sessions(sids(identifiers)));
                selectors
            }
            EventSubject::Complex { user: None, session } => of_sessions(sids(session)).collect(),
            EventSubject::Complex {
                user: Some(user),
                session,
            } => {
                let users = self.users(user);
                let sids: Vec<String> = sids(session).filter(|sid| sid != EVERY_SESSION).collect();
                if sids.is_empty() {
                    return users;
                }
                let both = |user: &Selector| {
                    let user = user.clone();
                    of_sessions(sids.clone().into_iter()).map(move |session| Selector {
                        sid: session.sid,
                        ..user.clone()
                    })
                };
                users.iter().flat_map(both).collect()
            }
        }
    }

    /// Selects the sessions of a user; empty if no session can match.
    pub(super) fn users(self, identifiers: &[SubjectIdentifier]) -> Vec<Selector> {
        let user = |identifier: &SubjectIdentifier| match identifier {
            SubjectIdentifier::IssSub { iss, sub } if iss == self.provider || iss == self.transmitter => {
                Some(Selector {
                    subject: Some(sub.clone()),
                    ..Selector::default()
                })
            }
            SubjectIdentifier::Email(email) if self.by_email => Some(Selector {
                email: Some(comparable_email(email)),
                ..Selector::default()
            }),
            SubjectIdentifier::Opaque(id) => Some(Selector {
                subject: Some(id.clone()),
                ..Selector::default()
            }),
            SubjectIdentifier::IssSub { .. } | SubjectIdentifier::Email(_) | SubjectIdentifier::Other => None,
        };
        identifiers.iter().filter_map(user).collect()
    }
}

fn sids(identifiers: &[SubjectIdentifier]) -> impl Iterator<Item = String> + '_ {
    identifiers.iter().filter_map(|identifier| match identifier {
        SubjectIdentifier::Opaque(id) => Some(id.clone()),
        _ => None,
    })
}

fn of_sessions(sids: impl Iterator<Item = String>) -> impl Iterator<Item = Selector> {
    sids.map(|sid| Selector {
        sid: Some(sid),
        ..Selector::default()
    })
}
