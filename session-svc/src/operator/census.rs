//! Counts what a store keeps: sessions and notes, by the key that sealed them, and what cannot be read.

use std::collections::BTreeMap;

use super::sealed::{SealedContent, contents};
use super::store_access::OpenedStore;
use crate::keeper::{KeyId, SealError};
use crate::store::StoreError;
use crate::store::inspect::{FoundItem, KeySpace, Sealed};
use crate::vault::Vault;

/// Entries read at once.
const PAGE: usize = 512;

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Sessions that can be read.
    pub(super) sessions: u64,
    /// Notes kept for minutes: of endings, of requests that may be repeated.
    pub(super) notes: u64,
    /// Texts by the key that sealed them, whether it is in the ring or not.
    pub(super) sealed_by: BTreeMap<KeyId, u64>,
    /// Texts whose key is not in the ring.
    pub(super) unknown_key: u64,
    /// Texts of a newer release.
    pub(super) newer_format: u64,
    /// Texts or frames that were changed, cut or never ours.
    pub(super) corrupt: u64,
    /// Entries of another program.
    pub(super) foreign: u64,
    /// Lists sessions are found by.
    pub(super) indexes: u64,
    /// Their entries.
    pub(super) index_entries: u64,
    /// Entries that lead to no record.
    pub(super) without_record: u64,
    /// Whether all of it was counted.
    pub(super) complete: bool,
}

impl Census {
    /// Texts that cannot be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unknown_key + self.newer_format + self.corrupt
    }

    /// Records and remembered values seen.
    pub(super) fn examined(&self) -> u64 {
        self.sessions + self.notes + self.unreadable()
    }

    fn count(&mut self, vault: &Vault, found: &FoundItem) {
        match found {
            FoundItem::Sealed(sealed) => self.count_sealed(vault, sealed),
            FoundItem::Unreadable { .. } => self.corrupt += 1,
            FoundItem::Foreign => self.foreign += 1,
            FoundItem::Index {
                entries,
                without_record,
                ..
            } => {
                self.indexes += 1;
                self.index_entries += *entries as u64;
                self.without_record += *without_record as u64;
            }
        }
    }

    fn count_sealed(&mut self, vault: &Vault, sealed: &Sealed) {
        if let Some(key) = Vault::key_id_of(sealed.bytes()) {
            *self.sealed_by.entry(key).or_default() += 1;
        }
        match contents(vault, sealed) {
            Ok(SealedContent::Session) => self.sessions += 1,
            Ok(SealedContent::Note) => self.notes += 1,
            Err(SealError::UnknownKey(_)) => self.unknown_key += 1,
            Err(SealError::UnknownFormat) => self.newer_format += 1,
            Err(_) => self.corrupt += 1,
        }
    }
}

/// Counts at most `limit` entries of each key space; 0 for all.
pub(super) async fn count_entries(opened: &OpenedStore, limit: u64) -> Result<Census, StoreError> {
    let mut census = Census {
        complete: true,
        ..Census::default()
    };
    let page = match limit {
        0 => PAGE,
        limit => PAGE.min(usize::try_from(limit).unwrap_or(PAGE)),
    };
    for key_space in [KeySpace::Records, KeySpace::Remembered, KeySpace::Indexes] {
        let (mut seen, mut after) = (0_u64, None);
        loop {
            let walked = opened.store.walk(key_space, after.as_deref(), page).await?;
            seen += walked.found.len() as u64;
            walked
                .found
                .iter()
                .for_each(|found| census.count(&opened.vault, found));
            after = walked.next;
            if after.is_none() {
                break;
            }
            if limit > 0 && seen >= limit {
                census.complete = false;
                break;
            }
        }
    }
    Ok(census)
}
