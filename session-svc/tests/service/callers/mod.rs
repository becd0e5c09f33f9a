//! Access rules per caller: the service behind TLS, with real certificates, over real gRPC.

mod audit;
mod deadlines;
mod examples;
mod identities;
mod log;
mod open_to_all;
mod operators;
mod policy;
mod process;
mod raw;
mod reload;
mod support;
mod times;
mod traces;
mod unreadable;
