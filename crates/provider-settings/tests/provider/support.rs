//! A provider behind TLS of a private authority, and a relying party made from settings.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use axum::extract::{RawForm, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use chassis::runtime::Workers;
use chassis::serve;
use chassis::settings::{Reader, Service, Source};
use chassis::tls::{ServerTls, TlsFiles};
use oidc::RelyingParty;
use provider_settings::{CredentialFiles, TOPIC, read};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

static SERVICE: Service = Service {
    name: "test",
    prefixes: &["TEST_"],
    shared_prefix: Some(provider_settings::PREFIX),
    about: "reads the provider's settings",
    first_settings: &[],
    fixed: &[],
    topics: &[&TOPIC],
};

pub(crate) const NOW: u64 = 1_800_000_000;

pub(crate) fn party(settings: &[(&str, &str)]) -> Result<(RelyingParty, CredentialFiles), String> {
    let source = Source::from_pairs(&SERVICE, settings);
    let mut reader = Reader::new(&source);
    let providers = read(&mut reader);
    let (mut providers, _) = reader.finish(providers).map_err(|wrong| wrong.to_string())?;
    let only = providers.all.remove(0);
    Ok((RelyingParty::new(only.settings).unwrap(), only.credential_files))
}

/// An authority, a server (localhost and provider.example) and a client, each as `NAME.pem` and `NAME.key`.
pub(crate) struct Certificates(TempDir);

impl Certificates {
    pub(crate) fn make() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        made.openssl(&format!("{new} -keyout ca.key -out ca.pem -subj /CN=authority"));
        for (name, extension) in [
            ("server", "subjectAltName=DNS:localhost,DNS:provider.example"),
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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

/// A provider behind TLS: discovery, and a token endpoint that records its requests.
pub(crate) struct TlsProvider {
    pub(crate) issuer: String,
    pub(crate) forms: watch::Receiver<Vec<(String, bool)>>,
    stop: CancellationToken,
}

impl Drop for TlsProvider {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl TlsProvider {
    /// A provider with the name localhost.
    pub(crate) async fn start(certificates: &Certificates, client_ca: Option<PathBuf>) -> Self {
        Self::called("localhost", certificates, client_ca).await
    }

    /// A provider on loopback with any name.
    pub(crate) async fn called(host: &str, certificates: &Certificates, client_ca: Option<PathBuf>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("https://{host}:{}", listener.local_addr().unwrap().port());
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
        tokio::spawn(serve::serve_each(
            Workers::here(),
            listener,
            move || router.clone(),
            tls,
            serve::Limits::default(),
            serve::Stopping::on(stop.clone()),
        ));
        Self { issuer, forms, stop }
    }
}
