//! The asynchronous runtime, and what a running service gets from the process around it.

use std::io;
use std::sync::Arc;

use prometheus::Registry;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::readiness::Readiness;

/// What a service gets to run with.
#[derive(Clone)]
pub struct Runtime {
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Cancelled when no new work is to be taken; what is in flight may finish.
    pub shutdown: CancellationToken,
    /// Whether traffic is welcome; add conditions to it.
    pub readiness: Readiness,
    /// Where metrics are registered.
    pub metrics: Registry,
}

/// Builds the runtime. The one place that decides how work is spread over cores.
///
/// # Errors
/// The operating system gives no threads.
pub fn build() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
