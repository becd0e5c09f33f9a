//! The session service as a program: settings in, calls answered, drained at the end; or one of the operator's
//! commands. All of it is in the library.

use std::process::ExitCode;

use session_svc::{operator, settings, start};

/// Every request makes and frees many small pieces (docs/decisions/workers.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    chassis::service::main(&settings::SERVICE, &operator::TOOLS, settings::read, start::run)
}
