//! What scripts in a browser ask for: who is signed in, where, and what ends.

pub mod access_token;
pub mod analytics;
pub mod client_keys;
pub mod grpc_web;
pub mod profile;
pub mod status;
