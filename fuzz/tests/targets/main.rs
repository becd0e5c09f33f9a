//! A short run of each target with every `cargo test`.

mod edge;
mod rpc;
mod upstream;
