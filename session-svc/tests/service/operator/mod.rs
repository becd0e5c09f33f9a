//! The operator's commands as an operator meets them: the real binary, against a service that runs and the
//! store it keeps its sessions in.

mod authorities;
mod check_store;
mod documents;
mod pause;
mod restart;
mod sessions;
pub(crate) mod support;
