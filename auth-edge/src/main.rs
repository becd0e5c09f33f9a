//! The edge as a program: settings in, requests answered, drained at the end. All of it is in the library.

use std::process::ExitCode;

use auth_edge::{settings, start};

fn main() -> ExitCode {
    chassis::service::main(&settings::SERVICE, settings::read, start::run)
}
