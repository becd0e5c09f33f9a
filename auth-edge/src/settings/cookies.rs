//! Secrets and cookies among the settings.

use std::ops::RangeInclusive;

use chassis::secret::Secret;
use chassis::settings::{Reader, Zero};

use crate::sessions::cookie_rotation::CookieRotation;
use crate::sessions::cookies::{CookieSettings, SameSite};
use crate::sessions::device_binding::{DeviceBound, DeviceBoundSettings};

/// Shortest secret accepted, in characters.
const MIN_SECRET_CHARS: usize = 8;
/// Secrets shorter than this get a warning.
const WISE_SECRET_CHARS: usize = 32;
/// Longest cookie base name: the cookie stays within 120 bytes with prefix, ID and signature.
const MAX_COOKIE_NAME: usize = 32;
/// How long a browser may be believed that has proved to hold its session's key, in seconds: shorter, and browsers do little else.
const DURATION_SECS: RangeInclusive<u64> = 10..=3_600;
/// Chrome makes six signatures in nine minutes for all hosts of a domain: enough for four applications in use at once.
const DEFAULT_DURATION_SECS: u64 = 600;
/// A shorter time wants more signatures than Chrome makes.
const WISE_DURATION_SECS: u64 = 240;
/// How often the cookie may rotate, in seconds: not before the grace of the one before is over, twice.
const ROTATION_SECS: RangeInclusive<u64> = 120..=86_400;

pub(super) fn secrets(reader: &mut Reader) -> Vec<Secret<String>> {
    reader.required_text("EDGE_SECRET");
    let secrets = reader.secrets("EDGE_SECRET");
    let shortest = secrets.iter().map(|secret| secret.expose().chars().count()).min();
    match shortest {
        Some(chars) if chars < MIN_SECRET_CHARS => {
            reader.wrong(
                "EDGE_SECRET",
                "holds a secret of fewer than 8 characters; make one with `openssl rand -hex 32`",
            );
        }
        Some(chars) if chars < WISE_SECRET_CHARS => {
            reader.warn(
                "EDGE_SECRET",
                "holds a secret of fewer than 32 characters; make one with `openssl rand -hex 32`",
            );
        }
        _ => {}
    }
    secrets
}

/// Whether changed secrets may be taken into use: as at the start.
#[must_use]
pub(crate) fn secrets_are_usable(secrets: &[Secret<String>]) -> bool {
    !secrets.is_empty()
        && secrets
            .iter()
            .all(|secret| secret.expose().chars().count() >= MIN_SECRET_CHARS)
}

pub(super) fn cookie(reader: &mut Reader, secure: bool) -> CookieSettings {
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
            "must be without prefix; the edge puts __Host- or __Secure- before it",
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
    let same_site = reader.choice(
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
    CookieSettings {
        name,
        domain,
        same_site,
        secure,
    }
}

/// Which sessions are bound to a device; none where browsers cannot: they bind over https alone, and a session of many hosts could prove nothing
/// at those it was not made at.
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
        reader.wrong(MODE, "must name from 10 to 3600 seconds behind its colon");
    }
    if duration_secs < WISE_DURATION_SECS && mode != DeviceBound::Off {
        reader.warn(
            MODE,
            "is so short that a browser runs out of signatures (Chrome: six in nine minutes) and people see 503 for minutes: 240 or more",
        );
    }
    if mode == DeviceBound::Required && !cookie.secure {
        reader.wrong(MODE, "require needs an https EDGE_BASE_URL");
    }
    if mode == DeviceBound::Required && cookie.domain.is_some() {
        reader.wrong(
            MODE,
            "require needs sessions of one host each: leave out EDGE_COOKIE_DOMAIN",
        );
    }
    let can = cookie.secure && cookie.domain.is_none();
    can.then_some(DeviceBoundSettings { mode, duration_secs })
}

/// When the session cookie rotates; none where it does not.
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
