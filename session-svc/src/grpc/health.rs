//! `grpc.health.v1`: serving while the store answers.
//!
//! The empty name, "liveness" and the service's own name are served; liveness never depends on the store.

use session_proto::v1::session_service_server::SERVICE_NAME;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

/// Says that this process answers at all.
const LIVENESS: &str = "liveness";

/// Says that this process can do its work.
const READINESS: &str = "readiness";

/// The health of this process; clones share it.
#[derive(Clone)]
pub struct Health {
    reporter: HealthReporter,
}

impl Health {
    /// Alive, and not serving until `serving` says so.
    pub async fn new() -> Self {
        let reporter = HealthReporter::new();
        reporter
            .set_service_status(LIVENESS, ServingStatus::Serving)
            .await;
        let health = Self { reporter };
        health.serving(false).await;
        health
    }

    /// Says whether calls are answered with more than "unavailable".
    pub(crate) async fn serving(&self, serving: bool) {
        let status = if serving {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for name in ["", SERVICE_NAME, READINESS] {
            self.reporter.set_service_status(name, status).await;
        }
    }

    /// The service that answers health checks.
    pub(super) fn service(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService::from_health_reporter(self.reporter.clone()))
    }
}
