//! Two edges, a session service, two providers in this process, and a client acting as a browser.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use auth_edge::settings::{SERVICE, read};
use auth_edge::{routes, start};
use bytes::Bytes;
use chassis::clock::SystemClock;
use chassis::runtime::Workers;
use chassis::settings::{Reader, Source};
use chassis::tls::CertificateMetrics;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prometheus::Registry;
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, ScriptedProvider};
use serde_json::Value;
use session_proto::client::{ClientSettings, SessionClient};
use session_proto::v1::{GetSessionRequest, get_session_request};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::login::Login;
use crate::rpc::service::serve;

/// No answer takes this long, unless something hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// The longest query or cookies, in bytes: even escaped, below hyper's own limit.
pub(super) const LINE_MAX: usize = 4 * 1024;

/// The edge's answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn location(&self) -> &str {
        self.headers.get(header::LOCATION).unwrap().to_str().unwrap()
    }

    /// The value of the cookie of this name, if the answer sets one.
    pub(super) fn sets(&self, name: &str) -> Option<&str> {
        let lines = self.headers.get_all(header::SET_COOKIE).iter();
        let mut pairs = lines.filter_map(|line| line.to_str().unwrap().split(';').next()?.split_once('='));
        pairs.find(|(set, _)| *set == name).map(|(_, value)| value)
    }

    /// A refusal is the edge's own answer: its text, its code, its request ID.
    pub(super) fn refused(&self, codes: &[&str]) -> Outcome {
        assert!((400..500).contains(&self.status), "a fault: {}", self.status);
        // hyper itself rejects such a request before the edge can answer.
        if self.status != 431 {
            let document: Value = serde_json::from_slice(&self.body).unwrap();
            let code = document["error"].as_str().unwrap();
            assert!(codes.contains(&code), "{} {document}", self.status);
            assert!(self.headers.contains_key("x-request-id"));
        }
        Outcome::Refused(self.status)
    }
}

/// An edge, and its pending sign-in.
pub(crate) struct Edge {
    pub(crate) base: String,
    pub(super) login: Mutex<Option<Login>>,
}

pub(super) struct World {
    pub(super) runtime: tokio::runtime::Runtime,
    http: Client<HttpConnector, Full<Bytes>>,
    /// The provider of both edges.
    pub(super) provider: ScriptedProvider,
    /// The other provider, whose documents are the inputs.
    pub(super) other: ScriptedProvider,
    /// Receives the provider's answer in the query.
    pub(super) plain: Edge,
    /// Receives it as a posted form, and requests userinfo.
    pub(super) posted: Edge,
    /// A session at the plain edge: the value of its cookie.
    pub(super) session: Mutex<Option<String>>,
    sent: AtomicU32,
}

impl World {
    pub(super) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (provider, other) = (ScriptedProvider::start(), ScriptedProvider::start());
        let free = std::net::TcpListener::bind("127.0.0.1:0");
        let sessions = free.and_then(|listener| listener.local_addr()).unwrap();
        runtime.spawn(serve(sessions, provider.issuer().to_owned()));
        let (plain, posted) = runtime.block_on(async {
            answering(sessions).await;
            let plain = edge(&provider, sessions, "127.0.0.1", &[]).await;
            let form = [
                ("OIDC_RESPONSE_MODE", "form_post"),
                ("EDGE_USERINFO_AT_LOGIN", "always"),
            ];
            (plain, edge(&provider, sessions, "localhost", &form).await)
        });
        let mut connector = HttpConnector::new();
        // Otherwise every request waits for the previous one's acknowledgement.
        connector.set_nodelay(true);
        Self {
            runtime,
            http: Client::builder(TokioExecutor::new()).build(connector),
            provider,
            other,
            plain,
            posted,
            session: Mutex::default(),
            sent: AtomicU32::new(0),
        }
    }

    pub(super) fn get(&self, url: &str, headers: HeaderMap) -> Answer {
        self.send(Request::get(url), headers, Bytes::new())
    }

    pub(super) fn post(&self, url: &str, headers: HeaderMap, body: Vec<u8>) -> Answer {
        self.send(Request::post(url), headers, body.into())
    }

    fn send(&self, request: http::request::Builder, headers: HeaderMap, body: Bytes) -> Answer {
        let mut request = request.body(Full::new(body)).unwrap();
        *request.headers_mut() = headers;
        // Each request has its own address, so the limits per address do not apply.
        let from = Ipv4Addr::from_bits(0x0a00_0000 | self.sent.fetch_add(1, Ordering::Relaxed) & 0xff_ffff);
        let headers = request.headers_mut();
        headers.insert("x-forwarded-for", from.to_string().parse().unwrap());
        self.runtime.block_on(async {
            let exchange = async {
                let (head, body) = self.http.request(request).await.unwrap().into_parts();
                Answer {
                    status: head.status.as_u16(),
                    headers: head.headers,
                    body: body.collect().await.unwrap().to_bytes(),
                }
            };
            let answer = tokio::time::timeout(DEADLINE, exchange).await;
            answer.unwrap_or_else(|_| panic!("no answer"))
        })
    }
}

