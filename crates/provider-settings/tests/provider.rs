//! The settings in earnest: a provider behind TLS of a private authority, a client certificate, and credentials that change.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use axum::extract::{RawForm, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use chassis::runtime::Workers;
use chassis::serve;
use chassis::settings::{Reader, Service, Source};
use chassis::tls::{ServerTls, TlsFiles};
use oidc::{Outage, RelyingParty, TokenError};
use provider_settings::{CredentialFiles, TOPIC, follow, read};
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, Endpoint, ScriptedProvider};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

static SERVICE: Service = Service {
    name: "test",
    prefix: "TEST_",
    about: "reads the provider's settings",
    topics: &[&TOPIC],
};

const NOW: u64 = 1_800_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

fn party(settings: &[(&str, &str)]) -> Result<(RelyingParty, CredentialFiles), String> {
    let source = Source::from_pairs(&SERVICE, settings);
    let mut reader = Reader::new(&source);
    let (settings, files) = (read(&mut reader), CredentialFiles::read(&mut reader));
    let (settings, _) = reader.finish(settings).map_err(|wrong| wrong.to_string())?;
    Ok((RelyingParty::new(settings).unwrap(), files))
}

/// An authority, a server of localhost and a client, each as `NAME.pem` and `NAME.key`.
struct Certificates(TempDir);

impl Certificates {
    fn make() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        made.openssl(&format!("{new} -keyout ca.key -out ca.pem -subj /CN=authority"));
        for (name, extension) in [
            ("server", "subjectAltName=DNS:localhost"),
            ("client", "extendedKeyUsage=clientAuth"),
        ] {
            made.openssl(&format!(
                "{new} -CA ca.pem -CAkey ca.key -keyout {name}.key -out {name}.pem -addext {extension} \
                 -addext basicConstraints=critical,CA:FALSE -subj /CN={name}"
            ));
        }
        made
    }

    fn openssl(&self, arguments: &str) {
        let status = Command::new("openssl")
            .args(arguments.split_ascii_whitespace())
            .current_dir(self.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "openssl {arguments}");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

/// A provider behind TLS: discovery, and a token endpoint that keeps what it got.
struct TlsProvider {
    issuer: String,
    forms: watch::Receiver<Vec<(String, bool)>>,
    stop: CancellationToken,
}

impl Drop for TlsProvider {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl TlsProvider {
    async fn start(certificates: &Certificates, client_ca: Option<PathBuf>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let at = |path: &str| format!("{issuer}{path}");
        let document = json!({
            "issuer": issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/plain"),
            "jwks_uri": at("/keys"),
            "mtls_endpoint_aliases": { "token_endpoint": at("/mtls") },
        });
        let (kept, forms) = watch::channel(Vec::new());
        let token = move |State(path): State<&'static str>, headers: HeaderMap, RawForm(form): RawForm| async move {
            let form = format!("{path} {}", String::from_utf8_lossy(&form));
            kept.send_modify(|forms| forms.push((form, headers.contains_key("authorization"))));
            Json(json!({ "access_token": "a", "id_token": "i", "token_type": "Bearer" }))
        };
        let router = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(move || async move { Json::<Value>(document) }),
            )
            .route("/plain", post(token.clone()).with_state("plain"))
            .route("/mtls", post(token).with_state("mtls"));
        let files = TlsFiles {
            certificate: certificates.path("server.pem"),
            key: certificates.path("server.key"),
            client_ca,
        };
        let stop = CancellationToken::new();
        let tls = Some(ServerTls::load(&files).unwrap());
        tokio::spawn(serve::serve(Workers::here(), listener, router, tls, stop.clone()));
        Self { issuer, forms, stop }
    }
}

