//! auth-edge: what browsers talk to. It signs people in and out at an OpenID provider, keeps their session in a cookie that
//! means nothing by itself, and guards the pages and APIs that lie behind it.
//!
//! One request: layer (host, limits) → route → guard (CSRF; the cookie's signature; the session, from memory or by
//! `GetSession`, and `RollSession` when that is due) → handler or upstream. Before an answer renews the cookie, `GetSession`
//! once more, unless an ending would have been heard (docs/architecture.md, "One request"). `routes.rs`, top to bottom, is
//! what the edge does.
//!
//! Invariants
//! - Whatever the edge holds in memory may be lost at any time.
//! - No token reaches a browser, but by the access-token route, which is off by default.
//! - A backend that is down signs nobody out.
//!
//! Deliberately absent: storage.

pub mod app;
pub(crate) mod browser;
pub mod doctor;
pub mod gateway;
pub(crate) mod http;
pub(crate) mod kept_form;
pub(crate) mod providers;
pub(crate) mod route_table;
pub mod routes;
pub mod sessions;
pub mod settings;
pub(crate) mod sign_in;
pub mod start;
pub(crate) mod values;
