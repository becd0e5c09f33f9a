//! The error of a rejected sign-in, or of a rejected logout by the provider: reason, audit record and answer.
//!
//! Matches are exhaustive: the compiler requires a reason for a new error.

use std::error::Error;

use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use chassis::audit::{AuditRecord, Event, Outcome};
use chassis::random::NoRandomness;
use oidc::{GrantError, GroupsError, IdTokenError, OAuthError, Outage, ProviderError, UserinfoError};
use session_proto::client::SessionError;
use session_proto::v1::ErrorReason;

use crate::http::device::record_from;
use crate::http::errors::{Handler, HttpError};
use crate::providers::IdentityProvider;
use crate::sign_in::SignIn;
use crate::values::refusal::{RefusalReason as Reason, SignInStep};

/// Why the edge rejects a sign-in, or a logout that the provider requests.
#[derive(Debug)]
pub(super) struct SignInError {
    /// The reason, as records, metrics and the manual name it.
    pub(super) reason: Reason,
    /// How the provider failed, if it did.
    pub(super) outage: Option<Outage>,
    /// The authentication classes that the provider did not confirm.
    pub(super) acr: Vec<String>,
    /// The error code of the provider's answer, if it had one.
    pub(super) provider_error: Option<&'static str>,
    /// The underlying error.
    pub(super) cause: Option<Box<dyn Error + Send + Sync>>,
}

impl SignInError {
    fn caused(reason: Reason, cause: impl Error + Send + Sync + 'static) -> Self {
        Self {
            cause: Some(Box::new(cause)),
            ..Self::from(reason)
        }
    }

    /// Logs why the session service, or this process, could not decide, and returns the error for it.
    pub(super) fn unavailable(error: &(dyn Error + 'static), problem: &str) -> Self {
        tracing::error!(error, "{problem}");
        Self::from(Reason::SessionServiceUnavailable)
    }

    /// The error of a rejected logout token. If the edge cannot validate it now, the answer allows a retry.
    pub(super) fn of_logout_token(error: IdTokenError) -> Self {
        let outage = match &error {
            IdTokenError::Provider(error) => Some(error.outage()),
            IdTokenError::UnknownKey => Some(Outage::Unreachable),
            _ => None,
        };
        Self {
            outage,
            ..Self::from(error)
        }
    }

    /// The answer to this error at this step.
    fn answer(&self, step: SignInStep) -> HttpError {
        match (step, self.outage) {
            (SignInStep::Callback, _) => HttpError::SignIn {
                reason: self.reason,
                acr: self.acr.clone(),
            },
            (SignInStep::Login, Some(outage)) if self.reason != Reason::RequestRefused => {
                HttpError::Provider(Handler::Login, outage)
            }
            (SignInStep::Login, _) => HttpError::BadRequest(self.reason.words()),
            (SignInStep::LogoutToken, Some(outage)) => HttpError::Provider(Handler::Logout, outage),
            (SignInStep::LogoutToken, None) => match self.reason {
                Reason::SessionServiceUnavailable => HttpError::SessionServiceDown,
                Reason::Fault => HttpError::Internal,
                reason => HttpError::LogoutToken(reason.words_for_provider()),
            },
        }
    }
}

impl From<Reason> for SignInError {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            outage: None,
            acr: Vec::new(),
            provider_error: None,
            cause: None,
        }
    }
}

impl From<NoRandomness> for SignInError {
    fn from(error: NoRandomness) -> Self {
        Self::caused(Reason::Fault, error)
    }
}

impl From<ProviderError> for SignInError {
    fn from(error: ProviderError) -> Self {
        Self {
            outage: Some(error.outage()),
            ..Self::caused(of_provider(&error), error)
        }
    }
}

impl From<GrantError> for SignInError {
    fn from(error: GrantError) -> Self {
        let reason = match &error {
            GrantError::Transient(error) => of_provider(error),
            GrantError::Refused(refusal) => of_refusal(refusal),
            GrantError::Unusable(_) => Reason::TokenResponse,
        };
        Self::caused(reason, error)
    }
}

