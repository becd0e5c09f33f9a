//! auth-edge: what browsers talk to. It signs people in and out at an OpenID provider, keeps their session in a cookie that
//! means nothing by itself, and guards the pages and APIs that lie behind it.
//!
//! One request: cookie → verify → session → guard → handler or upstream. Read `routes.rs` top to
//! bottom and you know what the edge does. Invariants: nothing here cannot be lost; no token reaches a browser
//! (but by the access-token route, which is off by default); a backend that is down signs nobody out.
//! Deliberately absent: storage.

pub mod app;
pub(crate) mod browser;
pub mod explain;
pub mod gateway;
pub(crate) mod http;
pub(crate) mod providers;
pub(crate) mod route_table;
pub mod routes;
pub mod sessions;
pub mod settings;
pub(crate) mod sign_in;
pub mod start;
pub(crate) mod values;
