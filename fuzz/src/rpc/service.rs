//! A session service in this process, with sessions of the sender and of another user.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use chassis::clock::SystemClock;
use chassis::readiness::Readiness;
use chassis::runtime::{Runtime, Workers};
use chassis::settings::{Reader, Source};
use http::{Request, header};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prometheus::Registry;
use serde_json::json;
use session_proto::client::{ClientSettings, SessionClient};
use session_proto::timestamp;
use session_proto::v1::{CreateSessionRequest, GetSessionRequest, TokenSet, get_session_request};
use tokio_util::sync::CancellationToken;

use super::Rpc;
use super::answer::Answer;
use super::names::{Own, holds};

/// The issuer of all sessions. No server listens there: a refresh fails as if the provider is down.
const ISSUER: &str = "http://127.0.0.1:9";

/// No answer takes this long, unless something hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// How often the test checks that the other users' sessions still exist.
const LOOK_EVERY: usize = 64;

/// Data that only its owner may receive.
struct Other {
    id: String,
    handle: String,
    subject: String,
}

pub(crate) struct World {
    runtime: tokio::runtime::Runtime,
    http: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    sessions: SessionClient,
    own: Mutex<Own>,
    others: Vec<Other>,
    sent: AtomicUsize,
}

impl World {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let sessions = SessionClient::new(ClientSettings::new([format!("http://{address}")])).unwrap();
        runtime.spawn(serve(address, ISSUER.to_owned()));
        let (own, others) = runtime.block_on(async {
            let own = begin(&sessions, "own").await;
            (own, vec![other(&sessions, 1).await, other(&sessions, 2).await])
        });
        let mut connector = HttpConnector::new();
        // Otherwise every request waits for the previous one's acknowledgement.
        connector.set_nodelay(true);
        let http = Client::builder(TokioExecutor::new())
            .http2_only(true)
            .build(connector);
        Self {
            runtime,
            http,
            address,
            sessions,
            own: Mutex::new(own),
            others,
            sent: AtomicUsize::new(0),
        }
    }

    /// The sender's session; creates a new one if an input has ended it.
    pub(crate) fn own(&self) -> Own {
        let mut own = self.own.lock().unwrap();
        if !self.is_there(&own.id) {
            *own = self.runtime.block_on(begin(&self.sessions, "own"));
        }
        own.clone()
    }

    /// Sends a body to a method. The first byte chooses the framing: usually one whole message, otherwise raw
    /// bytes or a message marked as compressed.
    pub(crate) fn send(&self, rpc: Rpc, input: &[u8]) -> Answer {
        let request = Request::post(format!(
            "http://{}/session.v1.SessionService/{}",
            self.address,
            rpc.method_name()
        ))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header("grpc-timeout", "20S")
        .body(Full::new(framed(input)))
        .unwrap();
        self.runtime.block_on(async {
            let exchange = async { Answer::read(rpc, self.http.request(request).await.unwrap()).await };
            tokio::time::timeout(DEADLINE, exchange)
                .await
                .unwrap_or_else(|_| panic!("{rpc:?} did not answer"))
        })
    }

    pub(crate) fn told_nothing_of_others(&self, rpc: Rpc, own: &Own, sent: &[u8], answer: &Answer) {
        let discloses = |text: &str| holds(&answer.all, text) && !holds(sent, text);
        for other in &self.others {
            assert!(
                !discloses(&other.id),
                "{rpc:?} disclosed somebody else's session ID"
            );
            // A watch of all sessions discloses handles and people by design.
            if !matches!(rpc, Rpc::WatchSessions | Rpc::FollowSessions) {
                assert!(
                    !discloses(&other.handle),
                    "{rpc:?} disclosed a session that was not requested"
                );
                assert!(
                    !discloses(&other.subject),
                    "{rpc:?} disclosed a person that was not requested"
                );
            }
        }
        // No input contains these texts, and only a token request with the session's ID returns one.
        assert!(!discloses("refresh-of-"), "{rpc:?} disclosed a refresh token");
        assert!(
            !discloses("access-of-other"),
            "{rpc:?} disclosed somebody else's token"
        );
        if rpc != Rpc::GetAccessToken {
            assert!(!discloses("access-of-own"), "{rpc:?} disclosed a token");
            assert!(!discloses(&own.id), "{rpc:?} disclosed a session ID");
        }
    }

    pub(crate) fn others_are_still_there(&self) {
        if self
            .sent
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(LOOK_EVERY)
        {
            for other in &self.others {
                assert!(self.is_there(&other.id), "a session nobody named was ended");
            }
        }
    }

    fn is_there(&self, id: &str) -> bool {
        let by = Some(get_session_request::By::SessionId(id.to_owned()));
        let read = self.sessions.get_session(GetSessionRequest { by });
        match self.runtime.block_on(read) {
            Ok(_) => true,
            Err(error) => {
                assert!(
                    !error.is_unavailable(),
                    "the service is not there any more: {error}"
                );
                false
            }
        }
    }
}

