//! The provider: its metadata and keys, the HTTP client, and probes for `doctor`.

pub(crate) mod cached;
pub(crate) mod http_client;
pub(crate) mod issuer_parameter;
pub(crate) mod issuer_settings;
pub(crate) mod key_refetch;
pub(crate) mod metadata;
pub(crate) mod probe;
pub(crate) mod provider_cache;
pub(crate) mod span;
