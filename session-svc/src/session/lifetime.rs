//! The lifetime of a session: rolling, absolute, capped.

/// The current durations. They apply to every session, also to older ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// How long an unused session lives, in milliseconds.
    pub rolling_ms: u64,
    /// How long a session lives at most, in milliseconds.
    pub absolute_ms: u64,
    /// Minimum time between two rolls, in milliseconds; 0 rolls each time.
    pub roll_interval_ms: u64,
}

/// A roll is never delayed longer than this fraction of the rolling duration.
const ROLL_INTERVAL_PARTS: u64 = 10;

impl Lifetime {
    /// When a session expires if it is not used.
    pub(crate) fn expires_at_ms(
        &self,
        created_at_ms: u64,
        rolled_at_ms: u64,
        not_after_ms: Option<u64>,
    ) -> u64 {
        rolled_at_ms
            .saturating_add(self.rolling_ms)
            .min(self.absolute_expires_at_ms(created_at_ms, not_after_ms))
    }

    /// When a session expires regardless of use.
    pub(crate) fn absolute_expires_at_ms(&self, created_at_ms: u64, not_after_ms: Option<u64>) -> u64 {
        created_at_ms
            .saturating_add(self.absolute_ms)
            .min(not_after_ms.unwrap_or(u64::MAX))
    }

    /// Time between two rolls of a session in constant use.
    pub(crate) fn effective_roll_interval_ms(&self) -> u64 {
        self.roll_interval_ms.min(self.rolling_ms / ROLL_INTERVAL_PARTS)
    }

    /// Whether the last roll is old enough to write another.
    pub(crate) fn roll_is_due(&self, rolled_at_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(rolled_at_ms) >= self.effective_roll_interval_ms()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same rule, computed independently in wide numbers from a list of all deadlines.
    fn reference(lifetime: &Lifetime, created: u64, rolled: u64, cap: Option<u64>, now: u64) -> (u128, bool) {
        let mut deadlines = vec![
            u128::from(rolled) + u128::from(lifetime.rolling_ms),
            u128::from(created) + u128::from(lifetime.absolute_ms),
        ];
        deadlines.extend(cap.map(u128::from));
        deadlines.sort_unstable();
        let valid = deadlines.iter().all(|deadline| u128::from(now) < *deadline);
        (deadlines[0], valid)
    }

    const YEAR_MS: u64 = 366 * 86_400_000;

    proptest! {
        #[test]
        fn expiry_is_the_earliest_of_the_deadlines_and_validity_is_strict(
            created in 0..u64::MAX / 4, age in 0..YEAR_MS, rolling in 1..YEAR_MS, absolute in 1..YEAR_MS,
            cap in proptest::option::of(0..YEAR_MS), later in 0..YEAR_MS, interval in 0..YEAR_MS,
        ) {
            let lifetime = Lifetime { rolling_ms: rolling, absolute_ms: absolute, roll_interval_ms: interval };
            let rolled = created + age;
            let cap = cap.map(|after| created + after);
            let now = created + later;
            let (expires, valid) = reference(&lifetime, created, rolled, cap, now);
            let actual = lifetime.expires_at_ms(created, rolled, cap);
            prop_assert_eq!(u128::from(actual), expires);
            prop_assert_eq!(now < actual, valid);
            prop_assert!(actual <= lifetime.absolute_expires_at_ms(created, cap));
        }

        #[test]
        fn rolling_never_moves_the_absolute_end(created in 0..YEAR_MS, first in 0..YEAR_MS, second in 0..YEAR_MS) {
            let lifetime = Lifetime { rolling_ms: 86_400_000, absolute_ms: 604_800_000, roll_interval_ms: 60_000 };
            let end = created + lifetime.absolute_ms;
            prop_assert!(lifetime.expires_at_ms(created, created + first, None) <= end);
            prop_assert!(lifetime.expires_at_ms(created, created + first.max(second), None)
                >= lifetime.expires_at_ms(created, created + first.min(second), None));
        }

        #[test]
        fn a_roll_is_never_put_off_beyond_a_tenth_of_the_rolling_duration(rolling in 1..YEAR_MS, interval in 0..YEAR_MS, rolled in 0..YEAR_MS) {
            let lifetime = Lifetime { rolling_ms: rolling, absolute_ms: rolling, roll_interval_ms: interval };
            prop_assert!(lifetime.roll_is_due(rolled, rolled + rolling / 10));
            prop_assert!(lifetime.roll_is_due(rolled, rolled + interval));
        }
    }

    #[test]
    fn a_session_is_valid_up_to_but_not_at_its_end() {
        let lifetime = Lifetime {
            rolling_ms: 1_000,
            absolute_ms: 5_000,
            roll_interval_ms: 0,
        };
        let expires = lifetime.expires_at_ms(0, 0, None);
        assert_eq!(expires, 1_000);
        assert!(999 < expires);
        assert!(lifetime.roll_is_due(7, 7), "an interval of 0 rolls each time");
    }

    #[test]
    fn durations_at_the_edge_of_the_number_do_not_wrap() {
        let lifetime = Lifetime {
            rolling_ms: u64::MAX,
            absolute_ms: u64::MAX,
            roll_interval_ms: u64::MAX,
        };
        assert_eq!(lifetime.expires_at_ms(u64::MAX, u64::MAX, None), u64::MAX);
        assert!(
            !lifetime.roll_is_due(10, 5),
            "a clock that went back rolls nothing"
        );
    }
}
