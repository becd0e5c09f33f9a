//! The edge as a program: reads settings, answers requests, drains at the end. The library holds all of it.

use std::process::ExitCode;

use auth_edge::doctor::DOCTOR;
use auth_edge::{settings, start};

/// Every request allocates and frees many small objects (docs/decisions/workers.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    chassis::service::main(&settings::SERVICE, &[&DOCTOR], settings::read, start::run)
}
