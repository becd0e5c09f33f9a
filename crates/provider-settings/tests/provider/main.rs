//! The settings in real use: errors, a provider behind private TLS, a client certificate, changing
//! credentials, a forward proxy, and several providers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod credentials;
mod proxy;
mod refused;
mod several;
mod support;
