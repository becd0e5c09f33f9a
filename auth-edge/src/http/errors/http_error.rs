//! The failures that handlers report.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::StatusCode;
use oidc::Outage;
use session_proto::v1::ErrorReason;

use super::Limit;
use crate::values::refusal::RefusalReason;

/// Which handler failed; selects the error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    /// Login.
    Login,
    /// Callback.
    Callback,
    /// Logout, in all its forms.
    Logout,
    /// Profile.
    Profile,
}

impl Handler {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Login => "ERR_LOGIN_HANDLER_FAILURE",
            Self::Callback => "ERR_CALLBACK_HANDLER_FAILURE",
            Self::Logout => "ERR_LOGOUT_HANDLER_FAILURE",
            Self::Profile => "ERR_PROFILE_HANDLER_FAILURE",
        }
    }
}

/// Why a request fails.
#[derive(Clone, Debug)]
pub(crate) enum HttpError {
    /// There is nothing at this address.
    NotFound,
    /// The address exists but rejects the method; the `Allow` header lists the accepted methods.
    MethodNotAllowed(Cow<'static, str>),
    /// The user is not signed in. `/api/auth/401` and every guard answer with the same words.
    NotAuthenticated,
    /// As [`Self::NotAuthenticated`], for a user who sent a form: the edge did not pass it on.
    NotSent(&'static str),
    /// A script requested the login route, which only a navigation can use.
    /// Holds the absolute URL to navigate to.
    LoginRequired(String),
    /// The request is malformed: the path, a header or the body.
    BadRequest(&'static str),
    /// The proof that the request comes from the product's own pages is missing.
    Csrf,
    /// A sub-resource of another site tried to sign the user out.
    CrossSite,
    /// The body is too large.
    TooLarge,
    /// The client stopped sending the body for too long (408).
    TooSlow,
    /// The edge is working on as many requests as it accepts.
    Overloaded(Limit),
    /// The body has the wrong content type for the route; only programs call such routes.
    UnsupportedMediaType {
        /// The accepted type, which the `Accept` header names (RFC 9110, section 15.5.16).
        accepted: &'static str,
        /// The words, with that type.
        words: &'static str,
    },
    /// Too many requests from this address.
    RateLimited {
        /// Seconds until the client may retry.
        retry_after_secs: u64,
        /// Which limit.
        limit: Limit,
    },
    /// The callback rejected a sign-in.
    SignIn {
        /// Why.
        reason: RefusalReason,
        /// The authentication classes that the provider did not confirm.
        acr: Vec<String>,
    },
    /// The provider gave no usable answer to a handler that needs one now.
    Provider(Handler, Outage),
    /// The edge rejected the logout token; no session ends.
    LogoutToken(&'static str),
    /// The session service, or its store, cannot be reached. Nothing was lost.
    SessionServiceDown,
    /// As [`Self::SessionServiceDown`], at sign-out: this browser is signed out, the session ends later.
    SignedOutHereOnly,
    /// The session service rejected the call, with its reason.
    Session {
        /// The reason.
        reason: ErrorReason,
        /// Missing scopes, space-separated.
        scopes: Option<String>,
        /// The handler that sets the error code; with `None` the reason sets it.
        handler: Option<Handler>,
    },
    /// The session lacks something that the route requires, other than a scope.
    Forbidden {
        /// The code.
        code: &'static str,
        /// The words.
        words: &'static str,
    },
    /// The route, or every route, requires a session that is bound to a device.
    NotBound,
    /// The user's claims do not meet the route's requirements.
    MissingClaims {
        /// The names of the failing claims, without their values.
        claims: Vec<String>,
        /// The operator's message from the rule.
        message: Option<Arc<str>>,
    },
    /// The decision point of the route denies the request.
    Denied {
        /// The decision point's code for it.
        reason: Option<String>,
        /// The operator's message from the rule.
        message: Option<Arc<str>>,
    },
    /// The decision point of the route gives no answer.
    DecisionPointDown,
    /// The sign-in has none of these authentication classes, and a new sign-in would not have one either.
    MissingClass {
        /// The classes.
        acr: Vec<String>,
    },
    /// A client's access token is not accepted (RFC 6750, section 3.1). The challenge header says the same.
    AccessToken {
        /// The code.
        code: &'static str,
        /// The status.
        status: StatusCode,
        /// The words.
        words: &'static str,
    },
    /// The upstream of a proxied route cannot be reached (502).
    UpstreamDown,
    /// The upstream of a proxied route did not answer in time (504).
    UpstreamSlow,
    /// A fault of the edge; the log has the cause under the request ID.
    Internal,
}
