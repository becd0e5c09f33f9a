//! The routes for scripts in a browser: who is signed in, the person's sessions, and their end.

pub(crate) mod access_token;
pub(crate) mod analytics;
pub(crate) mod client_keys;
pub(crate) mod grpc_web;
pub(crate) mod profile;
mod state;
pub(crate) mod status;

pub(crate) use self::state::Browser;
