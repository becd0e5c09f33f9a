//! `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3).

/// The pause in seconds that a value asks for; `now` in seconds since the Unix epoch.
pub(crate) fn wait_secs(after: &str, now: u64) -> Option<u64> {
    let until = |date: &str| {
        let date = httpdate::parse_http_date(date).ok()?;
        let date = date.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(date.as_secs().saturating_sub(now))
    };
    after.trim().parse().ok().or_else(|| until(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_to_wait_is_told_in_seconds_or_by_a_date() {
        let now = 784_111_700;
        for (after, secs) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(77)),
            ("Sun, 06 Nov 1993 08:49:37 GMT", None),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            let told = wait_secs(after, now);
            assert_eq!(told, secs, "{after}");
        }
    }
}
