//! The program itself: its settings, its log, its files.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use session_proto::v1::ErrorReason;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_svc::callers::Rpc;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::support::*;
use crate::certificates::Certificates;

struct Program {
    child: Child,
    said: Arc<Mutex<Vec<Value>>>,
}

fn command(certificates: &Certificates, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_session-svc"));
    command
        .env_clear()
        .envs([
            ("OIDC_ISSUER_URL", "https://issuer.example"),
            ("OIDC_CLIENT_ID", "client"),
            ("OIDC_CLIENT_SECRET", "a-secret-of-more-than-32-characters"),
            ("SESSION_LISTEN", "127.0.0.1:0"),
            ("SESSION_ADMIN_LISTEN", "off"),
            ("LOG_FORMAT", "json"),
        ])
        .env("SESSION_TLS_CERT_FILE", certificates.path("server.pem"))
        .env("SESSION_TLS_KEY_FILE", certificates.path("server.key"))
        .env("SESSION_CLIENT_CA_FILE", certificates.path("ca.pem"))
        .env("SESSION_CALLERS", certificates.path("callers.toml"))
        .envs(settings.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Program {
    fn start(certificates: &Certificates, settings: &[(&str, &str)]) -> Self {
        let mut child = command(certificates, settings).spawn().unwrap();
        let said = Arc::<Mutex<Vec<Value>>>::default();
        let (lines, reported) = (
            BufReader::new(child.stdout.take().unwrap()).lines(),
            Arc::clone(&said),
        );
        std::thread::spawn(move || {
            for line in lines {
                reported
                    .lock()
                    .unwrap()
                    .push(serde_json::from_str(&line.unwrap()).unwrap());
            }
        });
        Self { child, said }
    }

    async fn wait_for(&self, matches: impl Fn(&Value) -> bool) -> Value {
        within(async {
            loop {
                let found = self
                    .said
                    .lock()
                    .unwrap()
                    .iter()
                    .find(|record| matches(record))
                    .cloned();
                match found {
                    Some(record) => return record,
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        })
        .await
    }

    async fn client(&self, certificates: &Certificates, name: &str) -> Client {
        let listening = self
            .wait_for(|record| record["message"] == "answering gRPC")
            .await;
        let address = listening["address"].as_str().unwrap();
        let read = |file: &str| std::fs::read(certificates.path(file)).unwrap();
        let tls = ClientTlsConfig::new()
            .domain_name("localhost")
            .ca_certificate(Certificate::from_pem(read("ca.pem")))
            .identity(Identity::from_pem(
                read(&format!("{name}.pem")),
                read(&format!("{name}.key")),
            ));
        let endpoint = Endpoint::try_from(format!("https://{address}")).unwrap();
        SessionServiceClient::new(endpoint.tls_config(tls).unwrap().connect_lazy())
    }

    /// Stops the program as Kubernetes does, and checks that it exits with success.
    async fn stop(mut self) -> Vec<Value> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        let status = within(async {
            loop {
                match self.child.try_wait().unwrap() {
                    Some(status) => return status,
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        })
        .await;
        assert!(status.success(), "{status}");
        self.wait_for(|record| record["message"] == "stopped").await;
        self.said.lock().unwrap().clone()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn certificates(list: &str) -> Certificates {
    let certificates = tokio::task::spawn_blocking(|| {
        let certificates = Certificates::make();
        certificates.issue("ca", "edge", &format!("subjectAltName=URI:{EDGE}"));
        certificates
    })
    .await
    .unwrap();
    std::fs::write(certificates.path("callers.toml"), list).unwrap();
    certificates
}

#[tokio::test]
async fn a_wrong_list_keeps_the_program_from_starting_and_every_mistake_is_named() {
    let list = [entry("edge", &["GetSesion"]), entry(EDGE, &[])].concat();
    let certificates = certificates(&list).await;
    let mut child = command(&certificates, &[("SESSION_ROLLING_DURATION", "soon")])
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(78));
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    for part in [
        "SESSION_CALLERS (--callers)",
        "callers.toml, line 2: identity \"edge\"",
        "callers.toml, line 3: unknown rpc \"GetSesion\": did you mean \"GetSession\"?",
        "callers.toml, line 6: rpcs has to be a list",
        "SESSION_ROLLING_DURATION",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[tokio::test]
async fn a_running_program_records_calls_and_follows_its_list() {
    let certificates = certificates(&entry(EDGE, &["*"])).await;
    let program = Program::start(&certificates, &[]);
    let mut client = program.client(&certificates, "edge").await;
    assert_eq!(within(may_call(&mut client, Rpc::EndSessions)).await, Ok(()));
    let record = program
        .wait_for(|record| record["event"] == "api.call" && record["caller"] == EDGE)
        .await;
    assert_eq!(record["rpc.method"], "session.v1.SessionService/EndSessions");
    assert_eq!(record["reason"], "ERR_INVALID_ARGUMENT");
    std::fs::write(certificates.path("callers.toml"), entry(EDGE, &["GetSession"])).unwrap();
    until(
        &mut client,
        Rpc::EndSessions,
        Err(ErrorReason::ErrCallerNotAllowed),
    )
    .await;
    assert_eq!(within(may_call(&mut client, Rpc::GetSession)).await, Ok(()));
    program.stop().await;
}

#[tokio::test]
async fn an_operator_may_leave_reads_out_of_the_log_and_turn_the_audit_log_off_but_not_filter_it() {
    for (variables, read, is_audited) in [
        (
            [("RUST_LOG", "info,audit::read=off"), ("AUDIT_LOG", "stdout")],
            false,
            true,
        ),
        ([("RUST_LOG", "info"), ("AUDIT_LOG", "off")], true, false),
        (
            [
                (
                    "RUST_LOG",
                    "warn,session_svc::start=info,chassis::service=info,audit::record=off",
                ),
                ("AUDIT_LOG", "stdout"),
            ],
            false,
            true,
        ),
    ] {
        let certificates = certificates(&entry(EDGE, &["*"])).await;
        let program = Program::start(&certificates, &variables);
        let mut client = program.client(&certificates, "edge").await;
        for rpc in [Rpc::GetSession, Rpc::EndSession] {
            assert_eq!(within(may_call(&mut client, rpc)).await, Ok(()));
        }
        let said = program.stop().await;
        let of = |target: &str| said.iter().filter(|record| record["target"] == target).count();
        assert_eq!(of("audit::read") > 0, read, "{variables:?}");
        let events: Vec<&str> = said
            .iter()
            .filter(|record| record["target"] == "audit")
            .filter_map(|record| record["event"].as_str())
            // The list of callers and the certificates, read once more.
            .filter(|event| *event != "configuration.reload")
            .collect();
        let expected: &[&str] = match is_audited {
            true => &["process.start", "api.call", "process.stop"],
            false => &[],
        };
        assert_eq!(events, expected, "{variables:?}");
    }
}
