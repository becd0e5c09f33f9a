//! The settings in earnest: what is refused, a provider behind TLS of a private authority, a client certificate, credentials
//! that change, a forward proxy, and several providers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod credentials;
mod proxy;
mod refused;
mod several;
mod support;