/// Bytes as a query, with invalid characters escaped.
pub(super) fn query(input: &[u8]) -> String {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
    let escaped = input.iter().take(LINE_MAX).map(|byte| {
        if legal(*byte) {
            char::from(*byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    escaped.collect()
}

/// The input with the placeholder for `name` replaced.
pub(crate) fn put(input: &[u8], name: &str, value: &str) -> Vec<u8> {
    let mut output = Vec::new();
    let mut rest = input;
    while let Some(at) = rest
        .windows(name.len())
        .position(|window| window == name.as_bytes())
    {
        output.extend_from_slice(&rest[..at]);
        output.extend_from_slice(value.as_bytes());
        rest = &rest[at + name.len()..];
    }
    output.extend_from_slice(rest);
    output
}

/// Waits until the session service answers.
async fn answering(address: SocketAddr) {
    let client = SessionClient::new(ClientSettings::new([format!("http://{address}")])).unwrap();
    let by = Some(get_session_request::By::Handle("0".repeat(32)));
    while let Err(error) = client.get_session(GetSessionRequest { by: by.clone() }).await
        && error.is_unavailable()
    {
        tokio::task::yield_now().await;
    }
}

/// An edge with these settings and the common ones.
pub(crate) async fn edge(
    provider: &ScriptedProvider,
    sessions: SocketAddr,
    host: &str,
    further: &[(&str, &str)],
) -> Edge {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{host}:{}", listener.local_addr().unwrap().port());
    let sessions = format!("http://{sessions}");
    let mut pairs = vec![
        ("EDGE_BASE_URL", base.as_str()),
        ("EDGE_SECRET", "a secret that is used nowhere else at all"),
        ("EDGE_SESSION_SVC_URL", &sessions),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1,::1"),
        ("OIDC_ISSUER_URL", provider.issuer()),
        ("OIDC_CLIENT_ID", CLIENT_ID),
        ("OIDC_CLIENT_SECRET", CLIENT_SECRET),
    ];
    pairs.extend(further);
    let source = Source::from_pairs(&SERVICE, &pairs);
    let mut reader = Reader::new(&source);
    let settings = read(&mut reader);
    let (settings, _) = reader.finish(settings).unwrap_or_else(|wrong| panic!("{wrong}"));
    let metrics = Registry::new();
    let certificates = CertificateMetrics::new(&metrics).unwrap();
    let edge = start::build(settings, Arc::new(SystemClock), &metrics, &certificates).unwrap();
    let stop = CancellationToken::new();
    let router = routes::router(edge);
    tokio::spawn(chassis::serve::serve_each(
        Workers::here(),
        listener,
        move || router.clone(),
        None,
        chassis::serve::Limits::default(),
        chassis::serve::Stopping::on(stop),
    ));
    Edge {
        base,
        login: Mutex::default(),
    }
}
