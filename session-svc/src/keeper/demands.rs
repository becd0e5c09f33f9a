//! Demands for a sign-in that outlive the sessions they were made of: a person whose provider still takes them for signed in gets a new
//! session without proving anything anew, and it owes what the one before owed.
//!
//! Invariants
//! - A demand is a sealed record under the name of the list it is about: a person's, a provider session's, an email address's
//!   (`index::names_to_come`).
//! - Two demands of one list become one (`SignInDemand::and`), in whatever order they come.
//! - Whoever makes a demand writes it first and looks for sessions then; whoever creates a session looks for demands afterwards.

use super::sealed_notes::DEMAND;
use super::{Keeper, KeeperError};
use crate::session::{Name, Session, SignInDemand, index};
use crate::store::{Inserted, LoadedRecord, Record, Replaced};

/// How long a demand is kept: longer than a provider usually remembers that somebody is signed in.
const DEMAND_KEPT_MS: u64 = 30 * 86_400_000;

/// Writes of one demand; losing more often means that as many others were written.
const DEMAND_ATTEMPTS: usize = 8;

/// Bytes of the time a note begins with.
const TIME_BYTES: usize = 8;

impl Keeper {
    /// Keeps a demand for sessions of a list that are yet to come.
    pub(crate) async fn demand_sign_in(&self, list: Name, demand: &SignInDemand) -> Result<(), KeeperError> {
        let name = demand_name(list);
        for _ in 0..DEMAND_ATTEMPTS {
            let Some(there) = self.store().load(name).await? else {
                let record = self.demand_record(name, demand)?;
                // An empty event: watchers pass it over.
                if self.store().insert(record, Vec::new()).await? == Inserted::Done {
                    return Ok(());
                }
                continue;
            };
            let both = match self.open_demand(&there) {
                Some(known) if known.clone().and(demand.clone()) == known => return Ok(()),
                Some(known) => known.and(demand.clone()),
                None => demand.clone(),
            };
            let record = Record {
                version: there.version.saturating_add(1),
                created_at_ms: there.created_at_ms,
                ..self.demand_record(name, &both)?
            };
            if self.store().replace(record, there.version, None).await? == Replaced::Done {
                return Ok(());
            }
        }
        Err(KeeperError::StaleVersion)
    }

    /// What a new session owes that its sign-in does not meet. One round trip.
    pub(crate) async fn owed_sign_in(&self, session: &Session) -> Result<Option<SignInDemand>, KeeperError> {
        let lists = self.lists_to_come(&session.issuer, &session.subject, session.sids(), &session.user);
        let names: Vec<Name> = lists.into_iter().map(demand_name).collect();
        let loaded = self.store().load_many(&names).await?.into_iter();
        let demands = loaded.filter_map(|loaded| match loaded {
            LoadedRecord::Record(record) => self.open_demand(&record),
            LoadedRecord::Unreadable | LoadedRecord::Gone => None,
        });
        let unmet = demands.filter(|demand| !demand.is_met_by(session));
        Ok(unmet.reduce(SignInDemand::and))
    }

    fn demand_record(&self, name: Name, demand: &SignInDemand) -> Result<Record, KeeperError> {
        let acr = demand.acr.as_deref().unwrap_or_default();
        let note = [&demand.since_ms.to_be_bytes()[..], acr.as_bytes()].concat();
        let now_ms = self.now_ms();
        Ok(Record {
            name,
            version: 1,
            expires_at_ms: now_ms.saturating_add(DEMAND_KEPT_MS),
            created_at_ms: now_ms,
            indexes: Vec::new(),
            payload: self.seal().seal_note(DEMAND, name, &note)?,
        })
    }

    /// What a note demands. One that cannot be read here, sealed with a key that is not in the ring, demands a sign-in since it was written.
    fn open_demand(&self, record: &Record) -> Option<SignInDemand> {
        let opened = self.seal().open_note(DEMAND, record.name, &record.payload);
        let Ok(note) = opened else {
            return Some(SignInDemand {
                since_ms: record.expires_at_ms.saturating_sub(DEMAND_KEPT_MS),
                acr: None,
            });
        };
        let (time, acr) = note.split_first_chunk::<TIME_BYTES>()?;
        Some(SignInDemand {
            since_ms: u64::from_be_bytes(*time),
            acr: Some(String::from_utf8_lossy(acr).into_owned()).filter(|acr| !acr.is_empty()),
        })
    }
}

fn demand_name(list: Name) -> Name {
    index::hashed(&[b"sign-in demand", list.digits().as_bytes()])
}
