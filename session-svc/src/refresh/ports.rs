//! Types shared by use cases and refreshes.

use tokio::time::Instant;

pub use crate::error::TokenRefreshError;

/// A caller that waits for tokens, and since when.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCaller<'a> {
    /// The caller's identity as in audit records; empty if it has none.
    pub caller: &'a str,
    /// When its call began.
    pub since: Instant,
}
