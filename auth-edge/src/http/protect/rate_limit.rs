//! A token bucket for each address, or for each session, in memory that never grows.
//!
//! Buckets are in a table of fixed size, found by a keyed hash that differs in every process. Two keys in one slot
//! share its bucket, so a flood delays only the keys of its slot. A slot holds one number: the time at which the
//! bucket is full again (generic cell rate algorithm, GCRA). Each replica has its own limit.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::http::errors::{HttpError, Limit};

/// The number of buckets: 512 KiB. With a thousand busy keys, 1.5 % of them share a slot.
const SLOTS: usize = 65_536;

const MINUTE: Duration = Duration::from_secs(60);

/// Allows each key a number of requests per window, in a burst or one by one. An address counts by its
/// [`network`](chassis::serve::network), since one household or machine can use every address in it.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    slots: Box<[AtomicU64]>,
    hasher: RandomState,
    /// Microseconds that one request costs; 0 switches the limiter off.
    cost_us: u64,
    /// Microseconds after which an empty bucket is full again.
    window_us: u64,
}

/// The error for an empty bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests; try again in {retry_after_secs} s")]
pub(crate) struct RateExceeded {
    /// Whole seconds until the client may retry; at least 1.
    pub(crate) retry_after_secs: u64,
}

impl RateExceeded {
    /// The error for a client that this limit rejects.
    pub(crate) fn refuse(self, limit: Limit) -> HttpError {
        HttpError::RateLimited {
            retry_after_secs: self.retry_after_secs,
            limit,
        }
    }
}

impl RateLimiter {
    /// Allows each address `per_minute` requests per minute; 0 is no limit.
    pub(crate) fn new(per_minute: u64) -> Self {
        Self::within(MINUTE, per_minute)
    }

    /// Allows each key `count` requests per `window`; 0 is no limit.
    pub(crate) fn within(window: Duration, count: u64) -> Self {
        let slots = if count == 0 { 0 } else { SLOTS };
        let window_us = u64::try_from(window.as_micros()).unwrap_or(u64::MAX / 4);
        Self {
            slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            cost_us: window_us.checked_div(count).unwrap_or(0),
            window_us,
        }
    }

