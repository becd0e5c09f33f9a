//! A fetched value: one fetch for all waiting callers, refreshed early, served stale while the provider is
//! down. Failures are not cached, but the next attempt after one waits a moment.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::ProviderError;

/// A revoked key or moved endpoint takes effect within this time, even if the provider allows more.
const LONGEST_FRESH: Duration = Duration::from_secs(600);
/// If a provider forbids caching, it is still not called for every login.
const SHORTEST_FRESH: Duration = Duration::from_secs(60);
/// The pause after a failed fetch.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

struct CachedValue<T> {
    value: Arc<T>,
    fetched_at: Instant,
    fresh_for: Duration,
}

struct FailedFetch {
    error: Arc<ProviderError>,
    at: Instant,
}

/// The cache of one value.
pub(crate) struct Cached<T> {
    entry: ArcSwapOption<CachedValue<T>>,
    /// Locked during a fetch; holds the last failed one.
    fetching: Mutex<Option<FailedFetch>>,
    refreshing: Arc<AtomicBool>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self {
            entry: ArcSwapOption::empty(),
            fetching: Mutex::default(),
            refreshing: Arc::default(),
        }
    }
}

/// A value, and for how many seconds its source allows caching it.
pub(crate) type Fetched<T> = (T, Option<u64>);

impl<T> Cached<T> {
    /// The value while it is fresh. After half of that time, a background task fetches it again.
    pub(crate) async fn get<F>(&self, fetched: impl FnOnce() -> F) -> Result<Arc<T>, ProviderError>
    where
        F: Future<Output = Result<Arc<T>, ProviderError>> + Send + 'static,
        T: Send + Sync + 'static,
    {
        let entry = self.entry.load_full();
        let age = |entry: &CachedValue<T>| entry.fetched_at.elapsed();
        let Some(entry) = entry.filter(|entry| age(entry) < entry.fresh_for) else {
            return fetched().await;
        };
        if age(&entry) > entry.fresh_for / 2 && !self.refreshing.swap(true, Ordering::AcqRel) {
            let (refreshing, fetched) = (Arc::clone(&self.refreshing), fetched());
            tokio::spawn(async move {
                // a failure is logged already, and the current value stays.
                let _ = fetched.await;
                refreshing.store(false, Ordering::Release);
            });
        }
        Ok(entry.value.clone())
    }

    /// Whether the value is no older than this.
    pub(crate) fn fetched_within(&self, age: Duration) -> bool {
        let entry = self.entry.load();
        entry
            .as_ref()
            .is_some_and(|entry| entry.fetched_at.elapsed() <= age)
    }

    /// Waits for the current fetch to end. Returns the cached value, if there is one.
    pub(crate) async fn wait_for_fetch(&self) -> Option<Arc<T>> {
        let _turn = self.fetching.lock().await;
        self.entry.load_full().map(|entry| entry.value.clone())
    }

    /// Fetches, unless another task just did. After a failure, returns the stale value.
    pub(crate) async fn fetch<F>(&self, fetch: impl FnOnce() -> F) -> Result<Arc<T>, ProviderError>
    where
        F: Future<Output = Result<Fetched<T>, ProviderError>>,
    {
        let called_at = Instant::now();
        let mut failure = self.fetching.lock().await;
        let entry = self.entry.load_full();
        if let Some(entry) = &entry
            && entry.fetched_at >= called_at
        {
            return Ok(entry.value.clone());
        }
        let stale = entry.map(|entry| entry.value.clone());
        if let Some(recent) = failure
            .as_ref()
            .filter(|failed| failed.at.elapsed() < FAILURE_PAUSE)
        {
            return stale.ok_or_else(|| ProviderError::Recent(recent.error.clone()));
        }
        match fetch().await {
            Ok((value, max_age_secs)) => {
                let fresh_for = max_age_secs.map_or(LONGEST_FRESH, Duration::from_secs);
                let fresh_for = fresh_for.clamp(SHORTEST_FRESH, LONGEST_FRESH);
                let value = Arc::new(value);
                let entry = CachedValue {
                    value: value.clone(),
                    fetched_at: Instant::now(),
                    fresh_for,
                };
                self.entry.store(Some(Arc::new(entry)));
                Ok(value)
            }
            Err(error) => {
                let error = Arc::new(error);
                *failure = Some(FailedFetch {
                    error: error.clone(),
                    at: Instant::now(),
                });
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    stale_value = stale.is_some(),
                    "the provider could not be asked"
                );
                stale.ok_or(ProviderError::Recent(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const NO_ANSWER: ProviderError = ProviderError::Timeout("keys");

    #[tokio::test(start_paused = true)]
    async fn right_after_a_failure_nobody_asks_again() {
        let (cached, fetches) = (Cached::<u8>::default(), AtomicUsize::new(0));
        let fails = || async {
            fetches.fetch_add(1, Ordering::SeqCst);
            Err(NO_ANSWER)
        };
        for (after, expected) in [(0, 1), (0, 1), (499, 1), (1, 2)] {
            tokio::time::advance(Duration::from_millis(after)).await;
            assert!(cached.fetch(fails).await.is_err());
            assert_eq!(fetches.load(Ordering::SeqCst), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_provider_says_about_caching_counts_within_bounds() {
        for (said_secs, fresh_secs) in [
            (None, 600),
            (Some(0), 60),
            (Some(300), 300),
            (Some(u64::MAX), 600),
        ] {
            let cached = Cached::default();
            let fetched = cached.fetch(|| async { Ok((7, said_secs)) }).await;
            assert_eq!(fetched.ok().as_deref(), Some(&7));
            tokio::time::advance(Duration::from_secs(fresh_secs) - Duration::from_millis(1)).await;
            let again = || async { Err(NO_ANSWER) };
            assert!(cached.get(again).await.is_ok(), "{said_secs:?}");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(cached.get(again).await.is_err(), "{said_secs:?}");
        }
    }
}
