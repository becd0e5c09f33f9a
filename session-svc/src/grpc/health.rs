//! `grpc.health.v1`: SERVING while this process is ready.
//!
//! The names are the empty name, "readiness", "liveness" and the service's own. Liveness never depends on the
//! store. `List` is implemented here, because tonic's messages lack it.

use std::collections::HashMap;
use std::future::ready;

use axum::extract::Request;
use axum::response::Response;
use futures_util::stream::{BoxStream, StreamExt as _, once, pending};
use session_proto::v1::session_service_server::SERVICE_NAME;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tonic::codec::CompressionEncoding;
use tonic::codegen::BoxFuture;
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health as HealthApi, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_prost::ProstCodec;

use super::MAX_REQUEST_BYTES;

/// The path of the method that tonic lacks.
pub(super) const LIST: &str = "/grpc.health.v1.Health/List";

/// The name for the health of the process itself.
const LIVENESS: &str = "liveness";

/// Every name with a status.
const NAMES: [&str; 4] = ["", SERVICE_NAME, "readiness", LIVENESS];

/// The health of this process; clones share it.
#[derive(Clone)]
pub struct Health {
    ready: watch::Receiver<bool>,
}

impl Health {
    /// SERVING while `ready` is true.
    pub fn new(ready: watch::Receiver<bool>) -> Self {
        Self { ready }
    }

    /// The service that answers health checks.
    pub(super) fn service(&self) -> HealthServer<Self> {
        HealthServer::new(self.clone())
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_REQUEST_BYTES)
    }

    /// Answers a call of `List`.
    pub(super) async fn list(self, request: Request) -> Response {
        let mut grpc = Grpc::new(ProstCodec::default())
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_REQUEST_BYTES);
        grpc.unary(self, request).await.map(axum::body::Body::new)
    }

    fn status(&self, name: &str) -> HealthCheckResponse {
        let status = match name {
            LIVENESS => ServingStatus::Serving,
            known if NAMES.contains(&known) => serving(*self.ready.borrow()),
            _ => ServingStatus::ServiceUnknown,
        };
        answer(status)
    }
}

fn serving(ready: bool) -> ServingStatus {
    if ready {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    let status = status.into();
    HealthCheckResponse { status }
}

#[tonic::async_trait]
impl HealthApi for Health {
    async fn check(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<HealthCheckResponse>, Status> {
        let name = request.into_inner().service;
        if !NAMES.contains(&name.as_str()) {
            return Err(Status::new(Code::NotFound, "service not registered"));
        }
        Ok(tonic::Response::new(self.status(&name)))
    }

    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<Self::WatchStream>, Status> {
        let name = request.into_inner().service;
        let stream = if name != LIVENESS && NAMES.contains(&name.as_str()) {
            let ready = WatchStream::new(self.ready.clone());
            ready.map(|ready| Ok(answer(serving(ready)))).boxed()
        } else {
            // health.proto: the server sends SERVICE_UNKNOWN and does not end the call. No name becomes known later.
            let status = self.status(&name);
            once(ready(Ok(status))).chain(pending()).boxed()
        };
        Ok(tonic::Response::new(stream))
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthListRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthListResponse {
    #[prost(map = "string, message", tag = "1")]
    statuses: HashMap<String, HealthCheckResponse>,
}

impl UnaryService<HealthListRequest> for Health {
    type Response = HealthListResponse;
    type Future = BoxFuture<tonic::Response<HealthListResponse>, Status>;

    fn call(&mut self, _: tonic::Request<HealthListRequest>) -> Self::Future {
        let statuses = NAMES.map(|name| (name.to_owned(), self.status(name))).into();
        Box::pin(async { Ok(tonic::Response::new(HealthListResponse { statuses })) })
    }
}
