//! Reads the access token of a request (RFC 6750 section 2.1, RFC 9449 section 7.1).
//!
//! Deliberately absent: tokens in query or form (RFC 6750 sections 2.2 and 2.3). Both end up in logs.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The header of a proof.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");

/// How a token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Without a proof.
    Bearer,
    /// With a proof.
    Dpop,
}

/// An unverified token as the client sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PresentedToken<'h> {
    /// The scheme of the header.
    pub(super) scheme: Scheme,
    /// The token; `None` if the header does not follow the scheme.
    pub(super) token: Option<&'h str>,
}

/// The token of a request, if it has one. Then only the token decides, even if the request also has a cookie.
pub(crate) fn presented(headers: &HeaderMap) -> Option<PresentedToken<'_>> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let found = lines.find_map(of_line)?;
    let one_line = headers.get_all(header::AUTHORIZATION).iter().count() == 1;
    Some(PresentedToken {
        token: found.token.filter(|_| one_line),
        ..found
    })
}

fn of_line(line: &HeaderValue) -> Option<PresentedToken<'_>> {
    let bytes = line.as_bytes();
    let end = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric());
    let (name, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    let scheme = if name.eq_ignore_ascii_case(b"bearer") {
        Scheme::Bearer
    } else if name.eq_ignore_ascii_case(b"dpop") {
        Scheme::Dpop
    } else {
        return None;
    };
    let token = std::str::from_utf8(rest)
        .ok()
        .and_then(|rest| rest.strip_prefix(' '));
    let token = token
        .map(|token| token.trim_start_matches(' '))
        .filter(|token| is_token(token));
    Some(PresentedToken { scheme, token })
}

/// `token68` of RFC 9110 section 11.2, which RFC 6750 calls `b64token`.
fn is_token(text: &str) -> bool {
    let stem = text.trim_end_matches('=');
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
    !stem.is_empty() && stem.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::text;

    fn read(lines: &[&'static str]) -> Option<(Scheme, Option<String>)> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::AUTHORIZATION, HeaderValue::from_static(line));
        }
        presented(&headers).map(|found| (found.scheme, found.token.map(str::to_owned)))
    }

    #[test]
    fn a_token_is_what_follows_its_scheme_and_nothing_else() {
        for (line, scheme, token) in [
            ("Bearer abc", Scheme::Bearer, Some("abc")),
            ("bearer a-._~+/9==", Scheme::Bearer, Some("a-._~+/9==")),
            ("BEARER  abc", Scheme::Bearer, Some("abc")),
            ("DPoP abc", Scheme::Dpop, Some("abc")),
            ("dpop abc", Scheme::Dpop, Some("abc")),
            ("Bearer", Scheme::Bearer, None),
            ("Bearer ", Scheme::Bearer, None),
            ("Bearer =", Scheme::Bearer, None),
            ("Bearer a b", Scheme::Bearer, None),
            ("Bearer a=b", Scheme::Bearer, None),
            ("Bearer a, Basic b", Scheme::Bearer, None),
            ("Bearer\tabc", Scheme::Bearer, None),
            ("Bearer:abc", Scheme::Bearer, None),
            ("Bearer \"abc\"", Scheme::Bearer, None),
        ] {
            assert_eq!(read(&[line]), Some((scheme, token.map(str::to_owned))), "{line}");
        }
        for line in ["Basic abc", "BearerX abc", "Negotiate abc", "", "x Bearer abc"] {
            assert_eq!(read(&[line]), None, "{line}");
        }
    }

    #[test]
    fn two_lines_are_no_token_whatever_their_order() {
        for lines in [
            ["Bearer a", "Bearer a"],
            ["Basic x", "Bearer a"],
            ["Bearer a", "Basic x"],
        ] {
            assert_eq!(read(&lines), Some((Scheme::Bearer, None)), "{lines:?}");
        }
    }

    #[test]
    fn a_proof_that_comes_twice_is_none() {
        let mut headers = HeaderMap::new();
        let proof = |headers: &HeaderMap| text(headers, PROOF.as_str()).map(str::to_owned);
        assert_eq!(proof(&headers), None);
        headers.append(PROOF, HeaderValue::from_static("a"));
        assert_eq!(proof(&headers).as_deref(), Some("a"));
        headers.append(PROOF, HeaderValue::from_static("b"));
        assert_eq!(proof(&headers), None);
    }
}
