//! Demands for a sign-in that outlive the sessions they were made of: a person whose provider still takes them for signed in gets a new
//! session without proving anything anew, and it owes what the one before owed.
//!
//! Invariants
//! - A demand is a sealed record under the name of the list it is about: a person's, a provider session's, an email address's
//!   (`index::names_to_come`).
//! - Two demands of one list become one (`SignInDemand::and`), in whatever order they come.
//! - Whoever makes a demand writes it first and looks for sessions then; whoever creates a session looks for demands afterwards.

use prost::Message as _;

use super::Keeper;
use super::sealed_notes::DEMAND;
use crate::error::SessionsError;
use crate::session::{Name, Session, SignInDemand, index};
use crate::store::Record;

/// How long a demand is kept: longer than a provider usually remembers that somebody is signed in.
const DEMAND_KEPT_MS: u64 = 30 * 86_400_000;

impl Keeper {
    /// Keeps a demand for sessions of a list that are yet to come.
    pub(crate) async fn demand_sign_in(
        &self,
        list: Name,
        demand: &SignInDemand,
    ) -> Result<(), SessionsError> {
        let merge = |there: &Record| {
            let Some(known) = self.open_demand(there) else {
                return Some(demand.encode_to_vec());
            };
            let both = known.clone().and(demand.clone());
            (both != known).then(|| both.encode_to_vec())
        };
        let (name, note) = (demand_name(list), demand.encode_to_vec());
        self.write_note(DEMAND, name, &note, DEMAND_KEPT_MS, merge)
            .await
            .map(|_| ())
    }

    /// What a new session owes that its sign-in does not meet. One round trip.
    pub(crate) async fn owed_sign_in(
        &self,
        session: &Session,
    ) -> Result<Option<SignInDemand>, SessionsError> {
        let lists = self.lists_to_come(&session.issuer, &session.subject, session.sids(), &session.user);
        let names: Vec<Name> = lists.into_iter().map(demand_name).collect();
        let loaded = self.store().load_many(&names).await?.into_iter();
        let demands = loaded.filter_map(|loaded| self.open_demand(&loaded.ok()??));
        let unmet = demands.filter(|demand| !demand.is_met_by(session));
        Ok(unmet.reduce(SignInDemand::and))
    }

    /// What a note demands. One that cannot be read here, sealed with a key that is not in the ring, demands a sign-in since it was written.
    fn open_demand(&self, record: &Record) -> Option<SignInDemand> {
        let opened = self.vault().open_note(DEMAND, record.name, &record.payload);
        let Ok(note) = opened else {
            return Some(SignInDemand {
                since_ms: record.expires_at_ms.saturating_sub(DEMAND_KEPT_MS),
                acr: None,
            });
        };
        SignInDemand::decode(note.as_slice()).ok()
    }
}

fn demand_name(list: Name) -> Name {
    index::hashed(&[b"sign-in demand", list.digits().as_bytes()])
}
