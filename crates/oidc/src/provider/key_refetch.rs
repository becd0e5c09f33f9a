//! Decides when an unknown key justifies another request to the provider.
//!
//! A token with an unknown key triggers a fetch of the whole key set, so the first token after a rotation
//! verifies. So does a token that fails with the key it names: some providers reuse names. The rate depends
//! only on the token's sender, never on the key name: one fetch an interval brings all keys, so invented
//! names change nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between two fetches for tokens that the provider itself sent over TLS. If it publishes a key
/// late, it receives one request a second, for any number of sign-ins and refreshes.
const PROVIDER_TOKEN_INTERVAL: Duration = Duration::from_secs(1);
/// The same for tokens from unauthenticated senders.
const UNAUTHENTICATED_TOKEN_INTERVAL: Duration = Duration::from_secs(10);

/// The source of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenOrigin {
    /// The provider's token or userinfo endpoint, while a user waits. The caller waits a moment for a late key.
    Interactive,
    /// The provider's token endpoint, for a caller that keeps the token and validates it again later.
    Background,
    /// A request from an unauthenticated sender.
    Unauthenticated,
}

impl TokenOrigin {
    /// Minimum time between two fetches.
    pub(crate) fn interval(self) -> Duration {
        match self {
            Self::Interactive | Self::Background => PROVIDER_TOKEN_INTERVAL,
            Self::Unauthenticated => UNAUTHENTICATED_TOKEN_INTERVAL,
        }
    }

    /// The number of fetches that one token may wait for.
    pub(crate) fn rounds(self) -> usize {
        match self {
            Self::Interactive => 2,
            Self::Background | Self::Unauthenticated => 1,
        }
    }

    /// Whether to wait for a fetch that may not start yet.
    pub(crate) fn waits_for_turn(self) -> bool {
        self == Self::Interactive
    }
}

/// Forced fetches: at most one an interval for each token origin.
#[derive(Default)]
pub(crate) struct RefetchThrottle {
    for_provider_tokens: Mutex<Option<Instant>>,
    for_unauthenticated_tokens: Mutex<Option<Instant>>,
}

impl RefetchThrottle {
    /// Starts a fetch.
    ///
    /// # Errors
    /// Another fetch started within the interval. The value is the time to wait.
    pub(crate) fn begin(&self, origin: TokenOrigin) -> Result<(), Duration> {
        let last = match origin {
            TokenOrigin::Interactive | TokenOrigin::Background => &self.for_provider_tokens,
            TokenOrigin::Unauthenticated => &self.for_unauthenticated_tokens,
        };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let since = last.map(|last| last.elapsed());
        if let Some(wait) = since.and_then(|since| origin.interval().checked_sub(since))
            && !wait.is_zero()
        {
            return Err(wait);
        }
        *last = Some(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_fetch_an_interval_and_the_rest_are_told_how_long_to_wait() {
        let (refetches, origin) = (RefetchThrottle::default(), TokenOrigin::Unauthenticated);
        assert_eq!(refetches.begin(origin), Ok(()));
        assert_eq!(refetches.begin(origin), Err(UNAUTHENTICATED_TOKEN_INTERVAL));
        assert_eq!(refetches.begin(TokenOrigin::Background), Ok(()));
        tokio::time::advance(UNAUTHENTICATED_TOKEN_INTERVAL - Duration::from_millis(1)).await;
        assert_eq!(refetches.begin(origin), Err(Duration::from_millis(1)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(refetches.begin(origin), Ok(()));
        assert!(refetches.begin(origin).is_err());
    }
}
