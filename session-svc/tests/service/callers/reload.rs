//! Certificates and lists that change during calls.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use chassis::clock::{Clock as _, SystemClock};
use session_proto::client::{ClientSettings, ClientTls, SessionClient};
use session_proto::error::reason_of;
use session_proto::v1::session_event::Kind;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason, SessionEvent};
use session_svc::callers::Rpc;
use tonic::{Code, Status, Streaming};

use super::log::log;
use super::support::*;

async fn watch(client: &mut Client) -> Streaming<SessionEvent> {
    let request = v1::WatchSessionsRequest::default();
    let mut stream = within(client.watch_sessions(request)).await.unwrap().into_inner();
    beat(&mut stream).await;
    stream
}

async fn beat(stream: &mut Streaming<SessionEvent>) {
    let event = within(stream.message()).await.unwrap().unwrap();
    assert_eq!(event.kind(), Kind::Heartbeat);
}

/// The status that ends a watch.
async fn ending(stream: &mut Streaming<SessionEvent>) -> Status {
    within(async {
        loop {
            if let Err(status) = stream.message().await {
                return status;
            }
        }
    })
    .await
}

/// Whether a call on a new connection with this certificate and authority succeeds.
async fn gets_in(world: &World, certificate: &str, authority: &str) -> bool {
    let channel = world.endpoint(Some(certificate), authority).connect_lazy();
    let answer = call(&mut SessionServiceClient::new(channel), Rpc::GetSession).await;
    reason_of(&answer.unwrap_err()) == Some(ErrorReason::ErrInvalidArgument)
}

