//! Tokens for single APIs, with real services on their own ports. The provider exchanges tokens (RFC 8693)
//! and names resources in refreshes (RFC 8707).

mod by_exchange;
mod by_refresh;
mod cross_app;
mod cross_app_failures;
mod endings;
mod refused;
mod room;
mod support;
