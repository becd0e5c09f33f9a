//! The provider's answer as it came: in the query, or as a posted form when that is configured (OAuth 2.0 Form Post Response
//! Mode).
//!
//! Invariant: a parameter that came twice, or as a list (`code[]`), is seen to have come more than once. Everything but the four parameters is ignored: a token
//! in an answer, above all, is never looked at.

use axum::body::Body;
use axum::http::Method;
use axum::http::request::Parts;

use crate::sign_in::rejected::Reason;

/// Largest posted answer, in bytes: a code, a state and an issuer are far smaller.
const MAX_FORM_BYTES: usize = 64 * 1024;

/// What the provider sent.
#[derive(Debug, Default)]
pub(super) struct AuthorizationResponse {
    pub(super) state: Values,
    pub(super) code: Values,
    pub(super) iss: Values,
    pub(super) error: Values,
}

/// The values of one parameter.
pub(super) type Values = Vec<String>;

/// Reads what the provider sent, from wherever it is.
pub(super) async fn read(head: &Parts, body: Body) -> Result<AuthorizationResponse, Reason> {
    if head.method != Method::POST {
        return Ok(parse(head.uri.query().unwrap_or_default()));
    }
    if !super::is_form(&head.headers) {
        return Err(Reason::Body);
    }
    let form = super::form(body, MAX_FORM_BYTES)
        .await
        .map_err(|_unreadable| Reason::Body)?;
    Ok(parse(&form))
}

fn parse(encoded: &str) -> AuthorizationResponse {
    let mut answer = AuthorizationResponse::default();
    for (name, value) in url::form_urlencoded::parse(encoded.as_bytes()) {
        let (name, is_list) = match name.split_once('[') {
            Some((name, _)) => (name, true),
            None => (&*name, false),
        };
        let values = match name {
            "state" => &mut answer.state,
            "code" => &mut answer.code,
            "iss" => &mut answer.iss,
            "error" => &mut answer.error,
            _ => continue,
        };
        // Two are enough to know that there is more than one, or may be.
        let times = if is_list { 2 } else { 1 };
        values.extend(std::iter::repeat_n(value.into_owned(), times));
        values.truncate(2);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_parameters_are_seen_as_repeated() {
        let answer = parse("code=a&code=b&code=c&state=s&iss=i&other=x");
        assert_eq!(
            (
                answer.code.len(),
                answer.state.len(),
                answer.iss.len(),
                answer.error.len()
            ),
            (2, 1, 1, 0)
        );
        for list in ["code[]=a", "code[0]=a", "code=a&code[]=b", "code[x][y]=a"] {
            assert_eq!(parse(list).code.len(), 2, "{list}");
        }
    }
}
