//! The settings of analytics.

use chassis::settings::Reader;
use url::Url;

use crate::browser::analytics::AnalyticsSettings;
use crate::values::web_url::is_origin;

/// Longest token, because it becomes part of a path.
const MAX_TOKEN_BYTES: usize = 128;

/// Reads the settings; `None` if analytics is off.
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<AnalyticsSettings> {
    let token = reader.optional_text("EDGE_ANALYTICS_TOKEN");
    let host = reader.optional_text("EDGE_ANALYTICS_HOST");
    let is_alone = host.is_some() != token.is_some();
    let (Some(host), Some(token)) = (host, token) else {
        if is_alone {
            reader.wrong("EDGE_ANALYTICS_HOST", "needs EDGE_ANALYTICS_TOKEN: set both");
        }
        return None;
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let usable = token.len() <= MAX_TOKEN_BYTES && token.bytes().all(plain);
    if !usable {
        reader.wrong("EDGE_ANALYTICS_TOKEN", "must be only letters, digits, _ and -");
    }
    let host = Url::parse(&host).ok().filter(is_origin);
    if host.is_none() {
        reader.wrong(
            "EDGE_ANALYTICS_HOST",
            "must contain only scheme and host, such as https://eu.i.posthog.com",
        );
    }
    host.filter(|_| usable)
        .map(|host| AnalyticsSettings { host, token })
}
