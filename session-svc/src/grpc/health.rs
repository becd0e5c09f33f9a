//! `grpc.health.v1`: serving while this process is ready.
//!
//! The empty name, "readiness", "liveness" and the service's own name are served; liveness never depends on the store.

use session_proto::v1::session_service_server::SERVICE_NAME;
use tokio::sync::watch;
use tonic::codec::CompressionEncoding;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use super::MAX_REQUEST_BYTES;

/// Says that this process answers at all.
const LIVENESS: &str = "liveness";

/// The names that are served while the process is ready.
const READINESS: [&str; 3] = ["", SERVICE_NAME, "readiness"];

/// The service that answers health checks: serving while `ready` says so. Needs a tokio runtime, which follows that.
pub async fn health_service(mut ready: watch::Receiver<bool>) -> HealthServer<HealthService> {
    let reporter = HealthReporter::new();
    reporter
        .set_service_status(LIVENESS, ServingStatus::Serving)
        .await;
    let is_ready = *ready.borrow_and_update();
    report(&reporter, is_ready).await;
    let reported = reporter.clone();
    tokio::spawn(async move {
        while ready.changed().await.is_ok() {
            let is_ready = *ready.borrow_and_update();
            report(&reported, is_ready).await;
        }
    });
    HealthServer::new(HealthService::from_health_reporter(reporter))
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MAX_REQUEST_BYTES)
}

async fn report(reporter: &HealthReporter, is_ready: bool) {
    let status = match is_ready {
        true => ServingStatus::Serving,
        false => ServingStatus::NotServing,
    };
    for name in READINESS {
        reporter.set_service_status(name, status).await;
    }
}
