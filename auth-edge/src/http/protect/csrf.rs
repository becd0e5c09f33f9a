//! The proof that a state-changing call comes from our own pages.
//!
//! Required: first, the browser says that the call is same-origin: `Origin` or `Sec-Fetch-Site` is present, and each
//! present one is ours. Second, the call has a form field bound to the session, or the `x-csrf` header. A foreign
//! page cannot send the header without a preflight. Not used: a cookie, which other sub-domains can write.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{ORIGIN, REFERER};
use url::Url;

use crate::http::errors::HttpError;
use crate::sessions::keys::{DerivedKeys, Purpose};

/// The header that the product's own scripts send with every call; its value does not matter.
pub(crate) const HEADER: &str = "x-csrf";

/// The field that the product's own forms send.
pub(crate) const FORM_FIELD: &str = "csrf_token";

/// What the browser says about the origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provenance {
    /// The edge's own origin: at least one header says so and no header denies it.
    SameOrigin,
    /// The browser says nothing: a program or a very old browser.
    Unknown,
    /// Another origin, or headers that make no sense.
    Foreign,
}

/// Reads `Origin` and `Sec-Fetch-Site` against the edge's own base URL.
pub(crate) fn provenance(headers: &HeaderMap, base: &Url) -> Provenance {
    let expected = base.origin().ascii_serialization();
    let origins = headers.get_all(ORIGIN).iter().map(|origin| *origin == expected);
    let sites = headers.get_all("sec-fetch-site").iter();
    Provenance::by(origins.chain(sites.map(|site| site == "same-origin")))
}

/// As [`provenance`], then by `Referer`: some browsers send it when they leave `Origin` out.
pub(crate) fn provenance_or_referer(headers: &HeaderMap, base: &Url) -> Provenance {
    let said = provenance(headers, base);
    if said != Provenance::Unknown {
        return said;
    }
    // An empty value counts as absent.
    let referers = headers.get_all(REFERER).iter().filter(|value| !value.is_empty());
    Provenance::by(referers.map(|referer| {
        let page = referer.to_str().ok().and_then(|text| Url::parse(text).ok());
        page.is_some_and(|page| page.scheme() == base.scheme() && page.origin() == base.origin())
    }))
}

impl Provenance {
    /// Combines the headers: each item says whether one header names the edge's own origin.
    fn by(says_ours: impl Iterator<Item = bool>) -> Self {
        let judged = says_ours.map(|is_ours| if is_ours { Self::SameOrigin } else { Self::Foreign });
        judged
            .reduce(|one, other| if one == Self::Foreign { one } else { other })
            .unwrap_or(Self::Unknown)
    }
}

/// Checks a call of one of the product's own scripts.
///
/// # Errors
/// [`HttpError::Csrf`].
pub(crate) fn check_script(headers: &HeaderMap, base: &Url) -> Result<(), HttpError> {
    check(headers, base, false)
}

/// Checks the origin of a call and its proof: the header, or a form field that the caller has verified.
fn check(headers: &HeaderMap, base: &Url, has_field: bool) -> Result<(), HttpError> {
    let is_ours = provenance(headers, base) == Provenance::SameOrigin;
    if is_ours && (has_field || headers.contains_key(HEADER)) {
        Ok(())
    } else {
        Err(HttpError::Csrf)
    }
}

/// The form field's value for this session: an HMAC-SHA256 of its secret ID.
pub(crate) fn issue(keys: &DerivedKeys, session_id: &str) -> String {
    URL_SAFE_NO_PAD.encode(keys.sign(Purpose::Csrf, &[session_id.as_bytes()]))
}

/// Whether the value was issued for this session.
fn is_issued(keys: &DerivedKeys, session_id: &str, token: &str) -> bool {
    let tag = URL_SAFE_NO_PAD.decode(token);
    tag.is_ok_and(|tag| keys.verify(Purpose::Csrf, &[session_id.as_bytes()], &tag))
}

/// Checks a POST that carries either the header or the form field.
///
/// # Errors
/// [`HttpError::Csrf`].
pub(crate) fn check_form(
    keys: &DerivedKeys,
    headers: &HeaderMap,
    base: &Url,
    session_id: Option<&str>,
    token: Option<&str>,
) -> Result<(), HttpError> {
    let field = session_id.zip(token);
    check(
        headers,
        base,
        field.is_some_and(|(id, token)| is_issued(keys, id, token)),
    )
}

#[cfg(test)]
mod tests {
    use super::{Provenance, check_form, check_script, is_issued, issue, provenance, provenance_or_referer};
    use http::{HeaderMap, HeaderName, HeaderValue};
    use url::Url;