pub(crate) async fn until_in(world: &World, certificate: &str, authority: &str, expected: bool) {
    within(async {
        while gets_in(world, certificate, authority).await != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_new_server_certificate_serves_the_next_connection_and_running_streams_go_on() {
    let world = world(None).await;
    let mut client = world.client("edge");
    let mut stream = watch(&mut client).await;
    world.certificates.authority("next");
    world
        .certificates
        .issue("next", "renewed", "subjectAltName=IP:127.0.0.1,DNS:localhost");
    assert!(!gets_in(&world, "edge", "next").await);
    // Key and certificate are two files. Until both match, the old pair stays in use.
    world.replace("server.key", &world.read("renewed.key"));
    world.replace("server.pem", &world.read("renewed.pem"));
    until_in(&world, "edge", "next", true).await;
    assert!(!gets_in(&world, "edge", "ca").await);
    beat(&mut stream).await;
    assert_eq!(within(may_call(&mut client, Rpc::GetSession)).await, Ok(()));
}

#[tokio::test]
async fn a_client_tells_once_what_becomes_of_its_changed_files() {
    let world = world(None).await;
    let path = |name| world.certificates.path(name);
    let files = ClientTls::from_files(path("ca.pem"), Some((path("edge.pem"), path("edge.key"))));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let client = SessionClient::new(ClientSettings {
        tls: Some(files.unwrap()),
        resolve_interval: Duration::from_millis(20),
        on_renewal: Some(Arc::new(move |outcome| tell.send(outcome.is_ok()).unwrap())),
        ..ClientSettings::new([format!("https://localhost:{}", world.port)])
    });
    let (client, read) = (client.unwrap(), v1::GetSessionRequest::default());
    let answer = client.get_session(read.clone()).await.unwrap_err();
    assert_eq!(answer.reason, ErrorReason::ErrInvalidArgument);

    world.replace("edge.pem", b"no certificate");
    assert_eq!(within(told.recv()).await, Some(false));
    world.replace("edge.pem", &world.read("orders.pem"));
    assert_eq!(
        within(told.recv()).await,
        Some(false),
        "another's key, which is told too"
    );
    // The file is read repeatedly meanwhile, without another report.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(told.is_empty());
    world
        .certificates
        .issue("ca", "edge2", "subjectAltName=DNS:edge.internal");
    world.replace("edge.key", &world.read("edge2.key"));
    world.replace("edge.pem", &world.read("edge2.pem"));
    while !within(told.recv()).await.unwrap() {}
    // Worker connections use the certificates too, without reporting.
    let worker = client.for_worker();
    let answer = worker.get_session(read).await.unwrap_err();
    assert_eq!(answer.reason, ErrorReason::ErrInvalidArgument);
    assert!(told.is_empty());
}

#[tokio::test]
async fn files_that_cannot_be_used_change_nothing() {
    let world = world(None).await;
    let mut client = world.client("edge");
    let mut stream = watch(&mut client).await;
    let path = world.certificates.text("server.pem");
    let refused = |record: &serde_json::Value| {
        record["message"] == "the changed file is refused: the old value stays in use"
            && record["path"] == path.as_str()
    };
    let good = world.read("server.pem");
    world.replace("server.pem", b"no certificate");
    log().wait_for(1, refused).await;
    world.replace("server.pem", &good);
    world.replace("clients.pem", b"");
    log().wait_for(2, refused).await;
    assert!(gets_in(&world, "edge", "ca").await);
    beat(&mut stream).await;
}

#[tokio::test]
async fn whom_a_new_authority_does_not_know_has_to_go_and_others_stay() {
    let world = world(None).await;
    let (mut leaving, mut staying) = (world.client("orders"), world.client("edge"));
    world.certificates.authority("next");
    world
        .certificates
        .issue("next", "newcomer", "subjectAltName=DNS:new.internal");
    // Both authorities, as during a change of authority.
    let both = [world.read("ca.pem"), world.read("next.pem")].concat();
    world.replace("clients.pem", &both);
    until_in(&world, "newcomer", "ca", true).await;
    let mut newcomer = world.client("newcomer");
    let mut old_stream = watch(&mut leaving).await;
    let mut new_stream = watch(&mut newcomer).await;
    assert_eq!(within(may_call(&mut staying, Rpc::GetSession)).await, Ok(()));

    world.replace("clients.pem", &world.read("next.pem"));
    let status = ending(&mut old_stream).await;
    assert_eq!(status.code(), Code::Unauthenticated);
    assert_eq!(reason_of(&status), Some(ErrorReason::ErrUnknownCaller));
    until_in(&world, "orders", "ca", false).await;
    let status = within(call(&mut leaving, Rpc::GetSession)).await.unwrap_err();
    assert_eq!(
        reason_of(&status),
        None,
        "the old connection takes no call: {status:?}"
    );
    beat(&mut new_stream).await;
    assert_eq!(within(may_call(&mut newcomer, Rpc::GetSession)).await, Ok(()));
}

#[tokio::test]
async fn a_connection_does_not_outlive_its_certificate() {
    let world = world(None).await;
    expiring(&world, "brief", 10);
    let mut client = world.client("brief");
    let mut stream = watch(&mut client).await;
    let status = ending(&mut stream).await;
    assert_eq!(reason_of(&status), Some(ErrorReason::ErrUnknownCaller));
    until_in(&world, "brief", "ca", false).await;
    let status = within(call(&mut client, Rpc::GetSession)).await.unwrap_err();
    assert_eq!(reason_of(&status), None, "{status:?}");
}

/// Issues a certificate that expires after these seconds, which `openssl req` cannot do.
fn expiring(world: &World, name: &str, secs: u64) {
    let file = |name: &str| world.certificates.text(name);
    let config = "[ca]\ndefault_ca = c\n[c]\ndatabase = index.txt\nnew_certs_dir = .\nrand_serial = yes\n\
                  default_md = sha256\npolicy = p\nx509_extensions = x\n[p]\ncommonName = supplied\n\
                  [x]\nsubjectAltName = DNS:brief.internal\n";
    std::fs::write(file("ca.cnf"), config).unwrap();
    std::fs::write(file("index.txt"), "").unwrap();
    let (key, request, certificate) = (
        file(&format!("{name}.key")),
        file(&format!("{name}.csr")),
        file(&format!("{name}.pem")),
    );
    let (subject, ca, ca_key, config) = (
        format!("/CN={name}"),
        file("ca.pem"),
        file("ca.key"),
        file("ca.cnf"),
    );
    let new = [
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ];
    let options = ["-keyout", &key, "-out", &request, "-subj", &subject];
    run(world, "openssl", &[&new[..], &options[..]].concat());
    let end = format!("@{}", SystemClock.now_secs() + secs);
    let end = run(world, "date", &["-u", "-d", &end, "+%Y%m%d%H%M%SZ"]);
    let signed = [
        "ca",
        "-batch",
        "-notext",
        "-config",
        &config,
        "-cert",
        &ca,
        "-keyfile",
        &ca_key,
        "-in",
        &request,
        "-out",
        &certificate,
        "-startdate",
        "20200101000000Z",
        "-enddate",
        end.trim(),
    ];
    run(world, "openssl", &signed);
}

fn run(world: &World, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(world.certificates.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_changed_list_counts_from_the_next_call_and_the_next_event_on() {
    let may_all = [entry(EDGE, &["*"]), entry(ORDERS, &["*"])].concat();
    let world = world(Some(&may_all)).await;
    let (mut edge, mut orders) = (world.client("edge"), world.client("orders"));
    let (mut kept, mut lost, mut unlisted) = (
        watch(&mut edge).await,
        watch(&mut orders).await,
        watch(&mut orders).await,
    );
    let may_read = [entry(EDGE, &["*"]), entry(ORDERS, &["GetSession"])].concat();
    world.replace("callers.toml", may_read.as_bytes());
    let status = ending(&mut lost).await;
    assert_eq!(status.code(), Code::PermissionDenied);
    assert_eq!(reason_of(&status), Some(ErrorReason::ErrCallerNotAllowed));
    assert_eq!(
        reason_of(&ending(&mut unlisted).await),
        Some(ErrorReason::ErrCallerNotAllowed)
    );
    until(
        &mut orders,
        Rpc::EndSessions,
        Err(ErrorReason::ErrCallerNotAllowed),
    )
    .await;
    assert_eq!(within(may_call(&mut orders, Rpc::GetSession)).await, Ok(()));
    world.replace("callers.toml", entry(EDGE, &["*"]).as_bytes());
    until(&mut orders, Rpc::GetSession, Err(ErrorReason::ErrUnknownCaller)).await;
    beat(&mut kept).await;
}

#[tokio::test]
async fn a_wrong_list_is_told_and_the_old_one_stays_in_use() {
    let list = entry(EDGE, &["GetSession"]);
    let world = world(Some(&list)).await;
    let mut edge = world.client("edge");
    assert_eq!(within(may_call(&mut edge, Rpc::GetSession)).await, Ok(()));
    let path = world.certificates.text("callers.toml");
    let refused = |record: &serde_json::Value| record["level"] == "WARN" && record["path"] == path.as_str();
    let wrong = [entry(EDGE, &["GetSesion"]), entry("everybody", &["*"])].concat();
    world.replace("callers.toml", wrong.as_bytes());
    let reported = log().wait_for(1, refused).await;
    assert_eq!(reported[0]["setting"], "SESSION_CALLERS");
    let error = reported[0]["error"].as_str().unwrap();
    for part in [
        "line 3: unknown rpc \"GetSesion\": did you mean \"GetSession\"?",
        "line 5: identity \"everybody\"",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(within(may_call(&mut edge, Rpc::GetSession)).await, Ok(()));
    assert_eq!(
        within(may_call(&mut edge, Rpc::ListSessions)).await,
        Err(ErrorReason::ErrCallerNotAllowed)
    );
    world.replace("callers.toml", entry(EDGE, &["ListSessions"]).as_bytes());
    until(&mut edge, Rpc::ListSessions, Ok(())).await;
}
