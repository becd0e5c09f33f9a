//! Pages kept back for when there is no room: what ends sessions can always be written.
//!
//! The engine writes beside what it replaces, so that every change needs free pages first, also one that frees more than it
//! takes. While there is room, [`PAGES`] pages are held by rows that say nothing. When there is none, the rows are deleted,
//! and endings, and changes within bounds, live on what that frees; new sessions begin again when the rows are back.
//!
//! Each page is a row of its own: pages that are freed lie scattered, and a reserve of larger pieces would not fit into them.

use redb::{ReadableTableMetadata as _, StorageError, TableDefinition, WriteTransaction};

use crate::store::StoreError;

use super::store_error;

const RESERVE: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("reserve");

/// Rows that come and go within a transaction.
const TRIED: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("tried");

/// Pages of 4 KiB held: 2 MiB. A removal takes about twenty for as long as its commit, and [`ENDINGS_AT_ONCE`] share one.
const PAGES: u32 = 512;

/// Bytes of a row: two do not fit into a page.
const ROW: usize = 3_000;

/// Pages that have to be left after any commit: deleting the rows takes about ten, and what a commit writes of itself after
/// they were counted takes up to twenty.
pub(super) const LEFT_BY_ANY: u32 = 48;

/// Pages that have to be left when the reserve is filled again: room for some hundred sessions, or it would be needed again at
/// once.
pub(super) const LEFT_TO_BEGIN_WITH: u32 = PAGES;

/// Pages that have to be left after a change while there is no room: the rest belongs to endings.
pub(super) const LEFT_BY_CHANGES: u32 = PAGES / 2;

/// Endings, and changes, in one commit while there is no room.
pub(super) const ENDINGS_AT_ONCE: usize = 8;

/// Whether the pages are held.
pub(super) fn is_held(transaction: &WriteTransaction) -> Result<bool, StoreError> {
    let rows = transaction.open_table(RESERVE).map_err(store_error)?;
    Ok(rows.len().map_err(store_error)? == u64::from(PAGES))
}

/// Holds them, as far as they are not.
pub(super) fn hold(transaction: &WriteTransaction) -> Result<(), StoreError> {
    take(transaction, RESERVE, PAGES).map_err(store_error)
}

/// Gives them to whoever writes next.
pub(super) fn release(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.delete_table(RESERVE).map_err(store_error)?;
    Ok(())
}

/// Takes so many pages and gives them back: are they not there, the file grows, or its disk is short of them.
pub(super) fn try_for(transaction: &WriteTransaction, pages: u32) -> Result<(), StoreError> {
    take(transaction, TRIED, pages).map_err(store_error)?;
    transaction.delete_table(TRIED).map_err(store_error)?;
    Ok(())
}

fn take(
    transaction: &WriteTransaction,
    table: TableDefinition<'_, u32, &'static [u8]>,
    pages: u32,
) -> Result<(), redb::Error> {
    let mut rows = transaction.open_table(table)?;
    for row in 0..pages {
        let reserved: Result<_, StorageError> = rows.insert_reserve(row, ROW);
        drop(reserved?);
    }
    Ok(())
}
