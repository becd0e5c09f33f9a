//! Client identity: authentication, keys, and the requests they sign.

pub(crate) mod algorithm;
pub(crate) mod assertion_file;
pub(crate) mod client_auth;
pub(crate) mod client_key;
pub(crate) mod dpop;
pub(crate) mod request_object;
