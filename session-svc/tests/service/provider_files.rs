//! The session service's credentials at the provider, changed while it runs.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chassis::clock::SystemClock;
use chassis::readiness::Readiness;
use chassis::runtime::{Runtime, Workers};
use chassis::settings::{Reader, Source};
use prometheus::Registry;
use scripted_provider::{CLIENT_ID, Endpoint, ScriptedProvider};
use serde_json::{Value, json};
use session_proto::client::{ClientSettings, SessionClient};
use session_proto::v1::{CreateSessionRequest, GetAccessTokenRequest, TokenSet};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A changed file is read within ten seconds; only a failing test waits longer.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A fresh P-256 key as PEM.
fn key() -> String {
    let random = aws_lc_rs::rand::SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let text = STANDARD.encode(der.as_ref());
    format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
}

/// Renames a file into place, as Kubernetes updates mounted secrets.
fn put(path: &Path, text: &str) {
    let next = path.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}

/// The log of the service.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, record: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(record)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Waits for a record that contains all of these.
    async fn wait_for(&self, texts: &[&str]) {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let written = String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned();
            if written
                .lines()
                .any(|record| texts.iter().all(|text| record.contains(text)))
            {
                return;
            }
            assert!(Instant::now() < deadline, "no record holds {texts:?}:\n{written}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn serve(pairs: Vec<(&'static str, String)>) {
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let source = Source::from_pairs(&session_svc::settings::SERVICE, &pairs);
    let mut reader = Reader::new(&source);
    let settings = session_svc::settings::read(&mut reader);
    let (settings, _) = reader.finish(settings).unwrap();
    let runtime = Runtime {
        clock: Arc::new(SystemClock),
        shutdown: CancellationToken::new(),
        readiness: Readiness::new(),
        metrics: Registry::new(),
        workers: Workers::here(),
    };
    session_svc::start::run(settings, runtime).await.unwrap();
}

/// A session with the provider's tokens, as soon as the service listens.
async fn begin(client: &SessionClient, provider: &ScriptedProvider) -> String {
    let tokens = provider.sign_in("openid");
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    let request = CreateSessionRequest {
        issuer: provider.issuer().to_owned(),
        user: json!({"sub": "alice"}).to_string(),
        tokens: Some(TokenSet {
            access_token: text("access_token"),
            token_type: text("token_type"),
            scope: "openid".to_owned(),
            refresh_token: text("refresh_token"),
            ..TokenSet::default()
        }),
        ..CreateSessionRequest::default()
    };
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        match client.create_session(request.clone()).await {
            Ok(created) => return created.session_id,
            Err(error) => assert!(error.is_unavailable() && Instant::now() < deadline, "{error}"),
        }
    }
}

/// Refreshes. Returns the key that signed the client's assertion, and the token's bound key.
async fn used_keys(client: &SessionClient, session_id: &str, provider: &ScriptedProvider) -> (Value, Value) {
    let request = GetAccessTokenRequest {
        session_id: session_id.to_owned(),
        force_refresh: true,
        ..GetAccessTokenRequest::default()
    };
    client.get_access_token(request).await.unwrap();
    let request = provider.last_request(Endpoint::Token);
    let header = |token: &str| -> Value {
        let head = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
        serde_json::from_slice(&head).unwrap()
    };
    let assertion = header(request.param("client_assertion").unwrap());
    let proof = header(request.header("dpop").unwrap());
    (assertion["kid"].clone(), proof["jwk"]["x"].clone())
}

// conformance: B-033
#[tokio::test]
async fn changed_keys_are_used_without_a_restart_and_a_wrong_file_changes_nothing() {
    let log = Log::default();
    let _logging = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log.clone())
        .set_default();
    let folder = tempfile::tempdir().unwrap();
    let (own, bound) = (folder.path().join("client.pem"), folder.path().join("dpop.pem"));
    put(&own, &key());
    put(&bound, &key());
    let provider = ScriptedProvider::start();
    provider.script(|script| script.dpop = true);
    let free = std::net::TcpListener::bind("127.0.0.1:0");
    let address = free.and_then(|listener| listener.local_addr()).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    tokio::spawn(serve(vec![
        ("SESSION_LISTEN", address.to_string()),
        ("SESSION_STORE", "memory:".to_owned()),
        ("OIDC_ISSUER_URL", provider.issuer().to_owned()),
        ("OIDC_CLIENT_ID", CLIENT_ID.to_owned()),
        ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt".to_owned()),
        ("OIDC_CLIENT_KEY_FILE", path(&own)),
        ("OIDC_DPOP", "on".to_owned()),
        ("OIDC_DPOP_KEY_FILE", path(&bound)),
    ]));
    let client = SessionClient::new(ClientSettings::new([format!("http://{address}")])).unwrap();
    let id = begin(&client, &provider).await;
    let before = used_keys(&client, &id, &provider).await;

    for (setting, file) in [("OIDC_CLIENT_KEY_FILE", &own), ("OIDC_DPOP_KEY_FILE", &bound)] {
        let good = std::fs::read_to_string(file).unwrap();
        put(file, "no key at all");
        log.wait_for(&[setting, &path(file), "PKCS#8", "stays in use"])
            .await;
        assert_eq!(used_keys(&client, &id, &provider).await, before, "{setting}");
        put(file, &good);
    }

    put(&own, &key());
    put(&bound, &key());
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let now = used_keys(&client, &id, &provider).await;
        if now.0 != before.0 && now.1 != before.1 {
            return;
        }
        assert!(Instant::now() < deadline, "the changed keys are used");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
