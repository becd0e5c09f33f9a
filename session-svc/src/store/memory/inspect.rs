//! What an operator may see of a memory store: the reference for the other adapters.

use async_trait::async_trait;

use super::{MemoryState, MemoryStore, Name, RememberedName, Replaced, StoreError};
use crate::store::inspect::{Fact, FoundItem, InspectedStore, KeySpace, Sealed, Walked, resealed};

#[async_trait]
impl InspectedStore for MemoryStore {
    async fn walk(
        &self,
        key_space: KeySpace,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Walked, StoreError> {
        use crate::store::SessionStore as _;
        let now_ms = self.now_ms();
        let state = self.kept.state();
        let mut names: Vec<String> = match key_space {
            KeySpace::Records => state.records.keys().map(Name::to_string).collect(),
            KeySpace::Remembered => state.remembered.keys().map(RememberedName::to_string).collect(),
            KeySpace::Indexes => state.indexes.keys().map(Name::to_string).collect(),
        };
        names.retain(|name| after.is_none_or(|after| name.as_str() > after));
        names.sort_unstable();
        let next = names.get(limit.saturating_sub(1)).cloned();
        let next = next.filter(|_| names.len() > limit);
        let found = names.into_iter().take(limit);
        Ok(Walked {
            found: found
                .filter_map(|name| state.found(key_space, &name, now_ms))
                .collect(),
            next,
        })
    }

    async fn exchange(&self, was: &Sealed, bytes: Vec<u8>) -> Result<Replaced, StoreError> {
        use crate::store::SessionStore as _;
        let now_ms = self.now_ms();
        let mut state = self.kept.state();
        match was {
            Sealed::Record(record) => match state.live(record.name, now_ms) {
                None => return Ok(Replaced::Missing),
                Some(known) if known != record => return Ok(Replaced::Stale),
                Some(_) => drop(state.records.insert(record.name, resealed(record, bytes))),
            },
            Sealed::Remembered { name, value } => {
                match RememberedName::parse(name).and_then(|name| state.remembered.get_mut(&name)) {
                    Some((until, _)) if *until <= now_ms => return Ok(Replaced::Missing),
                    None => return Ok(Replaced::Missing),
                    Some((_, known)) if known != value => return Ok(Replaced::Stale),
                    Some((_, known)) => *known = bytes,
                }
            }
        }
        Ok(Replaced::Done)
    }

    async fn facts(&self, _server_memory: Option<u64>) -> Result<Vec<Fact>, StoreError> {
        Ok(vec![Fact::fine("engine", "memory")])
    }
}

impl MemoryState {
    fn found(&self, key_space: KeySpace, name: &str, now_ms: u64) -> Option<FoundItem> {
        match key_space {
            KeySpace::Records => self
                .live(Name::parse(name).ok()?, now_ms)
                .map(|record| FoundItem::Sealed(Sealed::Record(record.clone()))),
            KeySpace::Remembered => {
                let (until, value) = self.remembered.get(&RememberedName::parse(name)?)?;
                (now_ms < *until).then(|| {
                    FoundItem::Sealed(Sealed::Remembered {
                        name: name.to_owned(),
                        value: value.clone(),
                    })
                })
            }
            KeySpace::Indexes => {
                let entries = self.indexes.get(&Name::parse(name).ok()?)?;
                let expired = |(_, name): &&(u64, Name)| {
                    self.records
                        .get(name)
                        .is_some_and(|record| record.expires_at_ms <= now_ms)
                };
                let live: Vec<_> = entries.iter().filter(|entry| !expired(entry)).collect();
                Some(FoundItem::Index {
                    name: name.to_owned(),
                    entries: live.len(),
                    without_record: live
                        .iter()
                        .filter(|(_, name)| !self.records.contains_key(name))
                        .count(),
                })
            }
        }
    }
}
