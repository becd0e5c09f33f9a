//! session-svc

pub mod grpc;
pub mod refresh;
pub mod session;
pub mod sessions;
pub mod store;
pub mod vault;
