//! Timestamps on the wire, milliseconds since the Unix epoch in the code.

use prost_types::Timestamp;

/// The timestamp of an instant in milliseconds since the Unix epoch.
#[must_use]
pub fn from_ms(ms: u64) -> Timestamp {
    // Both fit: u64::MAX ms is 1.8e16 seconds, and the remainder is under 10^9 ns.
    Timestamp {
        seconds: (ms / 1000).cast_signed(),
        nanos: i32::try_from(ms % 1000).unwrap_or(0) * 1_000_000,
    }
}

/// Milliseconds since the Unix epoch; instants before it count as 0.
#[must_use]
pub fn to_ms(timestamp: &Timestamp) -> u64 {
    let seconds = u64::try_from(timestamp.seconds).unwrap_or(0);
    let nanos = u64::try_from(timestamp.nanos).unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_survive_the_round_trip() {
        for ms in [0, 1, 999, 1000, 1_700_000_000_123] {
            assert_eq!(to_ms(&from_ms(ms)), ms);
        }
    }

    #[test]
    fn instants_before_the_epoch_count_as_zero() {
        assert_eq!(
            to_ms(&Timestamp {
                seconds: -5,
                nanos: 0
            }),
            0
        );
    }
}
