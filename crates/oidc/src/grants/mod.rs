//! Requests to the endpoints of the provider: authorization, code, refresh, exchange, revocation and introspection.

pub(crate) mod access;
pub(crate) mod authorization;
pub(crate) mod grant;
pub(crate) mod introspection;
pub(crate) mod revocation;
