//! Which clients are let in, and under which identity.

use session_proto::error::reason_of;
use session_proto::v1::ErrorReason;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_svc::callers::Rpc;

use super::support::*;

#[tokio::test]
async fn without_a_certificate_of_the_right_authority_no_call_arrives() {
    let world = world(None).await;
    world.certificates.authority("stranger");
    world
        .certificates
        .issue("stranger", "guest", &format!("subjectAltName=URI:{EDGE}"));
    for certificate in [None, Some("guest")] {
        let channel = world.endpoint(certificate, "ca").connect_lazy();
        let status = within(call(&mut SessionServiceClient::new(channel), Rpc::GetSession))
            .await
            .unwrap_err();
        assert_eq!(reason_of(&status), None, "{certificate:?}: {status:?}");
    }
    // A client without TLS is not let in either.
    let plain = format!("http://127.0.0.1:{}", world.port);
    let channel = tonic::transport::Endpoint::try_from(plain)
        .unwrap()
        .connect_lazy();
    let status = within(call(&mut SessionServiceClient::new(channel), Rpc::GetSession))
        .await
        .unwrap_err();
    assert_eq!(reason_of(&status), None, "{status:?}");
}

#[tokio::test]
async fn without_a_list_every_verified_client_may_call_everything() {
    let world = world(None).await;
    for certificate in ["client", "edge", "orders"] {
        let mut client = world.client(certificate);
        for rpc in session_rpcs() {
            assert_eq!(
                within(may_call(&mut client, rpc)).await,
                Ok(()),
                "{certificate} {rpc:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_caller_is_its_spiffe_id_or_its_dns_names_and_never_its_common_name() {
    let list = [
        entry(EDGE, &["GetSession"]),
        entry(ORDERS, &["GetSession"]),
        entry("dns:localhost", &["ListSessions"]),
        entry("dns:client", &["GetSession"]),
    ]
    .concat();
    let world = world(Some(&list)).await;
    let certificates = &world.certificates;
    let second = "spiffe://prod.example/ns/auth/sa/other";
    for (name, extension) in [
        ("two", format!("subjectAltName=URI:{EDGE},URI:{second}")),
        ("other", format!("subjectAltName=URI:{second}")),
        (
            "many",
            "subjectAltName=DNS:nobody.internal,DNS:orders.internal".to_owned(),
        ),
        ("wildcard", "subjectAltName=DNS:*.internal".to_owned()),
        ("email", "subjectAltName=email:orders@internal".to_owned()),
    ] {
        certificates.issue("ca", name, &extension);
    }
    let unknown = Err(ErrorReason::ErrUnknownCaller);
    for (certificate, expected) in [
        ("edge", Ok(())),
        ("orders", Ok(())),
        ("many", Ok(())),
        ("client", unknown),
        ("two", unknown),
        ("other", unknown),
        ("wildcard", unknown),
        ("email", unknown),
    ] {
        let mut client = world.client(certificate);
        assert_eq!(
            within(may_call(&mut client, Rpc::GetSession)).await,
            expected,
            "{certificate}"
        );
    }
    assert_eq!(
        within(may_call(&mut world.client("edge"), Rpc::ListSessions)).await,
        Err(ErrorReason::ErrCallerNotAllowed),
        "a DNS name beside a SPIFFE ID does not count"
    );
}