    /// Takes one token from this key's bucket.
    ///
    /// # Errors
    /// [`RateExceeded`] if the bucket is empty; a rejected request takes no token.
    pub(crate) fn check(&self, key: impl Hash, now_ms: u64) -> Result<(), RateExceeded> {
        let Some(slot) = self.slot(key) else {
            return Ok(());
        };
        let now = now_ms.saturating_mul(1_000).min(u64::MAX / 2);
        let taken = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            self.after_one_more(full_at, now).ok()
        });
        taken
            .or_else(|full_at| self.after_one_more(full_at, now))
            .map(drop)
    }

    /// Whether [`Self::check`] would allow a request; takes no token.
    ///
    /// # Errors
    /// [`RateExceeded`] if the bucket is empty.
    pub(crate) fn peek(&self, key: impl Hash, now_ms: u64) -> Result<(), RateExceeded> {
        let Some(slot) = self.slot(key) else {
            return Ok(());
        };
        let now = now_ms.saturating_mul(1_000).min(u64::MAX / 2);
        self.after_one_more(slot.load(Ordering::Relaxed), now).map(drop)
    }

    /// The time at which the bucket is full again after one more request; `full_at` is that time without it.
    fn after_one_more(&self, full_at: u64, now: u64) -> Result<u64, RateExceeded> {
        let latest = now + self.window_us;
        // A time later than an empty bucket's means that the clock was set back.
        let full_at = if full_at > latest { now } else { full_at.max(now) } + self.cost_us;
        if full_at <= latest {
            return Ok(full_at);
        }
        Err(RateExceeded {
            retry_after_secs: (full_at - latest).div_ceil(1_000_000).max(1),
        })
    }

    fn slot(&self, key: impl Hash) -> Option<&AtomicU64> {
        let at = usize::try_from(self.hasher.hash_one(key) % SLOTS as u64).ok()?;
        self.slots.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::{RateExceeded, RateLimiter};
    use chassis::serve::network;
    use std::net::{IpAddr, Ipv6Addr};
    use std::time::Duration;

    fn ip(text: &str) -> Ipv6Addr {
        network(text.parse().expect("an address"))
    }

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let limiter = RateLimiter::new(3);
        let start = 1_700_000_000_000;
        for _ in 0..3 {
            assert_eq!(limiter.check(ip("192.0.2.1"), start), Ok(()));
        }
        assert_eq!(
            limiter.check(ip("192.0.2.1"), start),
            Err(RateExceeded { retry_after_secs: 20 })
        );
        assert_eq!(
            limiter.check(ip("192.0.2.1"), start + 19_000),
            Err(RateExceeded { retry_after_secs: 1 })
        );
        assert_eq!(limiter.check(ip("192.0.2.1"), start + 20_000), Ok(()));
        assert!(limiter.check(ip("192.0.2.1"), start + 20_000).is_err());
        for _ in 0..3 {
            assert_eq!(limiter.check(ip("192.0.2.1"), start + 120_000), Ok(()));
        }
    }

    #[test]
    fn looking_at_a_bucket_takes_nothing_of_it() {
        let limiter = RateLimiter::new(2);
        let (who, start) = (ip("192.0.2.1"), 1_700_000_000_000);
        for taken in 0..2 {
            assert!((0..10).all(|_| limiter.peek(who, start) == Ok(())), "{taken}");
            assert_eq!(limiter.check(who, start), Ok(()));
        }
        let empty = Err(RateExceeded { retry_after_secs: 30 });
        assert_eq!(limiter.peek(who, start), empty);
        assert_eq!(limiter.check(who, start), empty);
        assert_eq!(limiter.peek(who, start + 30_000), Ok(()));
        assert_eq!(
            limiter.peek(who, start - 3_600_000),
            Ok(()),
            "a clock set back locks nobody out"
        );
        assert!(RateLimiter::new(0).peek(who, start).is_ok());
    }

    #[test]
    fn another_address_has_its_own_bucket() {
        let limiter = RateLimiter::new(1);
        assert_eq!(limiter.check(ip("192.0.2.1"), 1_000_000), Ok(()));
        let free = (0..=255_u8).filter(|last| {
            limiter
                .check(network(IpAddr::from([198, 51, 100, *last])), 1_000_000)
                .is_ok()
        });
        assert!(free.count() > 250, "hardly any two addresses share a bucket");
    }

    #[test]
    fn one_network_of_ipv6_shares_a_bucket() {
        let limiter = RateLimiter::new(1);
        assert_eq!(limiter.check(ip("2001:db8::1"), 1_000_000), Ok(()));
        assert!(limiter.check(ip("2001:db8::ffff:2"), 1_000_000).is_err());
    }

    #[test]
    fn a_mapped_address_is_the_same_address() {
        let limiter = RateLimiter::new(1);
        assert_eq!(limiter.check(ip("192.0.2.1"), 1_000_000), Ok(()));
        assert!(limiter.check(ip("::ffff:192.0.2.1"), 1_000_000).is_err());
    }

    #[test]
    fn a_session_has_a_bucket_as_well_and_a_window_may_be_short() {
        let limiter = RateLimiter::within(Duration::from_secs(15), 3);
        let start = 1_700_000_000_000;
        let admitted =
            |handle: &str, now_ms| (0..10).filter(|_| limiter.check(handle, now_ms).is_ok()).count();
        assert_eq!((admitted("one", start), admitted("two", start)), (3, 3));
        assert_eq!(admitted("one", start + 4_999), 0);
        assert_eq!(admitted("one", start + 5_000), 1);
        assert_eq!(admitted("one", start + 60_000), 3);
    }

    #[test]
    fn zero_switches_it_off() {
        let limiter = RateLimiter::new(0);
        assert!((0..10_000).all(|_| limiter.check(ip("192.0.2.1"), 1).is_ok()));
    }

    #[test]
    fn a_clock_set_back_locks_nobody_out() {
        let limiter = RateLimiter::new(2);
        assert!(limiter.check(ip("192.0.2.1"), 2_000_000_000_000).is_ok());
        assert_eq!(limiter.check(ip("192.0.2.1"), 1_000_000_000_000), Ok(()));
    }
}
