//! The load on a whole service over gRPC.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chassis::clock::SystemClock;
use chassis::readiness::Readiness;
use chassis::runtime::{Runtime, Workers};
use chassis::secret::{Reloading, Secret};
use oidc::TokenHint;
use oidc::{
    ExpectedRefreshedIdToken, GrantError, IdToken, IdTokenError, ProviderError, RefreshedTokens,
    RevocationResult,
};
use prometheus::Registry;
use session_proto::error::reason_of;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason};
use session_svc::refresh::RefreshProvider;
use session_svc::session::Lifetime;
use session_svc::sessions::SessionLimits;
use session_svc::start::{AccessPolicy, ServiceParts, serve};
use session_svc::store::KeyValueStore;
use session_svc::vault::KeyRing;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::WAIT_MAX;
use super::load::{Retryable, Target};

const ISSUER: &str = "https://issuer.example";

/// No test here refreshes tokens.
struct NoProvider;

const AWAY: ProviderError = ProviderError::Timeout("token_endpoint");

#[async_trait]
impl RefreshProvider for NoProvider {
    async fn refresh(&self, _: &str, _: u64) -> Result<RefreshedTokens, GrantError> {
        Err(GrantError::Transient(AWAY))
    }

    async fn validate(
        &self,
        _: &str,
        _: &ExpectedRefreshedIdToken<'_>,
        _: u64,
    ) -> Result<IdToken, IdTokenError> {
        unreachable!("nothing is refreshed")
    }

    async fn revoke(&self, _: &str, _: TokenHint, _: u64) -> Result<RevocationResult, ProviderError> {
        Err(AWAY)
    }
}

/// A client of a running service, which ends with the last clone.
#[derive(Clone)]
pub(crate) struct Service {
    client: SessionServiceClient<Channel>,
    attribute: Arc<AtomicU64>,
    _ends: Arc<tokio_util::sync::DropGuard>,
}

impl Service {
    pub(crate) async fn start(store: Arc<dyn KeyValueStore>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let parts = ServiceParts {
            transmitters: None,
            receivers: None,
            store,
            keys: Reloading::new(KeyRing::parse(&[Secret::new("ab".repeat(32))]).unwrap()),
            provider: NoProvider,
            lifetime: Lifetime {
                rolling_ms: 3_600_000,
                absolute_ms: 36_000_000,
                roll_interval_ms: 0,
            },
            limits: SessionLimits {
                revalidate_ms: 0,
                refresh_lease: session_svc::refresh::LEASE,
                max_bytes: 65_536,
                max_per_subject: 0,
                operator_search: false,
                watch_heartbeat: Duration::from_millis(300),
            },
        };
        let runtime = Runtime {
            clock: Arc::new(SystemClock),
            shutdown: shutdown.clone(),
            readiness: Readiness::new(),
            metrics: Registry::new(),
            workers: Workers::here(),
        };
        tokio::spawn(async move {
            serve(AccessPolicy::anyone(), parts, listener, runtime)
                .await
                .unwrap()
        });
        Self {
            client: SessionServiceClient::connect(address).await.unwrap(),
            attribute: Arc::default(),
            _ends: Arc::new(shutdown.drop_guard()),
        }
    }

    /// Watches until the stream ends with a retryable error. Returns the last resume token.
    pub(crate) fn watched_until_cut(&self) -> impl Future<Output = String> + Send + 'static {
        let mut client = self.client.clone();
        async move {
            let mut stream = client
                .watch_sessions(v1::WatchSessionsRequest::default())
                .await
                .unwrap()
                .into_inner();
            let mut resume_token = String::new();
            loop {
                match tokio::time::timeout(WAIT_MAX, stream.message()).await.unwrap() {
                    Ok(Some(event)) => resume_token = event.resume_token,
                    Ok(None) => panic!("a watch that cannot be heard ends with an error"),
                    Err(status) => {
                        retryable(status);
                        return resume_token;
                    }
                }
            }
        }
    }

    /// Whether a resumed watch finally reports an ending, or that events were missed.
    pub(crate) async fn hears_an_ending_after(&self, resume_token: &str) -> bool {
        let mut client = self.client.clone();
        let request = v1::WatchSessionsRequest {
            resume_token: resume_token.to_owned(),
            ..Default::default()
        };
        let Ok(stream) = client.watch_sessions(request).await else {
            return false;
        };
        let mut stream = stream.into_inner();
        while let Ok(Some(event)) = tokio::time::timeout(WAIT_MAX, stream.message()).await.unwrap() {
            if matches!(
                event.kind(),
                v1::session_event::Kind::Ended | v1::session_event::Kind::Missed
            ) {
                return true;
            }
        }
        false
    }
}

