//! The settings of the store and of the keys that encrypt sessions.

use std::path::PathBuf;

use chassis::findings::chain;
use chassis::secret::Secret;
use chassis::settings::Reader;
use chassis::tls;

use crate::store;
use crate::store::url::{StoreSettings, TlsSettings};
use crate::vault::parse_list;

const STORE: &str = "SESSION_STORE";

/// Reads and validates the store, the keys that encrypt sessions, and the file with the keys.
pub(crate) fn store_and_keys(
    reader: &mut Reader<'_>,
) -> (StoreSettings, Vec<Secret<String>>, Option<PathBuf>) {
    let store = reader
        .text(STORE)
        .parse::<StoreSettings>()
        .unwrap_or_else(|error| {
            reader.wrong(STORE, error.to_string());
            StoreSettings::Memory
        });
    let keys = reader.secrets("SESSION_ENCRYPTION_KEY");
    let keys_file = reader.secret_file("SESSION_ENCRYPTION_KEY");
    if keys.is_empty() && !matches!(store, StoreSettings::Memory) {
        reader.wrong(
            "SESSION_ENCRYPTION_KEY",
            "is required, except with the store memory:. Create a key with `openssl rand -hex 32`",
        );
    }
    if !keys.is_empty()
        && let Err(error) = parse_list(&keys)
    {
        reader.wrong("SESSION_ENCRYPTION_KEY", error.to_string());
    }
    (store, keys, keys_file)
}

/// Reports mistakes in the files of the store. Does not contact the store: it may be down, or in use.
pub(super) fn check_files(reader: &mut Reader<'_>, store: &StoreSettings) {
    if let StoreSettings::Redis(settings) = store
        && let Some(files) = &settings.tls
        && !certificates_fit(reader, files)
    {
        return;
    }
    if let Err(error) = store::check(store) {
        reader.wrong(STORE, chain(&error));
    }
}

/// Checks the certificates like our own. The store's client would check them only when it connects.
fn certificates_fit(reader: &mut Reader<'_>, files: &TlsSettings) -> bool {
    let ca = files.ca_file.as_ref();
    let authorities = ca.is_none_or(|ca| tls::check_authorities(reader, STORE, ca));
    let pair = files.cert_file.as_ref().zip(files.key_file.as_ref());
    let pair =
        pair.is_none_or(|(certificate, key)| tls::check_pair(reader, (STORE, certificate), (STORE, key)));
    authorities && pair
}