fn framed(input: &[u8]) -> Bytes {
    let (how, message) = input.split_first().unwrap_or((&0, &[]));
    let compressed = match how % 16 {
        14 => return Bytes::copy_from_slice(message),
        15 => 1,
        _ => 0,
    };
    let mut body = BytesMut::new();
    body.put_u8(compressed);
    body.put_u32(u32::try_from(message.len()).unwrap());
    body.put_slice(message);
    body.freeze()
}

/// A separate session service for this provider.
pub(crate) async fn serve(address: SocketAddr, issuer: String) {
    let listen = address.to_string();
    let transmitters = tempfile::NamedTempFile::new().unwrap();
    let table =
        format!("[[transmitter]]\nid = \"idp\"\nissuer = \"{issuer}\"\naudience = \"us\"\nemail = true\n");
    std::fs::write(transmitters.path(), table).unwrap();
    let transmitters_path = transmitters.path().display().to_string();
    let pairs = [
        ("SESSION_SIGNALS", transmitters_path.as_str()),
        ("SESSION_LISTEN", listen.as_str()),
        ("SESSION_STORE", "memory:"),
        ("OIDC_ISSUER_URL", issuer.as_str()),
        ("OIDC_CLIENT_ID", "vestibule"),
        ("OIDC_CLIENT_SECRET", "a secret that is used nowhere else"),
    ];
    let source = Source::from_pairs(&session_svc::settings::SERVICE, &pairs);
    let mut reader = Reader::new(&source);
    let settings = session_svc::settings::read(&mut reader);
    let (mut settings, _) = reader.finish(settings).unwrap();
    // An input ends sooner.
    settings.limits.watch_heartbeat = std::time::Duration::from_millis(5);
    let runtime = Runtime {
        clock: Arc::new(SystemClock),
        shutdown: CancellationToken::new(),
        readiness: Readiness::new(),
        metrics: Registry::new(),
        workers: Workers::here(),
    };
    session_svc::start::run(settings, runtime).await.unwrap();
}

async fn other(sessions: &SessionClient, number: u32) -> Other {
    let subject = format!("somebody-else-{number}");
    let Own { id, handle } = begin(sessions, &subject).await;
    Other { id, handle, subject }
}

/// A session with tokens, so that inputs reach token delivery and, if forced, the refresh.
async fn begin(sessions: &SessionClient, subject: &str) -> Own {
    let user = json!({ "sub": subject });
    let whose = if subject == "own" { "own" } else { "other" };
    let request = CreateSessionRequest {
        issuer: ISSUER.to_owned(),
        user: user.to_string(),
        tokens: Some(TokenSet {
            access_token: format!("access-of-{whose}"),
            scope: "openid orders:read".to_owned(),
            refresh_token: format!("refresh-of-{whose}"),
            expires_at: Some(timestamp::from_ms(u64::from(u32::MAX) * 1000)),
            ..Default::default()
        }),
        provider_sid: format!("sid-of-{subject}"),
        ..Default::default()
    };
    let created = loop {
        match sessions.create_session(request.clone()).await {
            Ok(created) => break created,
            // Not listening yet.
            Err(error) => assert!(error.is_unavailable(), "{error}"),
        }
    };
    Own {
        id: created.session_id,
        handle: created.session.unwrap().handle,
    }
}
