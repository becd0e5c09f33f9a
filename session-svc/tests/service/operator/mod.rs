//! The operator's commands, run as an operator does: the real binary, against a running service and its
//! store.

mod authorities;
mod check_store;
mod documents;
mod pause;
mod restart;
mod search;
mod sessions;
pub(crate) mod support;