    use crate::sessions::keys::DerivedKeys;
    use chassis::secret::Secret;

    fn base() -> Url {
        Url::parse("https://app.example").expect("a URL")
    }

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    name.parse::<HeaderName>().expect("a header name"),
                    value.parse::<HeaderValue>().expect("a header value"),
                )
            })
            .collect()
    }

    fn keys(secrets: &[&[u8]]) -> DerivedKeys {
        let text = |secret: &&[u8]| Secret::new(String::from_utf8_lossy(secret).into_owned());
        DerivedKeys::new(&secrets.iter().map(text).collect::<Vec<_>>())
    }

    #[test]
    fn only_the_very_origin_is_ours() {
        for (pairs, expected) in [
            (&[("origin", "https://app.example")][..], Provenance::SameOrigin),
            (&[("sec-fetch-site", "same-origin")], Provenance::SameOrigin),
            (
                &[
                    ("origin", "https://app.example"),
                    ("sec-fetch-site", "same-origin"),
                ],
                Provenance::SameOrigin,
            ),
            (&[], Provenance::Unknown),
            (&[("origin", "null")], Provenance::Foreign),
            (&[("origin", "https://app.example.evil")], Provenance::Foreign),
            (&[("origin", "https://evilapp.example")], Provenance::Foreign),
            (&[("origin", "http://app.example")], Provenance::Foreign),
            (&[("origin", "https://app.example:8443")], Provenance::Foreign),
            (&[("origin", "https://APP.example")], Provenance::Foreign),
            (&[("origin", "")], Provenance::Foreign),
            (
                &[("origin", "https://app.example"), ("origin", "https://evil")],
                Provenance::Foreign,
            ),
            (&[("sec-fetch-site", "same-site")], Provenance::Foreign),
            (&[("sec-fetch-site", "cross-site")], Provenance::Foreign),
            (&[("sec-fetch-site", "none")], Provenance::Foreign),
            (
                &[
                    ("origin", "https://app.example"),
                    ("sec-fetch-site", "cross-site"),
                ],
                Provenance::Foreign,
            ),
        ] {
            assert_eq!(provenance(&headers(pairs), &base()), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_referer_counts_where_nothing_else_is_said() {
        let ours = ("referer", "https://app.example/a?b");
        let evil = ("referer", "https://evil.example/");
        for (pairs, expected) in [
            (&[][..], Provenance::Unknown),
            (&[("referer", "")], Provenance::Unknown),
            (&[ours], Provenance::SameOrigin),
            (&[evil], Provenance::Foreign),
            (&[ours, evil], Provenance::Foreign),
            (&[("referer", "https://app.example.evil/")], Provenance::Foreign),
            (
                &[("referer", "https://app.example@evil.example/")],
                Provenance::Foreign,
            ),
            (&[("referer", "http://app.example/")], Provenance::Foreign),
            (&[("referer", "blob:https://app.example/a")], Provenance::Foreign),
            (&[("referer", "/a")], Provenance::Foreign),
            (&[evil, ("sec-fetch-site", "same-origin")], Provenance::SameOrigin),
            (&[ours, ("origin", "null")], Provenance::Foreign),
        ] {
            assert_eq!(
                provenance_or_referer(&headers(pairs), &base()),
                expected,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn a_script_needs_the_header_and_the_origin() {
        let ours = ("origin", "https://app.example");
        for (pairs, is_ours) in [
            (&[ours, ("x-csrf", "")][..], true),
            (&[ours], false),
            (&[("x-csrf", "1")], false),
        ] {
            assert_eq!(
                check_script(&headers(pairs), &base()).is_ok(),
                is_ours,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn a_form_needs_a_field_of_this_very_session() {
        let keys = keys(&[b"one"]);
        let ours = headers(&[("origin", "https://app.example")]);
        let field = issue(&keys, "session-a");
        let check = |id, token| check_form(&keys, &ours, &base(), id, token).is_ok();
        assert!(check(Some("session-a"), Some(field.as_str())));
        assert!(!check(Some("session-b"), Some(field.as_str())));
        assert!(!check(None, Some(field.as_str())));
        assert!(!check(Some("session-a"), None));
        assert!(!check(Some("session-a"), Some("")));
        let foreign = headers(&[("origin", "https://evil.example")]);
        assert!(check_form(&keys, &foreign, &base(), Some("session-a"), Some(&field)).is_err());
    }

    #[test]
    fn a_field_of_an_older_key_still_counts() {
        let field = issue(&keys(&[b"old"]), "session-a");
        assert!(is_issued(&keys(&[b"new", b"old"]), "session-a", &field));
        assert!(!is_issued(&keys(&[b"new"]), "session-a", &field));
    }
}
