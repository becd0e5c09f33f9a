//! A cache that keeps sessions for a few seconds, so that most requests need no call.
//!
//! Invariants
//! - The cache serves a session only while every replica reports, no change to it was received since its read, and
//!   the read is younger than the maximum age. An ended session is rejected once the edge receives its end, or within
//!   `SILENCE_MAX` if the edge cannot receive it.
//! - The cache keeps no answer to a call that began before it dropped the session.
//! - Use always counts. If a read without use cached a session, its first use reads it again, so that it rolls.
//! - Misses are not cached: a session that was just created is found at once.
//! - `WEIGHT_MAX` limits memory. Each sweep drops the sessions that are too old to be served, and their tokens.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use prost::Message as _;
use quick_cache::Weighter;
use session_proto::client::SessionClient;
use session_proto::timestamp;

use super::cached_session::{CachedSession, CachedToken, TokenFor};
use super::open_streams::CHANGES_KEPT_MIN;
use super::replica_freshness::{self, Moment, ReplicaFreshness};
use crate::sessions::cookies::SessionId;

/// The most the cache may take, in bytes: about ten thousand sessions of the usual size.
const WEIGHT_MAX: u64 = 32 * 1024 * 1024;

/// Sessions expected within that weight; more are allowed.
const SESSIONS_EXPECTED: usize = 10_000;

/// Bytes an entry takes besides its session.
const ENTRY_BYTES: usize = 512;

/// A session takes about this many times its encoded size, including its claims as JSON.
const GROWTH: usize = 4;

/// The largest clock difference of two pods: a session this close to its expiry is not served.
pub(super) const CLOCK_DIFFERENCE_MS: u64 = 5_000;

/// An entry lives at most a tenth of the session's idle time, so that use counts in time.
const MAX_AGE_PARTS: u64 = 10;

/// The shortest time between two sweeps of old entries.
const SWEEP_INTERVAL_MIN: Duration = Duration::from_secs(1);

type CacheKey = [u8; 16];

type Entries = quick_cache::sync::Cache<CacheKey, CacheEntry, SessionWeighter>;

/// A session and when it was read.
#[derive(Clone, Debug)]
struct CacheEntry {
    session: Arc<CachedSession>,
    requested_at: Moment,
    /// When a use of the session last read it, so that it could roll.
    used: Option<Moment>,
    /// The oldest age at which it may be served.
    max_age: Duration,
    weight: u64,
}

#[derive(Clone, Debug)]
struct SessionWeighter;

impl Weighter<CacheKey, CacheEntry> for SessionWeighter {
    fn weight(&self, _: &CacheKey, entry: &CacheEntry) -> u64 {
        entry.weight
    }
}

/// The cached sessions.
#[derive(Debug)]
pub(crate) struct SessionCache {
    entries: Entries,
    /// Changes received from the session service.
    pub(super) freshness: Arc<ReplicaFreshness>,
    /// When a session was last dropped, as a [`Moment`]: a read that began earlier may return its old state.
    last_forgotten: AtomicU64,
    max_age: Duration,
}

impl SessionCache {
    /// Caches sessions up to `max_age` while all replicas report; zero disables it. Needs a tokio runtime.
    #[must_use]
    pub(crate) fn start(client: SessionClient, max_age: Duration) -> Arc<Self> {
        let freshness = Arc::new(ReplicaFreshness::new(max_age.max(CHANGES_KEPT_MIN)));
        tokio::spawn(replica_freshness::listen(client, Arc::downgrade(&freshness)));
        let cache = Arc::new(Self {
            entries: Entries::with_weighter(SESSIONS_EXPECTED, WEIGHT_MAX, SessionWeighter),
            freshness,
            last_forgotten: AtomicU64::new(0),
            max_age,
        });
        tokio::spawn(sweep(Arc::downgrade(&cache), max_age.max(SWEEP_INTERVAL_MIN)));
        cache
    }

