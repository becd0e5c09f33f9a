//! The stack under test and its browser. All parts listen on loopback and end when dropped.

mod browser;
#[path = "../../../../session-svc/tests/support/certificates.rs"]
mod certificates;
mod log;
pub(crate) mod recorder;
mod session_service;
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use auth_edge::sessions::keys::DerivedKeys;
use auth_edge::settings::{EdgeSettings, SERVICE, read};
use auth_edge::{routes, start};
use chassis::clock::{Clock, ManualClock, SystemClock};
use chassis::runtime::Workers;
use chassis::secret::Secret;
use chassis::settings::{Reader, Source};
use chassis::tls::CertificateMetrics;
use oidc::{ApiTokenGrant, ClientAuth, ClientSecret, DpopKey, ProviderSettings, RelyingParty};
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, ScriptedProvider};
use session_proto::timestamp;
use session_proto::v1::{CreateSessionRequest, TokenSet};
use session_svc::receiver::TransmittersFile;
use session_svc::refresh::{ApiServers, RefreshProviders};
use session_svc::settings::api_servers::{self, FileContext};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use browser::{Answer, Browser, NAVIGATION};
pub(crate) use certificates::Certificates;
pub(crate) use log::{Log, Warnings};
use session_service::SessionService;
pub(crate) use upstream::Upstream;

/// The secret of every edge under test, unless a test sets another.
pub(crate) const SECRET: &str = "a secret for tests that is long enough";

/// A fresh P-256 key as a PEM file, for a client or for bound tokens.
pub(crate) fn key_file() -> tempfile::NamedTempFile {
    use base64::Engine as _;
    use std::io::Write as _;
    let algorithm = &aws_lc_rs::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let random = aws_lc_rs::rand::SystemRandom::new();
    let der = aws_lc_rs::signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let text = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(
        file,
        "-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n"
    )
    .unwrap();
    file
}

fn dpop_key(path: &str) -> Option<DpopKey> {
    let pem = std::fs::read_to_string(path).ok()?;
    Some(DpopKey::from_pem(&pem).unwrap())
}

/// The providers of a file, as the session service reads them.
fn listed(file: &str) -> RefreshProviders {
    let source = Source::from_pairs(&SERVICE, &[("OIDC_PROVIDERS", file)]);
    let mut reader = Reader::new(&source);
    let read = provider_settings::read(&mut reader);
    let (read, _) = reader.finish(read).unwrap_or_else(|wrong| panic!("{wrong}"));
    let parties = read.settings().cloned().map(RelyingParty::new);
    RefreshProviders::of_parties(read.listed, parties.collect::<Result<_, _>>().unwrap())
}

/// The provider as a transmitter of security events, with further lines in its table and below it.
fn listened(provider: &ScriptedProvider, lines: &str) -> TransmittersFile {
    let issuer = provider.issuer();
    session_svc::settings::signals::parse(&format!(
        "[[transmitter]]\nid = \"idp\"\nissuer = \"{issuer}\"\naudience = \"{EVENTS_AUDIENCE}\"\n\
         configuration_url = \"{issuer}/.well-known/openid-configuration\"\n{lines}\n"
    ))
    .unwrap()
    .transmitters
    .unwrap()
}

/// The audience of security events.
pub(crate) const EVENTS_AUDIENCE: &str = "https://edge.example/signals";

