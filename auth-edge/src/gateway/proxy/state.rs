//! The proxy's state between requests.

use std::time::Duration;

use super::clients::{Clients, UpstreamSettings, UpstreamTlsError};
use super::measures::UpstreamDurations;
use super::renewal::Renewals;

/// Forwards requests.
pub(crate) struct Proxy {
    pub(super) clients: Clients,
    pub(super) durations: UpstreamDurations,
    pub(super) renewals: Renewals,
    pub(super) head_timeout: Duration,
    pub(super) max_body_bytes: u64,
}

impl Proxy {
    /// A proxy with its own connections. Does no IO except reading the authorities.
    pub(crate) fn new(
        settings: &UpstreamSettings,
        durations: UpstreamDurations,
    ) -> Result<Self, UpstreamTlsError> {
        Ok(Self {
            durations,
            clients: Clients::new(settings)?,
            renewals: Renewals::default(),
            head_timeout: settings.head_timeout,
            max_body_bytes: settings.max_body_bytes,
        })
    }

    /// A copy with its own connections, for a worker.
    pub(crate) fn for_worker(&self) -> Self {
        Self {
            clients: self.clients.for_worker(),
            durations: self.durations.clone(),
            renewals: self.renewals.clone(),
            ..*self
        }
    }
}
