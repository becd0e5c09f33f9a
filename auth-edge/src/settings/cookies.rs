//! The settings of secrets and cookies.

use std::ops::RangeInclusive;

use chassis::secret::Secret;
use chassis::settings::{Reader, Zero};
use url::Url;

use crate::sessions::cookie_rotation::CookieRotation;
use crate::sessions::cookies::{CookieSettings, SameSite};
use crate::sessions::device_binding::{DeviceBound, DeviceBoundSettings};

/// Shortest secret accepted, in characters.
const MIN_SECRET_CHARS: usize = 8;
/// Secrets shorter than this get a warning.
const WISE_SECRET_CHARS: usize = 32;
/// Longest base name: with prefix, ID and signature, the cookie has at most 120 bytes.
const MAX_COOKIE_NAME: usize = 32;
/// How long a browser's proof of its key may be valid, in seconds. Shorter values keep browsers busy with proofs.
const DURATION_SECS: RangeInclusive<u64> = 10..=3_600;
/// Chrome signs six times in nine minutes for all hosts of a domain: enough for four applications at once.
const DEFAULT_DURATION_SECS: u64 = 600;
/// Shorter times need more signatures than Chrome makes.
const WISE_DURATION_SECS: u64 = 240;
/// How often the cookie may rotate, in seconds: at least twice the time that a replaced cookie stays valid.
const ROTATION_SECS: RangeInclusive<u64> = 120..=86_400;
/// Most origins that may embed the product: their list is part of the head of pages, which has to fit a proxy's buffer.
const MAX_FRAME_ANCESTORS: usize = 16;
/// Most bytes of these origins together.
const MAX_FRAME_ANCESTOR_BYTES: usize = 1_024;

pub(super) fn secrets(reader: &mut Reader) -> Vec<Secret<String>> {
    reader.required_text("EDGE_SECRET");
    let secrets = reader.secrets("EDGE_SECRET");
    let shortest = secrets.iter().map(|secret| secret.expose().chars().count()).min();
    match shortest {
        Some(chars) if chars < MIN_SECRET_CHARS => {
            reader.wrong(
                "EDGE_SECRET",
                "contains a secret of fewer than 8 characters: create one with `openssl rand -hex 32`",
            );
        }
        Some(chars) if chars < WISE_SECRET_CHARS => {
            reader.warn(
                "EDGE_SECRET",
                "contains a secret of fewer than 32 characters: create one with `openssl rand -hex 32`",
            );
        }
        _ => {}
    }
    secrets
}

/// Whether the edge can use changed secrets, by the rules of the start.
#[must_use]
pub(crate) fn secrets_are_usable(secrets: &[Secret<String>]) -> bool {
    !secrets.is_empty()
        && secrets
            .iter()
            .all(|secret| secret.expose().chars().count() >= MIN_SECRET_CHARS)
}

/// The origins whose pages may embed the product; empty if none may.
pub(super) fn frame_ancestors(reader: &mut Reader, secure: bool) -> Vec<String> {
    const NAME: &str = "EDGE_FRAME_ANCESTORS";
    let texts = reader.list(NAME);
    if !texts.is_empty() && !secure {
        reader.wrong(
            NAME,
            "needs an https EDGE_BASE_URL: browsers partition only Secure cookies",
        );
    }
    if texts.len() > MAX_FRAME_ANCESTORS
        || texts.iter().map(String::len).sum::<usize>() > MAX_FRAME_ANCESTOR_BYTES
    {
        reader.wrong(
            NAME,
            "must name at most 16 origins of at most 1024 bytes together",
        );
    }
    let mut origins = Vec::new();
    for text in texts {
        match exact_origin(&text) {
            Some(origin) => origins.push(origin),
            None => reader.wrong(
                NAME,
                format!("{text:?} must be an https origin without a path or wildcard, such as https://portal.example.com"),
            ),
        }
    }
    origins
}

/// The https origin that this text names, as browsers write it; `None` for anything else. It becomes part of a policy,
/// so its characters are those of host names and ports.
fn exact_origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "https")?;
    let origin = url.origin().ascii_serialization();
    let host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
    let is_plain = origin.strip_prefix("https://")?.bytes().all(host);
    let is_whole = text
        .strip_suffix('/')
        .unwrap_or(text)
        .eq_ignore_ascii_case(&origin);
    (is_plain && is_whole).then_some(origin)
}

