//! The session service as a program: it reads settings, answers calls and drains at the end, or runs an
//! operator's command. The code is in the library.

use std::process::ExitCode;

use session_svc::{operator, settings, start};

/// Every request allocates and frees many small pieces (docs/decisions/workers.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    chassis::service::main(&settings::SERVICE, &operator::TOOLS, settings::read, start::run)
}
