//! What can go wrong, as handlers say it.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::StatusCode;
use oidc::Outage;
use session_proto::v1::ErrorReason;

use super::Limit;
use crate::values::refusal::RefusalReason;

/// Which handler failed; names the code of its failures.
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
    /// The address is known, the method is not; the `Allow` header names those that are.
    MethodNotAllowed(Cow<'static, str>),
    /// Nobody is signed in: the one answer of `/api/auth/401` and of every guard, with the same words for browsers.
    NotAuthenticated,
    /// As before, for a person who has sent a form: it was not passed on.
    NotSent(&'static str),
    /// A script requested the login route, which only a navigation can use.
    /// Holds the absolute URL to navigate to.
    LoginRequired(String),
    /// The request is malformed: the path, a header or the body.
    BadRequest(&'static str),
    /// The proof that the request comes from our own pages is missing.
    Csrf,
    /// A sub-resource of another site tried to sign the visitor out.
    CrossSite,
    /// The body is too large.
    TooLarge,
    /// The body did not go on for too long (408).
    TooSlow,
    /// More requests are being worked on than the edge takes on.
    Overloaded(Limit),
    /// The body has another content type than the route takes; only programs call such routes.
    UnsupportedMediaType {
        /// The one it takes, which the `Accept` header names (RFC 9110, section 15.5.16).
        accepted: &'static str,
        /// The words, with that type.
        words: &'static str,
    },
    /// Too many requests from this address.
    RateLimited {
        /// Seconds until the next one is welcome.
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
    /// The logout token was refused; ends nothing.
    LogoutToken(&'static str),
    /// The session service, or its store, cannot be reached. Nothing was lost.
    SessionServiceDown,
    /// As before, while signing out: this browser is signed out, the session itself will follow.
    SignedOutHereOnly,
    /// The session service refused, with its reason.
    Session {
        /// The reason.
        reason: ErrorReason,
        /// Scopes that are missing, space-separated.
        scopes: Option<String>,
        /// The handler whose code the failure has; `None` is the reason's own.
        handler: Option<Handler>,
    },
    /// The session does not have what the route requires, other than a scope.
    Forbidden {
        /// The code.
        code: &'static str,
        /// The words.
        words: &'static str,
    },
    /// The route, or every route, asks for a session that is bound to a device.
    NotBound,
    /// The person's claims are not as the route requires.
    MissingClaims {
        /// The names of those that are not, and no value of theirs.
        claims: Vec<String>,
        /// What whoever wrote the rule has to say.
        message: Option<Arc<str>>,
    },
    /// The session's sign-in is of none of these authentication classes, and another one would not be either.
    MissingClass {
        /// The classes.
        acr: Vec<String>,
    },
    /// An access token of a client does not pass (RFC 6750, section 3.1); the challenge beside it says the same.
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
    /// A fault of the edge; its log has the cause under the request ID.
    Internal,
}
