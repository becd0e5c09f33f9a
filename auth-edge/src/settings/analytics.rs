//! Where analytics goes.

use chassis::settings::Reader;
use url::Url;

use super::addresses::is_origin;
use crate::browser::analytics::AnalyticsSettings;

/// Longest token: it becomes part of a path.
const MAX_TOKEN_BYTES: usize = 128;

/// Reads them; none when analytics is off.
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<AnalyticsSettings> {
    let token = reader.optional_text("EDGE_ANALYTICS_TOKEN");
    let host = reader.optional_text("EDGE_ANALYTICS_HOST");
    let (host, token) = match (host, token) {
        (None, None) => return None,
        (Some(host), Some(token)) => (host, token),
        (None, Some(_)) => {
            reader.wrong("EDGE_ANALYTICS_HOST", "is required with EDGE_ANALYTICS_TOKEN");
            return None;
        }
        (Some(_), None) => {
            reader.wrong("EDGE_ANALYTICS_TOKEN", "is required with EDGE_ANALYTICS_HOST");
            return None;
        }
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let usable = token.len() <= MAX_TOKEN_BYTES && token.bytes().all(plain);
    if !usable {
        reader.wrong("EDGE_ANALYTICS_TOKEN", "must be letters, digits, _ and - alone");
    }
    let host = Url::parse(&host).ok().filter(is_origin);
    if host.is_none() {
        reader.wrong(
            "EDGE_ANALYTICS_HOST",
            "must be scheme and host alone, such as https://eu.i.posthog.com",
        );
    }
    host.filter(|_| usable)
        .map(|host| AnalyticsSettings { host, token })
}
