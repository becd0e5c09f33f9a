//! Receivers of signed events: what they get and when, and what survives failures.

mod endings;
mod peer;
mod process;
mod pushing;
mod support;
mod surviving;
