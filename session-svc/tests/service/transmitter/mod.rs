//! Receivers of signed events: which events they get and when, and what survives failures.

mod endings;
mod peer;
mod process;
mod pushing;
pub(crate) mod support;
mod surviving;
