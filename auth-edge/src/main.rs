//! The edge as a program: settings in, requests answered, drained at the end. All of it is in the library.

use std::process::ExitCode;

use auth_edge::doctor::DOCTOR;
use auth_edge::{settings, start};

/// Every request makes and frees many small pieces (docs/decisions/workers.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    chassis::service::main(&settings::SERVICE, &[&DOCTOR], settings::read, start::run)
}
