//! `grpc.health.v1`: serving while the store answers.
//!
//! The empty name, "liveness" and the service's own name are served; liveness never depends on the store. `List` is here, since
//! tonic's service is from before there was one.

use std::collections::HashMap;

use axum::extract::Request;
use axum::response::Response;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
};
use session_proto::v1::session_service_server::SERVICE_NAME;
use tonic::codegen::BoxFuture;
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health as _, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_health::server::{HealthReporter, HealthService};
use tonic_prost::ProstCodec;

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
    pub(super) fn service(&self) -> HealthServer<HealthService> {
        HealthServer::new(self.statuses())
    }

    /// Answers a call of `List`.
    pub(super) async fn list(self, request: Request) -> Response {
        let mut grpc = Grpc::new(ProstCodec::default());
        grpc.unary(self, request).await.map(axum::body::Body::new)
    }

    fn statuses(&self) -> HealthService {
        HealthService::from_health_reporter(self.reporter.clone())
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