impl From<IdTokenError> for SignInError {
    fn from(error: IdTokenError) -> Self {
        let acr = match &error {
            IdTokenError::Acr(requested) => requested.split(' ').map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        Self {
            acr,
            ..Self::caused(of_id_token(&error), error)
        }
    }
}

impl From<UserinfoError> for SignInError {
    fn from(error: UserinfoError) -> Self {
        let reason = match &error {
            UserinfoError::Provider(error) | UserinfoError::Token(IdTokenError::Provider(error)) => {
                of_provider(error)
            }
            UserinfoError::Unauthorized => Reason::UserinfoRefused,
            UserinfoError::Subject => Reason::UserinfoSubject,
            UserinfoError::Malformed | UserinfoError::Token(_) => Reason::UserinfoAnswer,
        };
        Self::caused(reason, error)
    }
}

impl From<GroupsError> for SignInError {
    fn from(error: GroupsError) -> Self {
        let reason = match &error {
            GroupsError::Provider(error) => of_provider(error),
            GroupsError::NotAllowed { .. } | GroupsError::TooMany => Reason::Groups,
        };
        Self::caused(reason, error)
    }
}

/// The session service rejects the session that a sign-in would create.
impl From<SessionError> for SignInError {
    fn from(error: SessionError) -> Self {
        match error.reason {
            _ if error.is_unavailable() => Self::unavailable(&error, "no session could be created"),
            ErrorReason::ErrSessionTooLarge | ErrorReason::ErrRequestTooLarge => {
                Self::caused(Reason::SessionTooLarge, error)
            }
            _ => Self::caused(Reason::Session, error),
        }
    }
}

fn of_provider(error: &ProviderError) -> Reason {
    match error {
        ProviderError::Unreachable { .. } => Reason::ProviderUnreachable,
        ProviderError::Timeout { .. } => Reason::ProviderTimeout,
        ProviderError::Status { .. }
        | ProviderError::TooLarge { .. }
        | ProviderError::Malformed { .. }
        | ProviderError::Unverified { .. } => Reason::ProviderAnswer,
        ProviderError::IssuerMismatch => Reason::ProviderIssuer,
        ProviderError::MissingEndpoint { .. } | ProviderError::InsecureEndpoint { .. } => {
            Reason::ProviderMetadata
        }
        ProviderError::NoS256 => Reason::NoPkce,
        ProviderError::PushedRequests => Reason::PushedRequests,
        ProviderError::Refused(_, refusal) => of_refusal(refusal),
        ProviderError::ClientRefused { .. } => Reason::ClientRefused,
        ProviderError::ClientAssertion(_) | ProviderError::ClientProof(_) => Reason::NotSigned,
        ProviderError::Recent(earlier) => of_provider(earlier),
    }
}

/// What the provider rejects (RFC 6749, section 5.2): the client, the grant, or something else.
fn of_refusal(refusal: &OAuthError) -> Reason {
    match refusal.code() {
        _ if refusal.is_about_client() => Reason::ClientRefused,
        "unauthorized_client" => Reason::ClientRefused,
        "invalid_grant" => Reason::CodeRefused,
        _ => Reason::RequestRefused,
    }
}

fn of_id_token(error: &IdTokenError) -> Reason {
    match error {
        IdTokenError::Provider(error) => of_provider(error),
        IdTokenError::Malformed | IdTokenError::Header | IdTokenError::Type(_) => Reason::TokenMalformed,
        IdTokenError::TooLong => Reason::TokenTooLong,
        IdTokenError::Algorithm => Reason::TokenAlgorithm,
        IdTokenError::UnknownKey => Reason::TokenUnknownKey,
        IdTokenError::Signature => Reason::TokenSignature,
        IdTokenError::Issuer => Reason::TokenIssuer,
        IdTokenError::Audience | IdTokenError::AuthorizedParty => Reason::TokenAudience,
        IdTokenError::Expired | IdTokenError::NotYetValid => Reason::TokenExpired,
        IdTokenError::IssuedAt => Reason::TokenIssuedAt,
        IdTokenError::Nonce => Reason::TokenNonce,
        IdTokenError::AccessTokenHash => Reason::TokenAccessTokenHash,
        IdTokenError::AuthTime => Reason::TokenAuthTime,
        IdTokenError::NoAuthTime => Reason::TokenNoAuthTime,
        IdTokenError::Acr(_) => Reason::TokenAcr,
        IdTokenError::Subject => Reason::TokenSubject,
        IdTokenError::Organization => Reason::Organization,
        IdTokenError::LogoutType => Reason::TokenType,
        IdTokenError::TokenId => Reason::TokenId,
        IdTokenError::Events => Reason::TokenEvents,
        IdTokenError::Nobody => Reason::TokenWithoutSubject,
    }
}

/// The reason of a failure that any handler can have; `None` if it is no rejection.
fn of_failure(failure: &HttpError) -> Option<Reason> {
    match failure {
        HttpError::RateLimited { .. } => Some(Reason::RateLimited),
        HttpError::Forbidden { .. } => Some(Reason::NotANavigation),
        HttpError::SessionServiceDown => Some(Reason::SessionServiceUnavailable),
        HttpError::BadRequest(_)
        | HttpError::LogoutToken(_)
        | HttpError::TooLarge
        | HttpError::TooSlow
        | HttpError::UnsupportedMediaType { .. } => Some(Reason::Body),
        HttpError::Internal => Some(Reason::Fault),
        _ => None,
    }
}

impl SignIn {
    /// A handler's answer. If its failure is a rejection, the edge counts and records it.
    pub(super) fn answer(
        &self,
        step: SignInStep,
        head: &Parts,
        handled: Result<Response, HttpError>,
    ) -> Response {
        handled.unwrap_or_else(|failure| match of_failure(&failure) {
            Some(reason) => self.reject_with(step, None, head, reason.into(), failure),
            None => failure.into_response(),
        })
    }

    /// Counts and records a rejection, and returns the answer to `error` at this step.
    pub(super) fn reject(
        &self,
        step: SignInStep,
        provider: Option<&IdentityProvider>,
        head: &Parts,
        error: SignInError,
    ) -> Response {
        let failure = error.answer(step);
        self.reject_with(step, provider, head, error, failure)
    }

    /// Counts and records a rejection, and returns `failure` as the answer.
    pub(super) fn reject_with(
        &self,
        step: SignInStep,
        provider: Option<&IdentityProvider>,
        head: &Parts,
        error: SignInError,
        failure: HttpError,
    ) -> Response {
        let provider = provider.map(|provider| provider.id.as_str());
        self.metrics
            .refusal(step, error.reason, provider.unwrap_or_default());
        if !error.reason.is_noise() {
            let device = self.device(head);
            let event = match step {
                SignInStep::Login | SignInStep::Callback => Event::SignIn,
                SignInStep::LogoutToken => Event::ProviderLogout,
            };
            let cause = error.cause.as_deref();
            self.records.write(&AuditRecord {
                reason: Some(error.reason.name()),
                provider,
                provider_error: error.provider_error,
                step: Some(step.name()),
                error: cause.map(|cause| cause as &(dyn Error + 'static)),
                ..record_from(&device, event, Outcome::Failure)
            });
        }
        let mut response = failure.into_response();
        response.extensions_mut().insert(error.reason);
        response
    }
}
