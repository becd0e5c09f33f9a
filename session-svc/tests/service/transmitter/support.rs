//! Services that push events to receivers, and the documents that receivers verify events with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chassis::clock::ManualClock;
use chassis::readiness::Readiness;
use chassis::runtime::{Runtime, Workers};
use chassis::secret::{Reloading, Secret};
use prometheus::Registry;
use serde_json::Value;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_svc::sessions::SessionLimits;
use session_svc::settings::signals;
use session_svc::start::{AccessPolicy, ServiceParts, serve};
use session_svc::store::KeyValueStore;
use session_svc::store::embedded::EmbeddedStore;
use session_svc::vault::KeyRing;
use ssf::{SecurityEventToken, Transmitter, TransmitterSettings};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use crate::support::*;

pub(crate) const REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";

/// The settings of all replicas: keys and receivers.
pub(crate) struct Setting {
    directory: TempDir,
    pub(crate) clock: ManualClock,
    pub(crate) provider: TestProvider,
    pub(crate) limits: SessionLimits,
    /// The URL with the published metadata and keys.
    pub(crate) issuer: String,
    publisher: Option<TcpListener>,
    receivers: String,
    pub(crate) queued_max: Option<usize>,
    /// The key the next replica seals with.
    pub(crate) key: &'static str,
}

