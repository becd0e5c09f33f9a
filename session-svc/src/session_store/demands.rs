//! Demands for a new sign-in that outlive their sessions. A user who is still signed in at the provider gets
//! a new session without new proof: the demand applies to it as well.
//!
//! Invariants
//! - A demand is a sealed record under the name of its list: a user's, a provider session's, or an email
//!   address's (`index::mark_names`).
//! - Two demands of one list become one (`SignInDemand::and`), in any order.
//! - A demand is written before the search for its sessions. A new session is checked for demands after its creation.

use prost::Message as _;

use super::SessionStore;
use super::sealed_notes::DEMAND;
use crate::error::SessionsError;
use crate::session::{Name, Session, SignInDemand, index};
use crate::store::Record;

/// How long a demand is kept: longer than a provider usually keeps a user signed in.
const DEMAND_KEPT_MS: u64 = 30 * 86_400_000;

impl SessionStore {
    /// Stores a demand for future sessions of a list.
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

    /// The demands that a new session's sign-in does not meet. One round trip.
    pub(crate) async fn unmet_demand(
        &self,
        session: &Session,
    ) -> Result<Option<SignInDemand>, SessionsError> {
        let lists =
            self.future_session_lists(&session.issuer, &session.subject, session.sids(), &session.user);
        let names: Vec<Name> = lists.into_iter().map(demand_name).collect();
        let loaded = self.store().load_many(&names).await?.into_iter();
        let demands = loaded.filter_map(|loaded| self.open_demand(&loaded.ok()??));
        let unmet = demands.filter(|demand| !demand.is_met_by(session));
        Ok(unmet.reduce(SignInDemand::and))
    }

    /// The demand of a note. If its key is not in the ring, the demand is a sign-in after the note was written.
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
