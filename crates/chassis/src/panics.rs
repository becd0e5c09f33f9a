//! A panic ends the process, but where a library is known to panic over damaged input.
//!
//! A task that panicked leaves locks and queues that no other task looks after: a supervisor that starts the process again serves
//! its users better than half a process.

use std::panic;
use std::thread::{self, Builder};

/// Name of the threads whose panics are an answer.
const CAUGHT: &str = "caught";

/// The work panicked; the message is on standard error.
#[derive(Debug, thiserror::Error)]
#[error("it could not be read: the reason is on standard error")]
pub struct Panicked;

/// Ends the process after every panic that [`catch`] does not wait for.
pub(crate) fn abort_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        if thread::current().name() != Some(CAUGHT) {
            std::process::abort();
        }
    }));
}

/// Runs `work` on a thread of its own and waits for it.
///
/// # Errors
/// The work panicked, or the system has no thread for it.
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
