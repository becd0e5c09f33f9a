//! Every HTTP failure of the edge: status, code, title, words. gRPC-Web answers with gRPC statuses instead
//! (`browser::grpc_web`). Forward auth passes these answers on.
//!
//! Handlers return a [`HttpError`], which travels as a response extension. [`render()`] turns it into JSON for
//! programs or a page for browsers, by `Accept`, with the request ID.
//!
//! Invariant: all words are constants (`&'static str`), from here or from a handler. Text from the provider,
//! the query or a source error goes only to the log.

mod http_error;
mod limit;
mod render;

use std::error::Error;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oidc::Outage;
use session_proto::client::SessionError;
use session_proto::v1::ErrorReason;

use crate::http::pages;
use crate::values::refusal::{OTHER_CLASS, RefusalReason};

pub(crate) use http_error::{Handler, HttpError};
pub(crate) use limit::Limit;
pub(crate) use render::render;

/// How long a client should wait before it calls an unavailable service again, in seconds.
const RETRY_AFTER_SECS: u64 = 5;

/// The edge did not pass a form on.
pub(crate) const NOT_SENT: &str = "We did not send your input, and nothing changed. Sign in in a new tab, then return to this tab and send it again.";

/// The edge did not pass a form on, at an address that would have kept a smaller form.
pub(crate) const NOT_KEPT: &str = "We did not send your form, and nothing changed. A form with files, or a very long one, cannot be kept while you sign in. Sign in in a new tab, then return to this tab and send it again.";

impl HttpError {
    /// Whether the session service could not reach the provider for new tokens.
    #[must_use]
    pub(crate) fn is_provider_away(&self) -> bool {
        let reason = ErrorReason::ErrProviderUnavailable;
        matches!(self, Self::Session { reason: found, .. } if *found == reason)
    }

    /// A failure with the session service's reason.
    #[must_use]
    pub(crate) fn session(reason: ErrorReason) -> Self {
        Self::Session {
            reason,
            scopes: None,
            handler: None,
        }
    }

    /// A failure with the session service's reason, and the scopes that its answer lists.
    #[must_use]
    pub(crate) fn by_session_service(error: &SessionError) -> Self {
        Self::Session {
            reason: error.reason,
            scopes: error.metadata.get("scopes").cloned(),
            handler: None,
        }
    }

