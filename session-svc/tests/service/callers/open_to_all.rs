//! Health and reflection over mutual TLS: open to every verified client, listed or not.

use session_svc::callers::Rpc;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};

use super::support::*;

#[tokio::test]
async fn health_is_told_to_every_verified_client() {
    let world = world(Some(&entry(EDGE, &["*"]))).await;
    let mut client = HealthClient::new(world.channel("client"));
    for service in ["", "liveness", "readiness", "session.v1.SessionService"] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        within(async {
            loop {
                let answer = client.check(request.clone()).await.unwrap().into_inner();
                if answer.status() == ServingStatus::Serving {
                    break;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    for service in ["session.v1.Nobody", "Liveness", "session.v1.SessionService/"] {
        let unknown = HealthCheckRequest {
            service: service.to_owned(),
        };
        let refused = within(client.check(unknown.clone())).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
        let mut stream = within(client.watch(unknown)).await.unwrap().into_inner();
        let first = within(stream.message()).await.unwrap().unwrap();
        assert_eq!(first.status(), ServingStatus::ServiceUnknown, "{service}");
        // The call continues: another call is answered meanwhile, and this one has not ended.
        within(client.check(HealthCheckRequest::default())).await.unwrap();
        let next = std::pin::pin!(stream.message());
        assert!(
            futures_util::poll!(next).is_pending(),
            "{service}: the watch has ended"
        );
    }
    let own = HealthCheckRequest {
        service: "session.v1.SessionService".to_owned(),
    };
    let mut stream = within(client.watch(own)).await.unwrap().into_inner();
    let first = within(stream.message()).await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
}

#[tokio::test]
async fn reflection_lists_the_services_in_both_versions() {
    let world = world(Some(&entry(EDGE, &["*"]))).await;
    let mut listed = Vec::new();
    {
        use v1::server_reflection_request::MessageRequest;
        use v1::server_reflection_response::MessageResponse;
        let request = v1::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut client = v1::server_reflection_client::ServerReflectionClient::new(world.channel("client"));
        let answers = client.server_reflection_info(tokio_stream::once(request));
        let mut answers = within(answers).await.unwrap().into_inner();
        let answer = within(answers.message()).await.unwrap().unwrap();
        let Some(MessageResponse::ListServicesResponse(services)) = answer.message_response else {
            panic!("no list of services");
        };
        listed.push(
            services
                .service
                .into_iter()
                .map(|one| one.name)
                .collect::<Vec<_>>(),
        );
    }
    {
        use v1alpha::server_reflection_request::MessageRequest;
        use v1alpha::server_reflection_response::MessageResponse;
        let request = v1alpha::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::FileContainingSymbol(
                Rpc::GetSession.name().replace('/', "."),
            )),
        };
        let mut client =
            v1alpha::server_reflection_client::ServerReflectionClient::new(world.channel("client"));
        let answers = client.server_reflection_info(tokio_stream::once(request));
        let mut answers = within(answers).await.unwrap().into_inner();
        let answer = within(answers.message()).await.unwrap().unwrap();
        let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response else {
            panic!("no file");
        };
        assert!(!files.file_descriptor_proto.is_empty());
    }
    for service in ["session.v1.SessionService", "grpc.health.v1.Health"] {
        assert!(listed[0].iter().any(|name| name == service), "{listed:?}");
    }
}