#[tokio::test]
async fn only_the_authority_that_is_named_is_believed() {
    let (ours, others) = (Certificates::make(), Certificates::make());
    let provider = TlsProvider::start(&ours, None).await;
    let settings = |ca: Option<String>| {
        let ca = ca.unwrap_or_default();
        party(&[
            ("OIDC_ISSUER_URL", &provider.issuer),
            ("OIDC_CLIENT_ID", CLIENT_ID),
            ("OIDC_CLIENT_SECRET", CLIENT_SECRET),
            ("OIDC_CA_FILE", &ca),
        ])
    };
    let (trusting, _) = settings(Some(ours.text("ca.pem"))).unwrap();
    assert_eq!(trusting.metadata().await.unwrap().issuer, provider.issuer);
    for stranger in [None, Some(others.text("ca.pem"))] {
        let (doubting, _) = settings(stranger).unwrap();
        let error = doubting.metadata().await.unwrap_err();
        assert_eq!(error.outage(), Outage::Unreachable);
    }
    let nonsense = settings(Some(ours.text("ca.key"))).map(|_| ()).unwrap_err();
    assert!(nonsense.contains("OIDC_CA_FILE"), "{nonsense}");
}

// conformance: B-033
#[tokio::test]
async fn a_client_certificate_proves_the_client_at_the_address_made_for_it() {
    let certificates = Certificates::make();
    let provider = TlsProvider::start(&certificates, Some(certificates.path("ca.pem"))).await;
    let ca = certificates.text("ca.pem");
    let common = [
        ("OIDC_ISSUER_URL", provider.issuer.as_str()),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CA_FILE", ca.as_str()),
    ];
    let (certificate, key) = (certificates.text("client.pem"), certificates.text("client.key"));
    let with_certificate = [
        ("OIDC_CLIENT_AUTH_METHOD", "tls_client_auth"),
        ("OIDC_CLIENT_CERT_FILE", certificate.as_str()),
        ("OIDC_CLIENT_KEY_FILE", key.as_str()),
    ];
    let (known, _) = party(&[&common[..], &with_certificate[..]].concat()).unwrap();
    known
        .exchange_code("code", "verifier", "https://app.example/cb", NOW)
        .await
        .unwrap();
    let (form, has_header) = provider.forms.borrow().last().cloned().unwrap();
    assert!(
        form.starts_with("mtls ") && form.contains(&format!("client_id={CLIENT_ID}")),
        "{form}"
    );
    assert!(
        !has_header && !form.contains("secret") && !form.contains("assertion"),
        "{form}"
    );

    let (stranger, _) = party(&[&common[..], &[("OIDC_CLIENT_AUTH_METHOD", "none")]].concat()).unwrap();
    assert_eq!(
        stranger.metadata().await.unwrap_err().outage(),
        Outage::Unreachable
    );
    let incomplete = party(&[&common[..], &with_certificate[..2]].concat())
        .map(|_| ())
        .unwrap_err();
    assert!(incomplete.contains("OIDC_CLIENT_KEY_FILE"), "{incomplete}");
}

// conformance: B-033
#[tokio::test]
async fn a_secret_whose_file_changes_is_used_without_a_restart_and_an_empty_one_is_not() {
    let provider = ScriptedProvider::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    write(&file, "not the right secret yet");
    let (party, files) = party(&[
        ("OIDC_ISSUER_URL", provider.issuer()),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CLIENT_SECRET_FILE", file.to_str().unwrap()),
    ])
    .unwrap();
    let _watches = follow(&party, files);
    let refused = async || match party.refresh("unknown", NOW).await {
        Err(oidc::RefreshError::Refused(refusal)) => refusal.error().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused().await, "invalid_client");
    write(&file, "");
    write(&file, CLIENT_SECRET);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while refused().await == "invalid_client" {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the changed secret is not used"
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(refused().await, "invalid_grant", "the client is known now");
    assert!(provider.calls(Endpoint::Token) >= 3);
    let wrong = party
        .exchange_code("unknown", "verifier", "https://app.example/cb", NOW)
        .await;
    assert!(matches!(wrong, Err(TokenError::Refused(_))));
}

fn write(path: &Path, text: &str) {
    // Renamed into place, as mounted secrets change.
    let next = path.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}