/// Provider, session service and edge.
pub(crate) struct Stack {
    pub(crate) provider: ScriptedProvider,
    pub(crate) clock: ManualClock,
    pub(crate) sessions: SessionService,
    pub(crate) metrics: prometheus::Registry,
    pub(crate) edge: auth_edge::app::App,
    address: String,
    base: String,
    stop: CancellationToken,
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Stack {
    /// A stack with the default settings on http.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// A stack with these settings. `EDGE_BASE_URL` may be any address; the browser knows the target.
    /// `SESSION_SIGNALS` holds table lines for the provider, `SESSION_API_SERVERS` the text of the file;
    /// `heartbeat_ms` is the heartbeat interval.
    /// `body_silence_secs` and `concurrent_requests` replace constant or memory-based limits.
    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), settings).await
    }

    /// As [`Stack::with`], on a listener with an address that is known beforehand.
    pub(crate) async fn on(listener: TcpListener, settings: &[(&str, &str)]) -> Self {
        Self::at(ScriptedProvider::start(), listener, settings).await
    }

    /// As [`Stack::on`], with an existing provider. `OIDC_PROVIDERS` replaces the plain variables, also at
    /// the session service.
    pub(crate) async fn at(
        provider: ScriptedProvider,
        listener: TcpListener,
        settings: &[(&str, &str)],
    ) -> Self {
        let clock = ManualClock::new(SystemClock.now_ms());
        let given = |name: &str, otherwise: &str| {
            let found = settings.iter().find(|(key, _)| *key == name);
            found.map_or(otherwise, |(_, value)| value).to_owned()
        };
        let file = given("OIDC_PROVIDERS", "");
        let providers = if file.is_empty() {
            let issuer = given("OIDC_ISSUER_URL", provider.issuer());
            let mut only = ProviderSettings::new(issuer, given("OIDC_CLIENT_ID", CLIENT_ID));
            let secret = ClientSecret::new(given("OIDC_CLIENT_SECRET", CLIENT_SECRET));
            only.credentials.auth = ClientAuth::SecretBasic(secret);
            let resources = given("OIDC_RESOURCE", "");
            let named = resources.split(',').filter(|one| !one.is_empty());
            only.resources = named.map(str::to_owned).collect();
            if given("OIDC_API_TOKENS", "exchange") == "refresh" {
                only.api_token_grant = ApiTokenGrant::Refresh;
            }
            let timeout_ms = given("OIDC_HTTP_TIMEOUT_MS", "5000").parse().unwrap();
            only.http_timeout = Duration::from_millis(timeout_ms);
            only.credentials.dpop_key = dpop_key(&given("OIDC_DPOP_KEY_FILE", ""));
            RefreshProviders::from(RelyingParty::new(only).unwrap())
        } else {
            listed(&file)
        };
        let servers = given("SESSION_API_SERVERS", "");
        let providers = match servers.as_str() {
            "" => providers,
            text => {
                let list = api_servers::parse(text, &FileContext::default()).unwrap();
                providers.with_api_servers(ApiServers::new(list))
            }
        };
        let heartbeat_ms = given("heartbeat_ms", "300").parse().unwrap();
        let heartbeat = Duration::from_millis(heartbeat_ms);
        let lines = given("SESSION_SIGNALS", "");
        let transmitters = (!lines.is_empty()).then(|| listened(&provider, &lines));
        let sessions = SessionService::start(providers, &clock, heartbeat, transmitters).await;
        let address = listener.local_addr().unwrap().to_string();
        let mut pairs = vec![
            ("EDGE_BASE_URL", format!("http://{address}")),
            ("EDGE_SECRET", SECRET.to_owned()),
            ("EDGE_RATE_LIMIT_LOGIN", "0".to_owned()),
            // Tests move the clock by hours and count calls; other tests cover the cache.
            ("EDGE_SESSION_CACHE_SECS", "0".to_owned()),
            ("EDGE_SESSION_SVC_URL", sessions.url()),
            ("OIDC_ISSUER_URL", provider.issuer().to_owned()),
            ("OIDC_CLIENT_ID", CLIENT_ID.to_owned()),
            ("OIDC_CLIENT_SECRET", CLIENT_SECRET.to_owned()),
            ("OIDC_HTTP_TIMEOUT_MS", "1000".to_owned()),
        ];
        if !file.is_empty() {
            pairs.retain(|(name, _)| !name.starts_with("OIDC_"));
        }
        let of_the_edge =
            |(name, _): &&(&str, &str)| !name.starts_with("SESSION_") && *name == name.to_uppercase();
        for (name, value) in settings.iter().filter(of_the_edge) {
            pairs.retain(|(key, _)| key != name);
            pairs.push((name, (*value).to_owned()));
        }
        let base = pairs
            .iter()
            .find(|(name, _)| *name == "EDGE_BASE_URL")
            .unwrap()
            .1
            .clone();
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let source = Source::from_pairs(&SERVICE, &pairs);
        let mut reader = Reader::new(&source);
        let settings = read(&mut reader);
        let (mut settings, _) = reader.finish(settings).unwrap_or_else(|wrong| panic!("{wrong}"));
        if let Ok(secs) = given("body_silence_secs", "").parse() {
            settings.body_silence = Duration::from_secs(secs);
        }
        if let Ok(count) = given("concurrent_requests", "").parse() {
            settings.max_concurrent_requests = count;
        }
        let metrics = prometheus::Registry::new();
        let certificates = CertificateMetrics::new(&metrics).unwrap();
        let edge = start::build(settings, Arc::new(clock.clone()), &metrics, &certificates).unwrap();
        let stop = CancellationToken::new();
        let router = routes::router(edge.clone());
        tokio::spawn(chassis::serve::serve_each(
            Workers::here(),
            listener,
            move || router.clone(),
            None,
            chassis::serve::Limits::default(),
            chassis::serve::Stopping::on(stop.clone()),
        ));
        Self {
            provider,
            clock,
            sessions,
            metrics,
            edge,
            address,
            base,
            stop,
        }
    }

    /// Host and port of the edge.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A browser without cookies.
    pub(crate) fn browser(&self) -> Browser {
        Browser::new(&self.address, &self.base)
    }

    /// A browser at another edge with the same settings, next to this one.
    pub(crate) async fn beside(&self) -> Browser {
        self.beside_with(self.edge.settings().clone(), self.clock.clone())
            .await
    }

    /// A browser at another edge, with the session service `sessions`.
    pub(crate) async fn beside_at(&self, sessions: &SessionService) -> Browser {
        self.beside_with_settings(|settings| settings.session_service.addresses = vec![sessions.url()])
            .await
    }

    /// A browser at another edge, with these changes to the settings.
    pub(crate) async fn beside_with_settings(&self, change: impl FnOnce(&mut EdgeSettings)) -> Browser {
        let mut settings = self.edge.settings().clone();
        change(&mut settings);
        self.beside_with(settings, self.clock.clone()).await
    }

    /// A browser at another edge, with this clock.
    pub(crate) async fn beside_at_another_time(&self, clock: ManualClock) -> Browser {
        self.beside_with(self.edge.settings().clone(), clock).await
    }

    async fn beside_with(&self, settings: EdgeSettings, clock: ManualClock) -> Browser {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let metrics = prometheus::Registry::new();
        let certificates = CertificateMetrics::new(&metrics).unwrap();
        let edge = start::build(settings, Arc::new(clock), &metrics, &certificates).unwrap();
        let router = routes::router(edge);
        tokio::spawn(chassis::serve::serve_each(
            Workers::here(),
            listener,
            move || router.clone(),
            None,
            chassis::serve::Limits::default(),
            chassis::serve::Stopping::on(self.stop.clone()),
        ));
        Browser::new(&address, &self.base)
    }

    /// The base URL without a slash at the end.
    pub(crate) fn base(&self) -> &str {
        self.base.trim_end_matches('/')
    }

    /// Creates a session at the session service. Returns its cookie's name and value (on http, default name).
    pub(crate) async fn session_cookie(&self) -> (String, String) {
        self.session_of(
            serde_json::json!({"sub": "person-1", "name": "Ada"}),
            "openid profile",
        )
        .await
    }

    /// The same, for this person and with these scopes.
    pub(crate) async fn session_of(&self, user: serde_json::Value, scope: &str) -> (String, String) {
        let tokens = TokenSet {
            scope: scope.to_owned(),
            ..TokenSet::default()
        };
        self.session_with(user, tokens).await
    }

    /// The same, with more about its tokens.
    pub(crate) async fn session_with(&self, user: serde_json::Value, tokens: TokenSet) -> (String, String) {
        use auth_edge::sessions::cookies::{CookieSettings, SameSite, SessionCookies, SessionId};
        let now_ms = self.clock.now_ms();
        let client = self.sessions.client();
        let made = client
            .create_session(CreateSessionRequest {
                issuer: self.provider.issuer().to_owned(),
                user: user.to_string(),
                tokens: Some(TokenSet {
                    access_token: format!("token-of-{}", user["sub"].as_str().unwrap()),
                    expires_at: Some(timestamp::from_ms(now_ms + 3_600_000)),
                    ..tokens
                }),
                authenticated_at: Some(timestamp::from_ms(now_ms)),
                ..CreateSessionRequest::default()
            })
            .await
            .unwrap();
        let settings = CookieSettings {
            name: "session".to_owned(),
            secure: false,
            domain: None,
            same_site: SameSite::Lax,
            partitioned: false,
        };
        let cookies = SessionCookies::new(settings, DerivedKeys::new(&[Secret::new(SECRET.to_owned())]));
        let line = cookies
            .issue(
                &reqwest::header::HeaderMap::new(),
                &SessionId::parse(&made.session_id).unwrap(),
                60,
            )
            .unwrap();
        let (name, value) = line
            .to_str()
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .split_once('=')
            .unwrap();
        (name.to_owned(), value.to_owned())
    }

    /// Sends bytes on a separate connection. Returns everything until the edge closes. It reads only after
    /// sending: an edge that answers sooner must read the rest.
    pub(crate) async fn raw(&self, request: &str) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        // A reset after the answer also counts as the end.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(10), read)
            .await
            .expect("the edge hangs up");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let head = answer.split("\r\n\r\n").next().unwrap_or_default();
        assert!(
            !head.contains("cross-origin-resource-policy: same-origin") || head.len() <= 4_092,
            "no head of the edge's own is longer than a proxy's buffer: {head}"
        );
        answer
    }

    /// The time of all three, in seconds.
    pub(crate) fn clock_secs(&self) -> u64 {
        self.clock.now_ms() / 1000
    }

    /// Moves the time of all three.
    pub(crate) fn advance(&self, secs: u64) {
        self.clock.advance_ms(secs * 1000);
        let now = self.clock.now_ms() / 1000;
        self.provider.script(|script| script.now = Some(now));
    }

    /// The time now, in seconds since the Unix epoch.
    pub(crate) fn now_secs(&self) -> u64 {
        self.clock.now_ms() / 1000
    }

    /// The sum of an edge counter over all series with this label.
    pub(crate) fn counter(&self, name: &str, label: &str) -> u64 {
        let families = self.metrics.gather();
        let family = families.iter().find(|family| family.name() == name);
        let metrics = family.map(|family| family.get_metric()).unwrap_or_default();
        let found = metrics
            .iter()
            .filter(|metric| metric.get_label().iter().any(|pair| pair.value() == label));
        found.map(|metric| metric.get_counter().get_value()).sum::<f64>() as u64
    }
}
