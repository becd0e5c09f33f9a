//! Systems that are told of endings by signed events: what they are told and when, how they fetch it, what they may change, and what
//! survives.

mod endings;
mod peer;
mod polling;
mod process;
mod pushing;
mod streams;
mod support;
mod surviving;
