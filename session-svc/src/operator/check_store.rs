//! `check-store`: checks that the store is reachable, grants the needed rights, and keeps sessions.

use chassis::findings::Report;
use chassis::settings::Reader;
use chassis::tool::ReportTool;

use super::store::{self, StoreAccess};
use crate::settings;
use crate::store::url::StoreSettings;

/// The command.
pub(super) static CHECK_STORE: ReportTool<StoreAccess> = ReportTool {
    name: "check-store",
    about: "Checks the store: the connection, the rights of its user, and the setup of its servers",
    remarks: "Writes a test record and removes it. A file has to be free: stop its service first.",
    read,
    examine: |access| {
        Box::pin(async move {
            let sections = vec![store::examine(&access).await];
            Report { sections }
        })
    },
};

/// Reads the store's settings. Rejects a store in memory.
fn read(reader: &mut Reader<'_>) -> StoreAccess {
    let (store, keys, _) = settings::store_and_keys(reader);
    if matches!(store, StoreSettings::Memory) {
        reader.wrong(
            "SESSION_STORE",
            "is memory:, which no other process can read: set the store that the service uses",
        );
    }
    StoreAccess {
        store,
        keys: keys.len(),
        may_be_served: false,
    }
}
