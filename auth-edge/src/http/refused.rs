//! The record of a refused sign-in: why, at which step, by which provider, from where, with every cause, and the request ID that
//! stands on the page the person sees.
//!
//! Invariant: nothing of it reaches the answer.

use std::error::Error;
use std::sync::Arc;

use chassis::audit::{AuditRecord, Event, Outcome, RepeatedRecords, RequestId};
use session_proto::v1::Device;

use crate::http::device::record_from;
use crate::values::refusal::{RefusalReason, SignInStep};

/// Response extension: what was refused. The observer writes its record, since it knows the request ID.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) step: SignInStep,
    pub(crate) reason: RefusalReason,
    /// The provider's id; empty before one is chosen.
    pub(crate) provider: String,
    /// The error code of the provider's answer, where it had one.
    pub(crate) provider_error: Option<&'static str>,
    pub(crate) cause: Option<Arc<dyn Error + Send + Sync>>,
    /// Whose request it was: a browser's, or the provider's own.
    pub(crate) device: Device,
}

impl Refused {
    /// Writes the audit record, or counts it where a client repeats itself.
    pub(super) fn record(&self, request_id: RequestId, records: &RepeatedRecords) {
        if self.reason.is_noise() {
            return;
        }
        let event = match self.step {
            SignInStep::Login | SignInStep::Callback => Event::SignIn,
            SignInStep::LogoutToken => Event::ProviderLogout,
        };
        records.write(&AuditRecord {
            reason: Some(self.reason.name()),
            request_id: Some(request_id.as_str()),
            provider: Some(self.provider.as_str()).filter(|id| !id.is_empty()),
            provider_error: self.provider_error,
            step: Some(self.step.name()),
            error: self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static)),
            ..record_from(&self.device, event, Outcome::Failure)
        });
    }
}
