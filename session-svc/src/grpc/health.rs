//! `grpc.health.v1`: serving while the store answers.
//!
//! The empty name, "readiness", "liveness" and the service's own name are served; liveness never depends on the store.
//!
//! tonic's service answers `Check`. `List` is here, which it lacks, and `Watch`, which it ends for an unknown name.

use std::collections::HashMap;
use std::pin::Pin;

use axum::extract::Request;
use axum::response::Response;
use futures_util::Stream;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
};
use session_proto::v1::session_service_server::SERVICE_NAME;
use tokio_stream::StreamExt as _;
use tonic::codec::CompressionEncoding;
use tonic::codegen::BoxFuture;
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_check_response::ServingStatus as WireStatus;
use tonic_health::pb::health_server::{Health as HealthApi, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_health::server::{HealthReporter, HealthService};
use tonic_prost::ProstCodec;

use super::MAX_REQUEST_BYTES;

/// The path of the method that tonic lacks.
pub(super) const LIST: &str = "/grpc.health.v1.Health/List";

/// Says that this process answers at all.
const LIVENESS: &str = "liveness";

/// Says that this process can do its work.
const READINESS: &str = "readiness";

/// Every name with a status.
const NAMES: [&str; 4] = ["", SERVICE_NAME, READINESS, LIVENESS];

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

    /// Answers a call of `List`.
    pub(super) async fn list(self, request: Request) -> Response {
        let mut grpc = Grpc::new(ProstCodec::default())
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_REQUEST_BYTES);
        grpc.unary(self, request).await.map(axum::body::Body::new)
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
        let checks = self.statuses();
        Box::pin(async move {
            let mut statuses = HashMap::new();
            for name in NAMES {
                let service = name.to_owned();
                let asked = tonic::Request::new(HealthCheckRequest { service });
                match checks.check(asked).await {
                    Ok(status) => _ = statuses.insert(name.to_owned(), status.into_inner()),
                    Err(unknown) if unknown.code() == Code::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(tonic::Response::new(HealthListResponse { statuses }))
        })
    }
}

/// The descriptors of `grpc.health.v1` as tonic has them, and with `List`.
pub(super) fn descriptors() -> Result<FileDescriptorSet, prost::DecodeError> {
    let mut set = FileDescriptorSet::decode(tonic_health::pb::FILE_DESCRIPTOR_SET)?;
    for file in set
        .file
        .iter_mut()
        .filter(|file| file.package() == "grpc.health.v1")
    {
        let of = |name: &str| format!(".grpc.health.v1.{name}");
        for service in &mut file.service {
            service.method.push(MethodDescriptorProto {
                name: Some("List".to_owned()),
                input_type: Some(of("HealthListRequest")),
                output_type: Some(of("HealthListResponse")),
                ..MethodDescriptorProto::default()
            });
        }
        file.message_type.push(message("HealthListRequest", Vec::new()));
        let entry = "HealthListResponse.StatusesEntry";
        let statuses = field("statuses", 1, Some(of(entry)), Label::Repeated);
        let mut response = message("HealthListResponse", vec![statuses]);
        response.nested_type.push(DescriptorProto {
            options: Some(MessageOptions {
                map_entry: Some(true),
                ..MessageOptions::default()
            }),
            ..message(
                "StatusesEntry",
                vec![
                    field("key", 1, None, Label::Optional),
                    field("value", 2, Some(of("HealthCheckResponse")), Label::Optional),
                ],
            )
        });
        file.message_type.push(response);
    }
    Ok(set)
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto {
        name: Some(name.to_owned()),
        field,
        ..DescriptorProto::default()
    }
}

/// A field that holds a message of this name, or a text.
fn field(name: &str, number: i32, message: Option<String>, label: Label) -> FieldDescriptorProto {
    let kind = if message.is_some() {
        Type::Message
    } else {
        Type::String
    };
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(kind.into()),
        type_name: message,
        ..FieldDescriptorProto::default()
    }
}