pub(super) fn cookie(reader: &mut Reader, secure: bool, partitioned: bool) -> CookieSettings {
    let name = reader.required_text("EDGE_COOKIE_NAME");
    let token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.len() > MAX_COOKIE_NAME || !name.bytes().all(token) {
        reader.wrong("EDGE_COOKIE_NAME", "must be at most 32 letters, digits and _ - .");
    } else if ["__host-", "__secure-"]
        .iter()
        .any(|prefix| name.to_ascii_lowercase().starts_with(prefix))
    {
        reader.wrong(
            "EDGE_COOKIE_NAME",
            "must have no prefix: the edge puts __Host- or __Secure- before it",
        );
    }
    let domain = reader
        .optional_text("EDGE_COOKIE_DOMAIN")
        .map(|domain| domain.trim_start_matches('.').to_owned());
    if let Some(domain) = &domain {
        let host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        if domain.is_empty() || !domain.bytes().all(host) {
            reader.wrong("EDGE_COOKIE_DOMAIN", "must be a host name such as example.com");
        }
        if !secure {
            reader.wrong("EDGE_COOKIE_DOMAIN", "needs an https EDGE_BASE_URL");
        }
    }
    let mut same_site = reader.choice(
        "EDGE_COOKIE_SAME_SITE",
        &[
            ("lax", SameSite::Lax),
            ("strict", SameSite::Strict),
            ("none", SameSite::None),
        ],
        SameSite::Lax,
    );
    if same_site == SameSite::None && !secure {
        reader.wrong("EDGE_COOKIE_SAME_SITE", "none needs an https EDGE_BASE_URL");
    }
    if partitioned {
        if same_site != SameSite::None && reader.is_given("EDGE_COOKIE_SAME_SITE") {
            reader.wrong(
                "EDGE_COOKIE_SAME_SITE",
                "must be none with EDGE_FRAME_ANCESTORS: browsers send other cookies to no frame of another site",
            );
        }
        same_site = SameSite::None;
    }
    CookieSettings {
        name,
        domain,
        same_site,
        secure,
        partitioned,
    }
}

/// Which sessions are bound to a device; `None` if browsers cannot bind any. They bind only over https, and a
/// session of several hosts could prove its key only on the host that created it.
pub(super) fn device_bound(reader: &mut Reader, cookie: &CookieSettings) -> Option<DeviceBoundSettings> {
    const MODE: &str = "EDGE_DEVICE_BOUND";
    let text = reader.text(MODE).to_ascii_lowercase();
    let (word, secs) = text.split_once(':').unwrap_or((&text, ""));
    let mode = match word {
        "off" => DeviceBound::Off,
        "offer" => DeviceBound::Offered,
        "require" => DeviceBound::Required,
        _ => {
            reader.wrong(MODE, "must be one of off, offer, require");
            DeviceBound::Offered
        }
    };
    let duration_secs = match secs {
        "" => DEFAULT_DURATION_SECS,
        secs => secs.parse().unwrap_or_default(),
    };
    if !DURATION_SECS.contains(&duration_secs) {
        reader.wrong(MODE, "must have from 10 to 3600 seconds after the colon");
    }
    if duration_secs < WISE_DURATION_SECS && mode != DeviceBound::Off {
        reader.warn(
            MODE,
            "is too short: browsers run out of signatures (Chrome: six in nine minutes), and users see 503 for minutes. Use 240 or more",
        );
    }
    if mode == DeviceBound::Required && !cookie.secure {
        reader.wrong(MODE, "require needs an https EDGE_BASE_URL");
    }
    if mode == DeviceBound::Required && cookie.domain.is_some() {
        reader.wrong(
            MODE,
            "require binds a session to one host: remove EDGE_COOKIE_DOMAIN",
        );
    }
    if mode == DeviceBound::Required && cookie.partitioned {
        reader.wrong(
            MODE,
            "require binds no session of a frame: remove EDGE_FRAME_ANCESTORS",
        );
    }
    let can = cookie.secure && cookie.domain.is_none() && !cookie.partitioned;
    can.then_some(DeviceBoundSettings { mode, duration_secs })
}

/// When the session cookie rotates; `None` for never.
pub(super) fn cookie_rotation(reader: &mut Reader) -> Option<CookieRotation> {
    const INTERVAL: &str = "EDGE_COOKIE_ROTATION";
    let interval_secs = reader.secs(INTERVAL, Zero::Allowed);
    if interval_secs == 0 {
        return None;
    }
    if !ROTATION_SECS.contains(&interval_secs) {
        reader.wrong(INTERVAL, "must be 0 for off, or from 120 to 86400 seconds");
    }
    Some(CookieRotation::every(interval_secs))
}
