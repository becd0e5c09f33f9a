//! A refusal of signing in or out: counted, recorded with its causes, and answered.

mod reason_of;

use std::error::Error;
use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use session_proto::v1::Device;

pub(super) use self::reason_of::{of_id_token, of_logout_token, of_provider, of_token, of_userinfo};
use crate::http::errors::HttpError;
use crate::http::refused::Refused;
use crate::providers::IdentityProvider;
use crate::sign_in::SignIn;
use crate::values::refusal::{RefusalReason, SignInStep};

/// Why something is refused, and what caused that.
pub(super) struct SignInRefusal {
    pub(super) step: SignInStep,
    pub(super) reason: RefusalReason,
    /// The error code of the provider's answer, where it had one.
    pub(super) provider_error: Option<&'static str>,
    pub(super) cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl SignInRefusal {
    /// One without an error behind it.
    pub(super) fn new(step: SignInStep, reason: RefusalReason) -> Self {
        Self {
            step,
            reason,
            provider_error: None,
            cause: None,
        }
    }

    /// One that an error caused.
    pub(super) fn caused(
        step: SignInStep,
        reason: RefusalReason,
        cause: impl Error + Send + Sync + 'static,
    ) -> Self {
        Self {
            step,
            reason,
            provider_error: None,
            cause: Some(Arc::new(cause)),
        }
    }

    /// Counts it and makes the answer, with what its record will say.
    pub(super) fn answer(
        self,
        sign_in: &SignIn,
        provider: Option<&IdentityProvider>,
        answer: HttpError,
    ) -> Response {
        let Self {
            step,
            reason,
            provider_error,
            cause,
        } = self;
        let provider = provider.map(|provider| provider.id.clone()).unwrap_or_default();
        sign_in.metrics.refusal(step, reason, &provider);
        let mut response = answer.into_response();
        response.extensions_mut().insert(Refused {
            step,
            reason,
            provider,
            provider_error,
            cause,
            device: Device::default(),
        });
        response
    }
}

/// The answer of a handler to the request of `device`; where it failed for a reason any handler can have, as a refusal of that reason.
pub(super) fn answered(
    sign_in: &SignIn,
    step: SignInStep,
    device: Device,
    result: Result<Response, HttpError>,
) -> Response {
    let mut response = result.unwrap_or_else(|error| match reason_of::of_answer(&error) {
        Some(reason) => SignInRefusal::new(step, reason).answer(sign_in, None, error),
        None => error.into_response(),
    });
    if let Some(refused) = response.extensions_mut().get_mut::<Refused>() {
        refused.device = device;
    }
    response
}
