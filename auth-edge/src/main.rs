//! The edge as a program: settings in, requests answered, drained at the end. All of it is in the library.

use std::process::ExitCode;

use auth_edge::gateway::explain::RoutesTool;
use auth_edge::{settings, start};

/// Small, short-lived pieces on every request: a tenth of a request's time with the system's own allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    chassis::service::main_with(&settings::SERVICE, &[&RoutesTool], settings::read, start::run)
}
