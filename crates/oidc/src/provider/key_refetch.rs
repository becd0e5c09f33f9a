//! When an unknown key is worth another request to the provider.
//!
//! A token under a key that is not known makes the whole key set be fetched anew, so that a rotation is followed by the very
//! token that meets it; so does a token that the key it names does not verify, for providers that make a new key under the name
//! of the old one. How often depends on whom the token came from alone, never on the key it names: one forced fetch an
//! interval brings every key there is, and who invents key names changes nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Least time between two fetches for tokens the provider itself handed us over TLS: a provider that publishes a key late gets
/// one request a second, however many sign-ins and refreshes there are.
const PROVIDER_TOKEN_INTERVAL: Duration = Duration::from_secs(1);
/// The same for tokens anybody can send.
const UNAUTHENTICATED_TOKEN_INTERVAL: Duration = Duration::from_secs(10);

/// Where a token came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenOrigin {
    /// The provider's token or userinfo endpoint, for a person who waits: a key that is a second late is waited for.
    Interactive,
    /// The provider's token endpoint, for a caller that keeps the token and validates it again.
    Background,
    /// A request of anybody.
    Unauthenticated,
}

impl TokenOrigin {
    /// Least time between two fetches.
    pub(crate) fn interval(self) -> Duration {
        match self {
            Self::Interactive | Self::Background => PROVIDER_TOKEN_INTERVAL,
            Self::Unauthenticated => UNAUTHENTICATED_TOKEN_INTERVAL,
        }
    }

    /// How many fetches one token may wait for.
    pub(crate) fn rounds(self) -> usize {
        match self {
            Self::Interactive => 2,
            Self::Background | Self::Unauthenticated => 1,
        }
    }

    /// Whether to wait for a fetch that may not begin yet.
    pub(crate) fn waits_for_turn(self) -> bool {
        self == Self::Interactive
    }
}

/// Forced fetches, at most one an interval for each kind of sender.
#[derive(Default)]
pub(crate) struct RefetchThrottle {
    for_provider_tokens: Mutex<Option<Instant>>,
    for_unauthenticated_tokens: Mutex<Option<Instant>>,
}

impl RefetchThrottle {
    /// Begins a fetch.
    ///
    /// # Errors
    /// One was begun within the interval; this long the next has to wait.
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