    /// The session service cannot be reached. Logs `problem`: what the edge could not do.
    pub(crate) fn session_service_down(error: &(dyn Error + 'static), problem: &str) -> Self {
        tracing::warn!(error, "{problem}");
        Self::SessionServiceDown
    }

    /// The HTTP status.
    #[must_use]
    pub(crate) fn status(&self) -> StatusCode {
        use StatusCode as S;
        match self {
            Self::NotFound => S::NOT_FOUND,
            Self::MethodNotAllowed(_) => S::METHOD_NOT_ALLOWED,
            Self::NotAuthenticated | Self::NotSent(_) | Self::LoginRequired(_) => S::UNAUTHORIZED,
            Self::SignIn { reason, .. } if *reason != RefusalReason::SessionServiceUnavailable => {
                S::BAD_REQUEST
            }
            Self::BadRequest(_) | Self::LogoutToken(_) => S::BAD_REQUEST,
            Self::Csrf
            | Self::CrossSite
            | Self::Forbidden { .. }
            | Self::NotBound
            | Self::MissingClass { .. }
            | Self::MissingClaims { .. }
            | Self::Denied { .. } => S::FORBIDDEN,
            Self::TooLarge => S::PAYLOAD_TOO_LARGE,
            Self::TooSlow => S::REQUEST_TIMEOUT,
            Self::UnsupportedMediaType { .. } => S::UNSUPPORTED_MEDIA_TYPE,
            Self::RateLimited { .. } => S::TOO_MANY_REQUESTS,
            Self::Overloaded(_)
            | Self::SignIn { .. }
            | Self::SessionServiceDown
            | Self::DecisionPointDown
            | Self::SignedOutHereOnly => S::SERVICE_UNAVAILABLE,
            Self::Provider(_, Outage::Unreachable) => S::SERVICE_UNAVAILABLE,
            Self::Provider(_, Outage::Timeout) => S::GATEWAY_TIMEOUT,
            Self::Provider(_, Outage::BadAnswer) => S::BAD_GATEWAY,
            Self::Session { reason, .. } => session(*reason).0,
            Self::AccessToken { status, .. } => *status,
            Self::UpstreamDown => S::BAD_GATEWAY,
            Self::UpstreamSlow => S::GATEWAY_TIMEOUT,
            Self::Internal => S::INTERNAL_SERVER_ERROR,
        }
    }

    /// The code, for programs.
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::MethodNotAllowed(_) => "method_not_allowed",
            Self::NotAuthenticated | Self::NotSent(_) => "not_authenticated",
            Self::LoginRequired(_) => "login_required",
            Self::BadRequest(_) => "bad_request",
            Self::Csrf | Self::CrossSite => "ERR_CSRF",
            Self::TooLarge => "too_large",
            Self::TooSlow => "request_timeout",
            Self::Overloaded(_) => "overloaded",
            Self::UnsupportedMediaType { .. } => "unsupported_media_type",
            Self::RateLimited { .. } => "rate_limited",
            Self::SignIn { .. } => Handler::Callback.code(),
            Self::Provider(handler, _) => handler.code(),
            Self::LogoutToken(_) => "invalid_request",
            Self::SessionServiceDown => "ERR_SESSION_SERVICE_UNAVAILABLE",
            Self::SignedOutHereOnly => Handler::Logout.code(),
            Self::Session { reason, handler, .. } => handler.map_or(reason.as_str_name(), Handler::code),
            Self::Forbidden { code, .. } | Self::AccessToken { code, .. } => code,
            Self::NotBound => "device_not_bound",
            Self::MissingClass { .. } => "insufficient_user_authentication",
            Self::MissingClaims { .. } => "insufficient_claims",
            Self::Denied { .. } => "access_denied",
            Self::DecisionPointDown => "decision_point_unavailable",
            Self::UpstreamDown => "upstream_unavailable",
            Self::UpstreamSlow => "upstream_timeout",
            Self::Internal => "internal",
        }
    }

    /// The title of the error page.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::NotFound => "Page not found",
            Self::MethodNotAllowed(_) => "This does not work here",
            Self::NotAuthenticated => "Not signed in",
            Self::NotSent(_) => "You are signed out",
            Self::LoginRequired(_) => "Sign in first",
            Self::BadRequest(_) | Self::UnsupportedMediaType { .. } => "We could not read this request",
            Self::Csrf | Self::CrossSite => "This did not come from our pages",
            Self::TooLarge => "The request is too large",
            Self::TooSlow => "The request took too long",
            Self::Overloaded(_) | Self::SessionServiceDown | Self::DecisionPointDown => {
                "Temporarily unavailable"
            }
            Self::RateLimited { .. } => "Too many attempts",
            Self::SignIn { reason, .. } => match reason {
                RefusalReason::Denied => "Sign-in cancelled",
                RefusalReason::SessionServiceUnavailable => "Temporarily unavailable",
                _ => "Sign-in did not work",
            },
            Self::MissingClass { .. } => "Sign-in did not work",
            Self::Provider(..) => "Your sign-in provider is not available",
            Self::LogoutToken(_) => "Logout refused",
            Self::SignedOutHereOnly => "This browser is signed out",
            Self::Session { .. } => "This did not work",
            Self::NotBound => "This sign-in is not bound to your device",
            Self::Forbidden { .. }
            | Self::MissingClaims { .. }
            | Self::Denied { .. }
            | Self::AccessToken { .. } => "No access",
            Self::UpstreamDown | Self::UpstreamSlow => "This service is not available",
            Self::Internal => "Something went wrong",
        }
    }

    /// What happened and what helps, for people.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::NotFound => "There is nothing at this address.",
            Self::MethodNotAllowed(_) => "This address does not accept requests of this kind.",
            Self::NotAuthenticated => pages::NOT_AUTHENTICATED,
            Self::LoginRequired(_) => "Signing in needs a navigation of the whole page to login_url.",
            Self::Csrf => "We cannot confirm where this request came from. Reload the page and try again.",
            Self::CrossSite => "To sign out, open this address in your browser, not in the background.",
            Self::TooLarge => "The request's body is too large.",
            Self::TooSlow => "The rest of the request did not arrive in time.",
            Self::Overloaded(_) => {
                "We are receiving too many requests right now. Nothing is lost. Try again in a moment."
            }
            Self::RateLimited { .. } => {
                "We received too many requests from your network. Wait a moment, then try again."
            }
            Self::SignIn { reason, .. } => reason.words(),
            Self::Provider(handler, outage) => provider(*handler, *outage),
            Self::SessionServiceDown => {
                "We cannot reach the session service right now. Nothing is lost. Try again in a moment."
            }
            Self::SignedOutHereOnly => {
                "This browser is signed out. We cannot reach the session service right now. We will end the session as soon as the service is back."
            }
            Self::Session { reason, .. } => session(*reason).1,
            Self::BadRequest(words)
            | Self::LogoutToken(words)
            | Self::NotSent(words)
            | Self::UnsupportedMediaType { words, .. }
            | Self::Forbidden { words, .. }
            | Self::AccessToken { words, .. } => words,
            Self::NotBound => {
                "This address accepts only sign-ins that are bound to a device, because copied cookies then stop working. Your browser did not bind this sign-in. Use Chrome on a computer with a security chip."
            }
            Self::MissingClass { .. } => OTHER_CLASS,
            Self::MissingClaims { .. } | Self::Denied { .. } => {
                "Your account does not meet the requirements of this address."
            }
            Self::UpstreamDown | Self::DecisionPointDown => {
                "We cannot reach the service behind this address right now. Try again in a moment."
            }
            Self::UpstreamSlow => {
                "The service behind this address did not answer in time. Try again in a moment."
            }
            Self::Internal => "This is our fault. Try again. If it happens again, send us the request ID.",
        }
    }

    fn own_headers(&self) -> Option<(HeaderName, HeaderValue)> {
        let seconds = |secs: u64| Some((header::RETRY_AFTER, HeaderValue::from(secs)));
        match self {
            Self::MethodNotAllowed(allow) => Some((header::ALLOW, HeaderValue::from_str(allow).ok()?)),
            Self::UnsupportedMediaType { accepted, .. } => {
                Some((header::ACCEPT, HeaderValue::from_static(accepted)))
            }
            Self::RateLimited { retry_after_secs, .. } => seconds(*retry_after_secs),
            _ if self.status() == StatusCode::SERVICE_UNAVAILABLE => seconds(RETRY_AFTER_SECS),
            _ => None,
        }
    }
}

