//! Tokens for single APIs, over real parts: session services on ports of their own, and a provider that exchanges tokens
//! (RFC 8693) and names resources in refreshes (RFC 8707).

mod by_exchange;
mod by_refresh;
mod endings;
mod refused;
mod room;
mod support;
