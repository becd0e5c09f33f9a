//! Counts how often a limit was hit, and a request or connection was refused, closed or delayed.

use prometheus::{IntCounterVec, Opts, Registry};

/// Limits of a listener, by the label `limit`.
pub(crate) mod listener {
    /// All connections were busy: new clients had to wait.
    pub(crate) const CONNECTIONS: &str = "connections";
    /// A client was at its limit of connections, all of them busy: its new connection was closed.
    pub(crate) const CONNECTIONS_OF_CLIENT: &str = "connections_of_client";
    /// A connection held more than its share of bytes for requests and answers: the request was refused.
    pub(crate) const WAITING_BYTES: &str = "waiting_bytes";
    /// All of them.
    pub(crate) const ALL: [&str; 3] = [CONNECTIONS, CONNECTIONS_OF_CLIENT, WAITING_BYTES];
}

/// Counts hits by limit. Clones count together.
#[derive(Clone, Debug)]
pub struct LimitHits(IntCounterVec);

impl LimitHits {
    /// Registers the metric with all limits of listener and program at 0, so that a rate includes the first hit.
    ///
    /// # Errors
    /// It is registered already.
    pub fn new(
        registry: &Registry,
        own: impl IntoIterator<Item = &'static str>,
    ) -> Result<Self, prometheus::Error> {
        let hits = IntCounterVec::new(
            Opts::new(
                "limit_hits_total",
                "Times that reaching a limit refused, closed or delayed something, by limit.",
            ),
            &["limit"],
        )?;
        for limit in listener::ALL.into_iter().chain(own) {
            hits.with_label_values(&[limit]);
        }
        registry.register(Box::new(hits.clone()))?;
        Ok(Self(hits))
    }

    /// Counts one hit.
    pub fn count(&self, limit: &'static str) {
        self.0.with_label_values(&[limit]).inc();
    }
}
