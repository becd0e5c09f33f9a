//! The record of a refused sign-in: why, at which step, by which provider, with every cause, and the request ID that stands on the
//! page the person sees.
//!
//! Invariant: nothing of it reaches the answer.

use std::error::Error;
use std::sync::Arc;

use crate::values::refusal::{RefusalReason, SignInStep};

/// Response extension: what was refused. The observer writes its record, since it knows the request ID.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) step: SignInStep,
    pub(crate) reason: RefusalReason,
    /// The provider's id; empty before one is chosen.
    pub(crate) provider: String,
    pub(crate) cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Refused {
    /// Writes the audit record.
    pub(super) fn record(&self, request_id: &str) {
        if self.reason.is_noise() {
            return;
        }
        let error = self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static));
        tracing::warn!(
            target: "audit",
            step = self.step.name(),
            reason = self.reason.name(),
            provider = self.provider,
            request_id,
            error,
            "sign-in refused"
        );
    }
}
