//! Every way the edge says no: status, code, words. The only file of the edge where HTTP status codes of failures stand.
//!
//! Handlers return a [`Failure`]; it travels as a response extension, and [`render()`] turns it into JSON for programs or a
//! small page for browsers, by `Accept`, with the request ID. Invariant: every word comes
//! from here; nothing is taken from the provider, the query or a source error, which go to the log.

mod failure;
mod render;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oidc::Outage;
use session_proto::v1::ErrorReason;

use crate::http::pages;

pub(crate) use failure::{Failure, Handler};
pub(crate) use render::{render, wants_page};

/// How long a client should wait before asking a service again that is down, in seconds.
const RETRY_AFTER_SECS: u64 = 5;

/// Somebody needs to know how long ago a person signed in, and nobody does.
pub(crate) const PROVIDER_TELLS_NO_TIME: &str = "The service that signs you in does not tell when you signed in, and this address needs to know. Signing in again will not help; tell whoever runs this site.";

/// What a failure says.
struct Presentation {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    words: &'static str,
}

const fn presentation(
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    words: &'static str,
) -> Presentation {
    Presentation {
        status,
        code,
        title,
        words,
    }
}

impl Failure {
    /// The HTTP status of this failure.
    #[must_use]
    pub(crate) fn status(&self) -> StatusCode {
        self.presentation().status
    }

    fn presentation(&self) -> Presentation {
        use StatusCode as S;
        match self {
            Self::NotFound => presentation(
                S::NOT_FOUND,
                "not_found",
                "Page not found",
                "There is nothing at this address.",
            ),
            Self::MethodNotAllowed(_) => presentation(
                S::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "That does not work here",
                "This address does not take requests of this kind.",
            ),
            Self::NotAuthenticated => presentation(
                S::UNAUTHORIZED,
                "not_authenticated",
                "Not signed in",
                pages::NOT_AUTHENTICATED,
            ),
            Self::NotSent { .. } => presentation(
                S::UNAUTHORIZED,
                "not_authenticated",
                "You are signed out",
                "What you sent was not passed on, and nothing was changed. Sign in in a new tab, then come back to this one and send it again.",
            ),
            Self::LoginRequired { .. } => presentation(
                S::UNAUTHORIZED,
                "login_required",
                "Sign in first",
                "Signing in needs a navigation of the whole page to login_url.",
            ),
            Self::BadRequest(words) => presentation(
                S::BAD_REQUEST,
                "bad_request",
                "That request was not understood",
                words,
            ),
            Self::Csrf => presentation(
                S::FORBIDDEN,
                "ERR_CSRF",
                "That did not come from our pages",
                "The request lacks the proof that it comes from this site's own pages.",
            ),
            Self::CrossSite => presentation(
                S::FORBIDDEN,
                "ERR_CSRF",
                "That did not come from our pages",
                "Signing out needs a visit to this address, not a request in the background.",
            ),
            Self::TooLarge => presentation(
                S::PAYLOAD_TOO_LARGE,
                "too_large",
                "Too large",
                "The request's body is too large.",
            ),
            Self::TooSlow => presentation(
                S::REQUEST_TIMEOUT,
                "request_timeout",
                "That took too long",
                "The rest of the request did not arrive in time.",
            ),
            Self::Overloaded => presentation(
                S::SERVICE_UNAVAILABLE,
                "overloaded",
                "We will be right back",
                "There are more requests than can be answered just now. Nothing is lost; try again in a moment.",
            ),
            Self::UnsupportedMediaType => presentation(
                S::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "That request was not understood",
                "The request's body has to be application/x-www-form-urlencoded.",
            ),
            Self::RateLimited { .. } => presentation(
                S::TOO_MANY_REQUESTS,
                "rate_limited",
                "Too many attempts",
                "There were too many requests from your network. Wait a moment and try again.",
            ),
            Self::Callback { words, .. } => presentation(
                S::BAD_REQUEST,
                Handler::Callback.code(),
                "Sign-in did not work",
                words,
            ),
            Self::CallbackUnavailable { .. } => presentation(
                S::SERVICE_UNAVAILABLE,
                Handler::Callback.code(),
                "We will be right back",
                "The service that keeps sessions cannot be reached just now, so you are not signed in yet. Try again in a moment.",
            ),
            Self::Provider(handler, outage) => provider(*handler, *outage),
            Self::LogoutToken(words) => {
                presentation(S::BAD_REQUEST, "invalid_request", "Logout refused", words)
            }
            Self::SessionServiceDown => presentation(
                S::SERVICE_UNAVAILABLE,
                "ERR_SESSION_SERVICE_UNAVAILABLE",
                "We will be right back",
                "The service that keeps sessions cannot be reached just now. Nothing is lost and you stay signed in; try again in a moment.",
            ),
            Self::SignedOutHereOnly => presentation(
                S::SERVICE_UNAVAILABLE,
                Handler::Logout.code(),
                "This browser is signed out",
                "This browser is signed out. The service that keeps sessions cannot be reached just now; the session itself will be ended as soon as the service is back.",
            ),
            Self::Session { reason, handler, .. } => {
                let by_reason = session(*reason);
                Presentation {
                    code: handler.map_or(by_reason.code, Handler::code),
                    ..by_reason
                }
            }
            Self::Forbidden { code, words } => presentation(S::FORBIDDEN, code, "Not allowed", words),
            Self::UpstreamDown => presentation(
                S::BAD_GATEWAY,
                "upstream_unavailable",
                "This part is not available",
                "The service behind this address cannot be reached just now. Try again in a moment.",
            ),
            Self::UpstreamSlow => presentation(
                S::GATEWAY_TIMEOUT,
                "upstream_timeout",
                "This part is not available",
                "The service behind this address did not answer in time. Try again in a moment.",
            ),
            Self::Internal => presentation(
                S::INTERNAL_SERVER_ERROR,
                "internal",
                "Something went wrong",
                "That was our fault. Try again; if it stays, tell us the request ID.",
            ),
        }
    }