/// Fails the test unless the store is away, too many calls wait, or one call waited too long.
fn retryable(status: Status) -> Retryable {
    let said = (status.code(), reason_of(&status));
    let away = (Code::Unavailable, Some(ErrorReason::ErrStoreUnavailable));
    let waiting = (Code::ResourceExhausted, Some(ErrorReason::ErrOverloaded));
    let late = (Code::DeadlineExceeded, Some(ErrorReason::ErrDeadlineExceeded));
    assert!([away, waiting, late].contains(&said), "{status:?}");
    Retryable
}

/// The answer, or none if the session does not exist.
fn found<T>(answer: Result<tonic::Response<T>, Status>) -> Result<Option<T>, Retryable> {
    match answer {
        Ok(answer) => Ok(Some(answer.into_inner())),
        Err(status) if reason_of(&status) == Some(ErrorReason::ErrMissingSession) => Ok(None),
        Err(status) => Err(retryable(status)),
    }
}

#[async_trait]
impl Target for Service {
    async fn create(&self, person: &str) -> Result<String, Retryable> {
        let request = v1::CreateSessionRequest {
            issuer: ISSUER.to_owned(),
            user: serde_json::json!({ "sub": person }).to_string(),
            tokens: Some(v1::TokenSet {
                access_token: "access".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let created = self
            .client
            .clone()
            .create_session(request)
            .await
            .map_err(retryable)?;
        Ok(created.into_inner().session_id)
    }

    async fn read(&self, name: &str) -> Result<Option<u64>, Retryable> {
        let request = v1::GetSessionRequest {
            by: Some(v1::get_session_request::By::SessionId(name.to_owned())),
        };
        let answer = found(self.client.clone().get_session(request).await)?;
        Ok(answer.map(|answer| answer.session.unwrap().version))
    }

    async fn write(&self, name: &str) -> Result<Option<u64>, Retryable> {
        let number = self.attribute.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(2) {
            let request = v1::RollSessionRequest {
                session_id: name.to_owned(),
                ..Default::default()
            };
            let answer = found(self.client.clone().roll_session(request).await)?;
            return Ok(answer.map(|answer| answer.session.unwrap().version));
        }
        let request = v1::UpdateSessionRequest {
            session_id: name.to_owned(),
            attributes: serde_json::json!({ "number": number }).to_string(),
            update_mask: Some(prost_types::FieldMask {
                paths: vec!["attributes".to_owned()],
            }),
            ..Default::default()
        };
        let answer = found(self.client.clone().update_session(request).await)?;
        Ok(answer.map(|answer| answer.session.unwrap().version))
    }

    async fn lists(&self, person: &str, name: &str) -> Result<bool, Retryable> {
        let handle = session_svc::session::SessionId::parse(name)
            .unwrap()
            .handle()
            .to_string();
        let mut request = v1::ListSessionsRequest {
            issuer: ISSUER.to_owned(),
            subject: person.to_owned(),
            ..Default::default()
        };
        loop {
            let answer = self.client.clone().list_sessions(request.clone()).await;
            let answer = answer.map_err(retryable)?.into_inner();
            if answer.sessions.iter().any(|session| session.handle == handle) {
                return Ok(true);
            }
            if answer.next_page_token.is_empty() {
                return Ok(false);
            }
            request.page_token = answer.next_page_token;
        }
    }

    async fn end(&self, name: &str) -> Result<(), Retryable> {
        let request = v1::EndSessionRequest {
            by: Some(v1::end_session_request::By::SessionId(name.to_owned())),
            ..Default::default()
        };
        found(self.client.clone().end_session(request).await).map(drop)
    }
}