impl Setting {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let key = STANDARD.encode(key.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        std::fs::write(directory.path().join("key.pem"), pem).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self {
            issuer: format!("http://{}/ssf", listener.local_addr().unwrap()),
            publisher: Some(listener),
            directory,
            clock: ManualClock::new(START_MS),
            provider: TestProvider::new(),
            limits: limits(),
            receivers: String::new(),
            queued_max: None,
            key: "ab",
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// One more receiver, with these lines in its table.
    pub(crate) fn pushed(mut self, id: &str, url: &str, lines: &str) -> Self {
        self.receivers.push_str(&format!(
            "[[receiver]]\nid = \"{id}\"\naudience = \"https://{id}.example\"\nurl = \"{url}\"\n{lines}\n"
        ));
        self
    }

    /// The file of receivers.
    fn text(&self) -> String {
        let key = self.directory.path().join("key.pem");
        format!(
            "issuer = \"{}\"\nsigning_key_file = {key:?}\n{}",
            self.issuer, self.receivers
        )
    }

    /// The file of receivers, written.
    pub(crate) fn file(&self) -> PathBuf {
        let path = self.directory.path().join("receivers.toml");
        std::fs::write(&path, self.text()).unwrap();
        path
    }

    /// A store in memory, under the clock.
    pub(crate) fn memory(&self) -> EmbeddedStore {
        EmbeddedStore::in_memory(Arc::new(self.clock.clone()), 10_000).unwrap()
    }

    /// A replica on a store.
    pub(crate) async fn replica(&mut self, store: Arc<dyn KeyValueStore>) -> Replica {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let mut receivers = signals::parse(&self.text()).unwrap().receivers.unwrap();
        receivers.queued_max = self.queued_max.unwrap_or(receivers.queued_max);
        if let Some(publisher) = self.publisher.take() {
            tokio::spawn(publish(
                publisher,
                receivers.metadata(),
                receivers.signer.public_jwks(),
            ));
        }
        let parts = ServiceParts {
            transmitters: None,
            receivers: Some(receivers),
            store,
            keys: Reloading::new(KeyRing::parse(&[Secret::new(self.key.repeat(32))]).unwrap()),
            provider: self.provider.clone(),
            lifetime: lifetime(),
            limits: self.limits,
        };
        let (shutdown, metrics) = (CancellationToken::new(), Registry::new());
        let runtime = Runtime {
            clock: Arc::new(self.clock.clone()),
            shutdown: shutdown.clone(),
            readiness: Readiness::new(),
            metrics: metrics.clone(),
            workers: Workers::here(),
        };
        let serving = tokio::spawn(async move {
            serve(AccessPolicy::anyone(), parts, listener, runtime)
                .await
                .unwrap();
        });
        Replica {
            client: SessionServiceClient::connect(address).await.unwrap(),
            metrics,
            shutdown,
            serving,
        }
    }

    /// Verifies a token as the receiver with this id does, with our published keys.
    pub(crate) async fn verified(&self, id: &str, raw: &str) -> SecurityEventToken {
        let transmitter = Transmitter::new(TransmitterSettings::new(&self.issuer)).unwrap();
        let audiences = [format!("https://{id}.example")];
        let now = self.now_secs();
        transmitter.verify(raw, &audiences, now).await.unwrap()
    }

    pub(crate) fn now_secs(&self) -> u64 {
        use chassis::clock::Clock as _;
        self.clock.now_ms() / 1_000
    }
}

/// One service; stopped when dropped.
pub(crate) struct Replica {
    pub(crate) client: Client,
    pub(crate) metrics: Registry,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Serves metadata and keys as files, as an operator publishes them.
async fn publish(listener: TcpListener, metadata: Value, keys: Value) {
    while let Ok((mut connection, _)) = listener.accept().await {
        let mut head = [0; 4_096];
        let length = connection.read(&mut head).await.unwrap_or_default();
        let head = String::from_utf8_lossy(&head[..length]);
        let body = match head.split(' ').nth(1) {
            Some("/.well-known/ssf-configuration/ssf") => metadata.to_string(),
            Some("/ssf/jwks.json") => keys.to_string(),
            other => panic!("{other:?}"),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        connection.write_all(answer.as_bytes()).await.unwrap();
    }
}

impl Replica {
    /// Stops the service, and waits until it has stopped.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        within(&mut self.serving).await.unwrap();
    }

    pub(crate) async fn sign_in(&self, user: Value, sid: &str) -> String {
        let request = session_proto::v1::CreateSessionRequest {
            user: user.to_string(),
            provider_sid: sid.to_owned(),
            ..alice()
        };
        let created = self.client.clone().create_session(request).await.unwrap();
        created.into_inner().session_id
    }

    pub(crate) async fn sign_out(&self, id: &str) {
        assert!(
            self.client
                .clone()
                .end_session(end(id))
                .await
                .unwrap()
                .into_inner()
                .ended
        );
    }

    /// Signs a user in and out.
    pub(crate) async fn come_and_go(&self, subject: &str) {
        let user = serde_json::json!({"sub": subject});
        let id = self.sign_in(user, &format!("sid-{subject}")).await;
        self.sign_out(&id).await;
    }

    /// How many lists were read from the store.
    pub(crate) fn lists_read(&self) -> u64 {
        let families = self.metrics.gather();
        let operations = families
            .iter()
            .filter(|family| family.name() == "session_store_operation_duration_seconds")
            .flat_map(|family| family.get_metric());
        let of_lists = operations.filter(|metric| {
            let mut labels = metric.get_label().iter();
            labels.any(|label| label.name() == "operation" && label.value() == "list")
        });
        of_lists
            .map(|metric| metric.get_histogram().get_sample_count())
            .sum()
    }

    /// The number of events for this receiver with this outcome.
    pub(crate) fn counted(&self, id: &str, outcome: &str) -> u64 {
        let families = self.metrics.gather();
        let signals = families
            .iter()
            .filter(|family| family.name() == "signals_sent_total");
        let counted = signals.flat_map(|family| family.get_metric()).filter(|metric| {
            let is = |name: &str, value: &str| {
                metric
                    .get_label()
                    .iter()
                    .any(|label| label.name() == name && label.value() == value)
            };
            is("receiver", id) && is("outcome", outcome)
        });
        counted
            .map(|metric| metric.get_counter().get_value() as u64)
            .sum()
    }
}

/// The claims of a token, unverified.
pub(crate) fn claims_of(token: &str) -> Value {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice(&payload).unwrap()
}

/// The subject of a token.
pub(crate) fn subject_of(token: &str) -> String {
    let claims = claims_of(token);
    claims["sub_id"]["user"]["sub"].as_str().unwrap().to_owned()
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !is_so().await {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), looking)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}
