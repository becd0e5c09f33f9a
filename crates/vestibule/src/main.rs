//! Edge, session service and web app in one process, for one machine. It wires the libraries of the services.
//!
//! Invariants
//! - The edge calls the session service over gRPC in memory: no port, and no other code than between two pods.
//! - Its secrets are made once, at the first start, and kept in `EDGE_DATA_DIR`.
//!
//! Deliberately absent: several replicas. What faces browsers shares this process with refresh tokens, so larger
//! installations run the two services (docs/one-program.md).

mod convert;
mod data;
mod settings;
mod start;

use std::process::ExitCode;

use auth_edge::doctor::DOCTOR;

/// Every request allocates and frees many small objects (docs/decisions/workers.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    chassis::service::main_with(
        &settings::SERVICE,
        data::provide,
        &[&DOCTOR, &convert::Convert],
        settings::read,
        start::run,
    )
}