    /// How many sessions are cached, and the bytes they take.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.entries.len(), self.entries.weight())
    }

    /// Now: take it before the call to the session service.
    pub(crate) fn now(&self) -> Moment {
        self.freshness.now()
    }

    /// The session of this ID, if its entry is still valid. `counts`: whether the request counts as use.
    ///
    /// # Errors
    /// The result label of the metric: `miss`, or `unheard` while a replica is silent.
    pub(super) fn find(
        &self,
        id: &SessionId,
        counts: bool,
        clock_ms: u64,
    ) -> Result<Arc<CachedSession>, &'static str> {
        let now = self.freshness.now();
        if !self.freshness.is_complete(now) {
            return Err("unheard");
        }
        let found = self.entries.get(&id.to_bytes()).filter(|entry| {
            let read = if counts {
                entry.used
            } else {
                Some(entry.requested_at)
            };
            read.is_some_and(|read| now.since(read) < entry.max_age)
                && ends_ms(&entry.session) > clock_ms.saturating_add(CLOCK_DIFFERENCE_MS)
                && self
                    .freshness
                    .is_unchanged(&entry.session.handle, entry.requested_at, now)
        });
        found.map(|entry| entry.session).ok_or("miss")
    }

    /// Caches a session whose read began at `requested_at`.
    pub(crate) fn keep(
        &self,
        id: &SessionId,
        session: &Arc<CachedSession>,
        requested_at: Moment,
        counts: bool,
    ) {
        let key = id.to_bytes();
        let is_late = || requested_at.0 <= self.last_forgotten.load(Ordering::SeqCst);
        if self.max_age.is_zero() || is_late() {
            return;
        }
        let rolled_ms = session.rolled_at.as_ref().map_or(0, timestamp::to_ms);
        let unused_ms = ends_ms(session).saturating_sub(rolled_ms);
        let used = if counts {
            Some(requested_at)
        } else {
            self.entries.peek(&key).and_then(|entry| entry.used)
        };
        let entry = CacheEntry {
            session: Arc::clone(session),
            requested_at,
            used,
            max_age: self.max_age.min(Duration::from_millis(unused_ms / MAX_AGE_PARTS)),
            weight: u64::try_from(ENTRY_BYTES + GROWTH * session.encoded_len()).unwrap_or(u64::MAX),
        };
        self.entries.insert(key, entry);
        // `forget` may have run since the check above: it sets `last_forgotten` before it removes the entry.
        if is_late() {
            self.entries.remove(&key);
        }
    }

    /// Drops a session that this edge ended or changed.
    pub(crate) fn forget(&self, id: &SessionId) {
        self.last_forgotten.fetch_max(self.now().0, Ordering::SeqCst);
        if let Some((_, entry)) = self.entries.remove(&id.to_bytes()) {
            // Makes reads stale that began earlier and are still unanswered.
            self.freshness
                .record_change(&entry.session.handle, self.freshness.now());
        }
    }

    /// The requested token, if a valid one is cached.
    pub(crate) fn token(&self, id: &SessionId, wanted: &TokenFor, clock_ms: u64) -> Option<Arc<CachedToken>> {
        let now = self.freshness.now();
        let entry = self.entries.get(&id.to_bytes())?;
        let token = entry.session.token(wanted)?;
        let holds = now.since(token.requested_at) < self.max_age
            && token.good_until_ms > clock_ms.saturating_add(CLOCK_DIFFERENCE_MS)
            && self
                .freshness
                .is_unchanged(&entry.session.handle, token.requested_at, now);
        holds.then_some(token)
    }

    /// Caches a token that was issued for a cached session.
    pub(crate) fn keep_token(&self, id: &SessionId, token: &Arc<CachedToken>) {
        if let Some(entry) = self.entries.peek(&id.to_bytes()) {
            entry.session.keep_token(Arc::clone(token));
        }
    }

    fn drop_old(&self, now: Moment) {
        self.entries
            .retain(|_, entry| now.since(entry.requested_at) < entry.max_age);
    }
}

/// Drops entries that are too old, at each interval, as long as the cache exists.
async fn sweep(cache: Weak<SessionCache>, interval: Duration) {
    let mut turns = tokio::time::interval(interval);
    loop {
        turns.tick().await;
        let Some(cache) = cache.upgrade() else {
            return;
        };
        cache.drop_old(cache.now());
        cache.freshness.forget_old(cache.now());
    }
}