/// What the provider's outage means for the user of this handler.
fn provider(handler: Handler, outage: Outage) -> &'static str {
    match handler {
        // A wrong setting leads here too, and a retry does not help.
        Handler::Login | Handler::Callback | Handler::Logout if outage == Outage::BadAnswer => {
            "We cannot use the answer from your sign-in provider. If this happens again, tell the operator of this site."
        }
        Handler::Login | Handler::Callback => {
            "We cannot reach your sign-in provider right now. Try again in a moment."
        }
        Handler::Logout => "We cannot reach your sign-in provider right now.",
        Handler::Profile => {
            "We cannot read your profile from your sign-in provider right now. You stay signed in."
        }
    }
}

/// Status and words for a reason of the session service.
fn session(reason: ErrorReason) -> (StatusCode, &'static str) {
    use ErrorReason as R;
    use StatusCode as S;
    match reason {
        R::ErrMissingSession => (S::UNAUTHORIZED, "You are not signed in."),
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
        R::ErrInsufficientScope => (S::FORBIDDEN, "The session lacks a required scope."),
        R::ErrInvalidTarget | R::ErrFailedTokenExchange => (
            S::FORBIDDEN,
            "Your sign-in provider gives you no access to the service behind this address. Signing in again will not help. Tell the operator of this site.",
        ),
        R::ErrProviderUnavailable => (
            S::SERVICE_UNAVAILABLE,
            "We cannot reach the identity provider right now.",
        ),
        R::ErrStoreUnavailable
        | R::ErrUnknownEncryptionKey
        | R::ErrSessionServiceUnavailable
        | R::ErrDeadlineExceeded
        | R::ErrOverloaded
        | R::ErrInternal
        | R::ErrUnspecified => (
            S::SERVICE_UNAVAILABLE,
            "We cannot reach the session service right now. Nothing is lost.",
        ),
        R::ErrCsrf => (
            S::FORBIDDEN,
            "We cannot confirm where this request came from. Reload the page and try again.",
        ),
        R::ErrInvalidArgument | R::ErrBoundToAnotherKey => (S::BAD_REQUEST, "We could not read the request."),
        R::ErrStaleVersion => (S::CONFLICT, "The session changed meanwhile. Try again."),
        R::ErrSessionTooLarge
        | R::ErrRequestIdReused
        | R::ErrUnknownCaller
        | R::ErrCallerNotAllowed
        | R::ErrMalformedRequest
        | R::ErrRequestTooLarge
        | R::ErrUnimplemented => (
            S::INTERNAL_SERVER_ERROR,
            "This is our fault. If it happens again, send us the request ID.",
        ),
    }
}

impl IntoResponse for HttpError {
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
    fn each_reason_of_the_session_service_has_its_status() {
        for (reason, status) in [
            (ErrorReason::ErrMissingSession, 401),
            (ErrorReason::ErrMissingAccessToken, 401),
            (ErrorReason::ErrExpiredAccessToken, 401),
            (ErrorReason::ErrMissingRefreshToken, 401),
            (ErrorReason::ErrFailedRefreshGrant, 401),
            (ErrorReason::ErrInsufficientScope, 403),
            (ErrorReason::ErrInvalidTarget, 403),
            (ErrorReason::ErrFailedTokenExchange, 403),
            (ErrorReason::ErrProviderUnavailable, 503),
            (ErrorReason::ErrStoreUnavailable, 503),
            (ErrorReason::ErrUnknownEncryptionKey, 503),
            (ErrorReason::ErrBoundToAnotherKey, 400),
        ] {
            let failure = HttpError::session(reason);
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
                HttpError::Provider(Handler::Login, outage).status().as_u16(),
                status
            );
        }
    }
}
