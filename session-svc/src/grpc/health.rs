//! `grpc.health.v1`: serving while the store answers.
//!
//! The empty name, "readiness", "liveness" and the service's own name are served; liveness never depends on the store.
//!
//! tonic's service answers, but ends `Watch` for an unknown name, which has to stay open.

use std::pin::Pin;

use futures_util::Stream;
use session_proto::v1::session_service_server::SERVICE_NAME;
use tokio_stream::StreamExt as _;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_check_response::ServingStatus as WireStatus;
use tonic_health::pb::health_server::{Health as HealthApi, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_health::server::{HealthReporter, HealthService};

use super::MAX_REQUEST_BYTES;

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
    pub(super) fn service(&self) -> HealthServer<Self> {
        HealthServer::new(self.clone())
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_REQUEST_BYTES)
    }

    fn statuses(&self) -> HealthService {
        HealthService::from_health_reporter(self.reporter.clone())
    }
}

#[tonic::async_trait]
impl HealthApi for Health {
    async fn check(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<HealthCheckResponse>, Status> {
        self.statuses().check(request).await
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<Self::WatchStream>, Status> {
        let stream: Self::WatchStream = match self.statuses().watch(request).await {
            Ok(known) => Box::pin(known.into_inner()),
            // health.proto: the server sends SERVICE_UNKNOWN and does not end the call. No name becomes known later.
            Err(unknown) if unknown.code() == Code::NotFound => {
                let status = WireStatus::ServiceUnknown.into();
                let first = tokio_stream::once(Ok(HealthCheckResponse { status }));
                Box::pin(first.chain(tokio_stream::pending()))
            }
            Err(error) => return Err(error),
        };
        Ok(tonic::Response::new(stream))
    }
}