fn ends_ms(session: &CachedSession) -> u64 {
    session.expires_at.as_ref().map_or(0, timestamp::to_ms)
}

#[cfg(test)]
mod tests {
    use session_proto::v1::{GetAccessTokenResponse, Session};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A cache to which all replicas report, and an ID.
    fn cache(max_age: Duration) -> (SessionCache, SessionId) {
        let freshness = ReplicaFreshness::new(LONG);
        freshness.mark_complete(Moment(1), Moment(u64::MAX));
        let cache = SessionCache {
            entries: Entries::with_weighter(10, WEIGHT_MAX, SessionWeighter),
            freshness: Arc::new(freshness),
            last_forgotten: AtomicU64::new(0),
            max_age,
        };
        (cache, SessionId::from_bytes([7; 16]))
    }

    /// A moment after every earlier one.
    fn later(cache: &SessionCache) -> Moment {
        let now = cache.now();
        while cache.now() <= now {}
        cache.now()
    }

    /// A session that lasts for a day, counted from 0.
    fn session() -> Arc<CachedSession> {
        CachedSession::new(Session {
            handle: "handle".to_owned(),
            expires_at: Some(timestamp::from_ms(86_400_000)),
            ..Session::default()
        })
    }

    fn token(requested_at: Moment) -> Arc<CachedToken> {
        let granted = GetAccessTokenResponse {
            access_token: "token".to_owned(),
            good_until: Some(timestamp::from_ms(86_400_000)),
            ..GetAccessTokenResponse::default()
        };
        CachedToken::new(&TokenFor::default(), requested_at, granted)
    }

    #[test]
    fn an_answer_that_comes_after_its_session_was_ended_here_is_not_kept() {
        let (cache, id) = cache(LONG);
        let requested_at = later(&cache);
        later(&cache);
        cache.forget(&id);
        cache.keep(&id, &session(), requested_at, true);
        assert!(cache.find(&id, true, 0).is_err());
        cache.keep(&id, &session(), later(&cache), true);
        assert!(cache.find(&id, true, 0).is_ok());
    }

    #[test]
    fn nothing_is_remembered_for_longer_than_its_lease() {
        for (max_age, remembered) in [(LONG, true), (Duration::ZERO, false)] {
            let (cache, id) = cache(max_age);
            let requested_at = later(&cache);
            cache.keep(&id, &session(), requested_at, true);
            cache.keep_token(&id, &token(requested_at));
            assert_eq!(cache.find(&id, true, 0).is_ok(), remembered, "{max_age:?}");
            assert_eq!(
                cache.token(&id, &TokenFor::default(), 0).is_some(),
                remembered,
                "{max_age:?}"
            );
        }
    }

    #[test]
    fn what_is_too_old_to_be_served_is_dropped_and_the_rest_stays() {
        let (cache, id) = cache(LONG);
        let requested_at = later(&cache);
        cache.keep(&id, &session(), requested_at, true);
        cache.keep(&SessionId::from_bytes([8; 16]), &session(), later(&cache), true);
        assert_eq!(cache.size().0, 2);
        let (just_before, then) = (LONG.as_micros() - 1, LONG.as_micros());
        let after = |micros: u128| Moment(requested_at.0 + u64::try_from(micros).unwrap());
        cache.drop_old(after(just_before));
        assert_eq!(cache.size().0, 2);
        cache.drop_old(after(then));
        assert_eq!(cache.size().0, 1);
        assert!(cache.find(&id, true, 0).is_err());
    }

    #[test]
    fn a_token_counts_for_nothing_once_its_session_has_changed() {
        let (cache, id) = cache(LONG);
        let requested_at = later(&cache);
        cache.keep(&id, &session(), requested_at, true);
        cache.keep_token(&id, &token(requested_at));
        assert!(cache.token(&id, &TokenFor::default(), 0).is_some());
        cache.freshness.record_change("handle", cache.now());
        assert!(cache.token(&id, &TokenFor::default(), 0).is_none());
    }
}
