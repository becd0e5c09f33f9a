//! auth-edge: the server that browsers talk to. It signs users in and out at an OpenID provider and keeps
//! their session in a cookie that means nothing by itself. It guards the pages and APIs behind it.
//!
//! One request: layer (host, limits) → route → guard (CSRF; the cookie's signature; the session, from memory
//! or by `GetSession`; `RollSession` when that is due) → handler or upstream. Before an answer renews the
//! cookie, the edge calls `GetSession` again, unless it is sure to receive the end of a session
//! (docs/architecture.md, "One request"). `routes.rs` lists, top to bottom, all that the edge does.
//!
//! Invariants
//! - The edge may lose all that it holds in memory at any time.
//! - No token reaches a browser, except by the access-token route, which is off by default.
//! - An outage of a backend does not sign users out.
//!
//! Deliberately absent: storage.

pub mod app;
pub(crate) mod browser;
pub mod doctor;
pub mod gateway;
pub(crate) mod http;
pub(crate) mod kept_form;
mod oauth2_proxy;
pub(crate) mod providers;
pub(crate) mod route_table;
pub mod routes;
pub mod sessions;
pub mod settings;
pub(crate) mod sign_in;
pub mod start;
pub(crate) mod values;
