//! Secrets and cookies among the settings.

use chassis::secret::Secret;
use chassis::settings::Reader;

use super::read::choice;
use crate::sessions::cookies::{CookieSettings, SameSite};

/// Shortest secret accepted, in characters.
const MIN_SECRET_CHARS: usize = 8;
/// Secrets shorter than this get a warning.
const WISE_SECRET_CHARS: usize = 32;
/// Longest cookie base name: the cookie stays within 120 bytes with prefix, ID and signature.
const MAX_COOKIE_NAME: usize = 32;

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
    let same_site = choice(
        reader,
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
        transient: reader.flag("EDGE_COOKIE_TRANSIENT"),
        secure,
    }
}
