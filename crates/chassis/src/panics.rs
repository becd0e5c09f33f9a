//! A panic ends the process, except in libraries that are known to panic over damaged input.
//!
//! A task that panicked leaves locks and queues without an owner. A restart by the supervisor is better for
//! users than a process in which parts no longer run.

use std::panic;
use std::thread::{self, Builder};

/// The name of threads that [`catch`] starts. Their panics do not end the process.
const CAUGHT: &str = "caught";

/// The work panicked; the message is on standard error.
#[derive(Debug, thiserror::Error)]
#[error("it could not be read: the reason is on standard error")]
pub struct Panicked;

/// Ends the process after every panic outside [`catch`].
pub(crate) fn abort_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        if thread::current().name() != Some(CAUGHT) {
            std::process::abort();
        }
    }));
}

/// Runs `work` on its own thread and waits for it.
///
/// # Errors
/// The work panicked, or the system cannot start a thread.
pub fn catch<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
    let thread = Builder::new().name(CAUGHT.to_owned()).spawn(work);
    thread
        .map_err(|_no_thread| Panicked)?
        .join()
        .map_err(|_panic| Panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(catch(|| 7).ok(), Some(7));
        assert!(catch(|| panic!("damaged")).is_err());
    }
}