    fn own_headers(&self) -> Option<(HeaderName, HeaderValue)> {
        let seconds = |secs: u64| Some((header::RETRY_AFTER, HeaderValue::from(secs)));
        match self {
            Self::MethodNotAllowed(allow) => Some((header::ALLOW, HeaderValue::from_static(allow))),
            Self::RateLimited { retry_after_secs } => seconds(*retry_after_secs),
            _ if self.status() == StatusCode::SERVICE_UNAVAILABLE => seconds(RETRY_AFTER_SECS),
            _ => None,
        }
    }
}

fn provider(handler: Handler, outage: Outage) -> Presentation {
    let status = match outage {
        Outage::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
        Outage::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Outage::BadAnswer => StatusCode::BAD_GATEWAY,
    };
    let words = match handler {
        Handler::Login | Handler::Callback => {
            "The service that signs you in cannot be reached just now. Try again in a moment."
        }
        Handler::Logout => "The service that signed you in cannot be reached just now.",
        Handler::Profile => {
            "The profile cannot be read from the service that signed you in just now. You stay signed in."
        }
    };
    presentation(status, handler.code(), "Sign-in service not available", words)
}

/// Status and words of a reason of the session service.
fn session(reason: ErrorReason) -> Presentation {
    use ErrorReason as R;
    use StatusCode as S;
    let (status, words) = match reason {
        R::ErrMissingSession => (S::UNAUTHORIZED, "There is no session."),
        R::ErrMissingAccessToken => (S::UNAUTHORIZED, "The session holds no access token."),
        R::ErrMissingRefreshToken => (S::UNAUTHORIZED, "The session holds no refresh token."),
        R::ErrExpiredAccessToken => (
            S::UNAUTHORIZED,
            "The access token has expired and cannot be refreshed. Sign in again.",
        ),
        R::ErrFailedRefreshGrant => (
            S::UNAUTHORIZED,
            "The provider refused to refresh the access token. Sign in again.",
        ),
        R::ErrInsufficientScope => (S::FORBIDDEN, "The session lacks a scope that is asked for."),
        R::ErrProviderUnavailable => (
            S::SERVICE_UNAVAILABLE,
            "The identity provider cannot be reached just now.",
        ),
        R::ErrStoreUnavailable
        | R::ErrSessionServiceUnavailable
        | R::ErrDeadlineExceeded
        | R::ErrOverloaded
        | R::ErrInternal
        | R::ErrUnspecified => (
            S::SERVICE_UNAVAILABLE,
            "The service that keeps sessions cannot be reached just now. Nothing is lost.",
        ),
        R::ErrCsrf => (
            S::FORBIDDEN,
            "The request lacks the proof that it comes from this site's own pages.",
        ),
        R::ErrInvalidArgument => (S::BAD_REQUEST, "The request was not understood."),
        R::ErrStaleVersion => (S::CONFLICT, "The session changed meanwhile. Try again."),
        R::ErrSessionTooLarge
        | R::ErrRequestIdReused
        | R::ErrUnknownCaller
        | R::ErrCallerNotAllowed
        | R::ErrMalformedRequest
        | R::ErrRequestTooLarge
        | R::ErrUnimplemented => (
            S::INTERNAL_SERVER_ERROR,
            "That was our fault. If it stays, tell us the request ID.",
        ),
    };
    presentation(status, reason.as_str_name(), "That did not work", words)
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_the_session_service_have_the_statuses_of_the_contract() {
        for (reason, status) in [
            (ErrorReason::ErrMissingSession, 401),
            (ErrorReason::ErrMissingAccessToken, 401),
            (ErrorReason::ErrExpiredAccessToken, 401),
            (ErrorReason::ErrMissingRefreshToken, 401),
            (ErrorReason::ErrFailedRefreshGrant, 401),
            (ErrorReason::ErrInsufficientScope, 403),
            (ErrorReason::ErrProviderUnavailable, 503),
            (ErrorReason::ErrStoreUnavailable, 503),
        ] {
            let failure = Failure::Session {
                reason,
                scopes: None,
                handler: None,
            };
            assert_eq!(failure.status().as_u16(), status, "{reason:?}");
        }
    }

    #[test]
    fn a_provider_outage_has_the_status_that_fits() {
        for (outage, status) in [
            (Outage::Unreachable, 503),
            (Outage::Timeout, 504),
            (Outage::BadAnswer, 502),
        ] {
            assert_eq!(
                Failure::Provider(Handler::Login, outage).status().as_u16(),
                status
            );
        }
    }
}
