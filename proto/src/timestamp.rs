//! Converts timestamps on the wire from and to milliseconds since the Unix epoch.

use prost_types::Timestamp;

/// The last second of a `google.protobuf.Timestamp`, 9999-12-31T23:59:59Z. JSON cannot express a later one.
pub const LAST_SECOND: i64 = 253_402_300_799;

/// The last millisecond of that second.
const LAST_MS: u64 = LAST_SECOND.cast_unsigned() * 1000 + 999;

/// The timestamp of an instant in milliseconds since the Unix epoch, limited to the last instant of protobuf.
#[must_use]
pub fn from_ms(ms: u64) -> Timestamp {
    let ms = ms.min(LAST_MS);
    // Both fit: the remainder is under 10^9 ns.
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
    fn an_instant_beyond_the_year_9999_becomes_the_last_that_json_can_express() {
        let last = Timestamp {
            seconds: LAST_SECOND,
            nanos: 999_000_000,
        };
        for ms in [LAST_MS, LAST_MS + 1, u64::MAX] {
            assert_eq!(from_ms(ms), last, "{ms}");
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
