//! Requests to the provider's endpoints: authorization, code, refresh, exchange, revocation, introspection.

pub(crate) mod access;
pub(crate) mod authorization;
pub(crate) mod grant;
pub(crate) mod introspection;
pub(crate) mod revocation;
