//! The time that a caller is willing to wait.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};

/// The longest time that the service works on one answer.
pub(super) const MAX_DEADLINE: Duration = Duration::from_secs(60);

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The most digits of a `grpc-timeout` (gRPC over HTTP/2, "Timeout").
const TIMEOUT_DIGITS: usize = 8;

/// The caller's timeout, if it is in the form that gRPC defines.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(TIMEOUT)?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.is_empty()
        || number.len() > TIMEOUT_DIGITS
        || !number.bytes().all(|digit| digit.is_ascii_digit())
    {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number.saturating_mul(3_600))),
        "M" => Some(Duration::from_secs(number.saturating_mul(60))),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_read_in_every_unit_and_nonsense_is_passed_over() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            timeout(&headers)
        };
        for (text, millis) in [("2H", 7_200_000), ("1M", 60_000), ("2S", 2_000), ("1500m", 1_500)] {
            assert_eq!(read(text), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(read("7u"), Some(Duration::from_micros(7)));
        assert_eq!(read("7n"), Some(Duration::from_nanos(7)));
        for nonsense in ["S", "-1S", "123456789S", "5x", "5", "é"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
