//! session-svc

pub mod store;
