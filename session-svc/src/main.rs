//! The session service as a program: settings in, calls answered, drained at the end. All of it is in the library.

use std::process::ExitCode;

use session_svc::{settings, start};

fn main() -> ExitCode {
    chassis::service::main(&settings::SERVICE, settings::read, start::run)
}
