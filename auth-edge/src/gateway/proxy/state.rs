//! The proxy's state between requests.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::Error;

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

    /// Sends a request of the edge itself, and waits for the head of the answer. Follows no redirect.
    ///
    /// # Errors
    /// The server cannot be reached, or ends the connection.
    pub(crate) async fn ask(&self, request: Request<Body>) -> Result<Response<Incoming>, Error> {
        self.clients.send(request).await
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
