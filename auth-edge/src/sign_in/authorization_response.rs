//! The provider's authorization response, and the checks that need only the response. It arrives in the query or, if
//! configured, as a posted form (OAuth 2.0 Form Post Response Mode).
//!
//! Invariants
//! - A parameter that occurs twice, or as a list (`code[]`), counts as repeated.
//! - The edge ignores all but the four parameters, and `user` in a form. It never reads a token.

use axum::body::Body;
use axum::http::Method;
use axum::http::request::Parts;
use oidc::{RelyingParty, check_issuer_parameter};

use crate::sign_in::error::SignInError;
use crate::values::refusal::RefusalReason as Reason;

/// Largest posted answer, in bytes: a code, a state and an issuer are far smaller.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// Longest code sent to the provider, in bytes: even a whole encrypted token is shorter than half of it.
const MAX_CODE_BYTES: usize = 4096;

/// Error codes in records: RFC 6749 section 4.1.2.1, OpenID Connect Core 3.1.2.6, RFC 8707 section 2, RFC
/// 9396 section 5, Unmet Authentication Requirements 1.0. Others, which may be any text, are [`OTHER_ERROR`].
const ERRORS: [&str; 19] = [
    "invalid_request",
    "unauthorized_client",
    "access_denied",
    "unsupported_response_type",
    "invalid_scope",
    "server_error",
    "temporarily_unavailable",
    "interaction_required",
    "login_required",
    "account_selection_required",
    "consent_required",
    "invalid_request_uri",
    "invalid_request_object",
    "request_not_supported",
    "request_uri_not_supported",
    "registration_not_supported",
    "invalid_target",
    "invalid_authorization_details",
    "unmet_authentication_requirements",
];
/// The name of every other code in records.
const OTHER_ERROR: &str = "another";

/// The provider's response.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(super) struct AuthorizationResponse {
    #[prost(string, repeated, tag = "1")]
    pub(super) state: Values,
    #[prost(string, repeated, tag = "2")]
    pub(super) code: Values,
    #[prost(string, repeated, tag = "3")]
    pub(super) iss: Values,
    #[prost(string, repeated, tag = "4")]
    pub(super) error: Values,
    /// The user's data in a form; unsigned.
    #[prost(string, repeated, tag = "5")]
    pub(super) user: Values,
}

/// The values of one parameter.
pub(super) type Values = Vec<String>;

/// Reads the response from the query or from the posted form.
pub(super) async fn read(head: &Parts, body: Body) -> Result<AuthorizationResponse, Reason> {
    if head.method != Method::POST {
        let answer = parse(head.uri.query().unwrap_or_default());
        return Ok(AuthorizationResponse {
            user: Values::new(),
            ..answer
        });
    }
    if !super::is_form(&head.headers) {
        return Err(Reason::Body);
    }
    let form = super::form(body, MAX_FORM_BYTES)
        .await
        .map_err(|_unreadable| Reason::Body)?;
    Ok(parse(&form))
}

impl AuthorizationResponse {
    /// Checks that `iss` is the provider, and present if promised, also in an error response (RFC 9207,
    /// section 2.4). Reads metadata only if `iss` is absent.
    pub(super) async fn check_issuer(&self, relying_party: &RelyingParty) -> Result<(), SignInError> {
        match self.iss.as_slice() {
            [iss] if relying_party.settings().is_issuer(iss) => Ok(()),
            [] => {
                let metadata = relying_party.metadata().await?;
                check_issuer_parameter(&metadata, None).map_err(|_missing| Reason::Issuer.into())
            }
            _ => Err(Reason::Issuer.into()),
        }
    }

    /// The error code, as records name it.
    pub(super) fn error_code(&self) -> Option<&'static str> {
        let error = self.error.first()?;
        let known = ERRORS.into_iter().find(|known| known == error);
        Some(known.unwrap_or(OTHER_ERROR))
    }

    /// The code, unless there is an `error`: exactly one, in a code's form (RFC 6749, appendix A.11).
    pub(super) fn code(&self) -> Result<&str, Reason> {
        if let Some(error) = self.error.first() {
            return Err(match error.as_str() {
                "access_denied" => Reason::Denied,
                "login_required"
                | "interaction_required"
                | "consent_required"
                | "account_selection_required" => Reason::InteractionNeeded,
                _ => Reason::ProviderError,
            });
        }
        let [code] = self.code.as_slice() else {
            return Err(Reason::Code);
        };
        let visible = code.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if code.is_empty() || code.len() > MAX_CODE_BYTES || !visible {
            return Err(Reason::Code);
        }
        Ok(code)
    }
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
            "user" => &mut answer.user,
            _ => continue,
        };
        // Two values are enough to mark the parameter as repeated.
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
