//! A list's records, as callers that list sessions read them.

use session_svc::store::{KeyValueStore, Name, Record, StoreError};

/// The first `limit` records of an index, part by part.
pub(crate) async fn listed(
    store: &dyn KeyValueStore,
    index: Name,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let listing = store
            .list(index, after.as_ref(), limit.saturating_sub(found.len()))
            .await?;
        let names: Vec<Name> = listing.entries.iter().map(|entry| entry.name).collect();
        for loaded in store.load_many(&names).await? {
            if let Ok(Some(record)) = loaded
                && record.indexes.contains(&index)
            {
                found.push(record);
            }
        }
        after = listing.next;
        if after.is_none() || found.len() >= limit {
            return Ok(found);
        }
    }
}
