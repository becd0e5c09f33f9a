//! A service behind an access policy, certificates for everyone, and clients that show them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chassis::clock::SystemClock;
use chassis::readiness::Readiness;
use chassis::runtime::{Runtime, Workers};
use chassis::secret::{Reloading, Secret};
use chassis::tls::{ServerTls, TlsFiles};
use oidc::TokenHint;
use oidc::{
    ExpectedRefreshedIdToken, GrantError, IdToken, IdTokenError, OAuthError, ProviderError, RefreshedTokens,
    RevocationResult,
};
use prometheus::Registry;
use session_proto::error::reason_of;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason};
use session_svc::callers::{Callers, Rpc, parse};
use session_svc::refresh::RefreshProvider;
use session_svc::session::Lifetime;
use session_svc::sessions::SessionLimits;
use session_svc::start::{AccessPolicy, ServiceParts, serve};
use session_svc::store::KeyValueStore;
use session_svc::store::embedded::EmbeddedStore;
use session_svc::vault::KeyRing;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};

use crate::certificates::Certificates;

pub(crate) type Client = SessionServiceClient<Channel>;

/// How often these tests check the files.
const POLL: Duration = Duration::from_millis(20);

/// The identity of an unprivileged but listed caller.
pub(crate) const EDGE: &str = "spiffe://prod.example/ns/auth/sa/auth-edge";
pub(crate) const ORDERS: &str = "dns:orders.internal";

/// A provider that refreshes every token but this one.
#[derive(Clone)]
struct AnyProvider;

/// The refresh token that is refused.
pub(crate) const SPENT: &str = "spent-refresh-token";

#[async_trait]
impl RefreshProvider for AnyProvider {
    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, GrantError> {
        if refresh_token == SPENT {
            return Err(GrantError::Refused(OAuthError::new("invalid_grant")));
        }
        Ok(RefreshedTokens {
            access_token: "fresh-token-of-the-audit".to_owned(),
            token_type: "Bearer".to_owned(),
            scope: None,
            expires_at: now + 3_600,
            lifetime_secs: 3_600,
            refresh_token: Some("rotated-token-of-the-audit".to_owned()),
            id_token: None,
        })
    }

    async fn validate(
        &self,
        _: &str,
        _: &ExpectedRefreshedIdToken<'_>,
        _: u64,
    ) -> Result<IdToken, IdTokenError> {
        Err(IdTokenError::Signature)
    }

    async fn revoke(&self, _: &str, _: TokenHint, _: u64) -> Result<RevocationResult, ProviderError> {
        Ok(RevocationResult::Done)
    }
}

/// A service behind mutual TLS. Certificates: `ca` (server and clients), `server`, `client` (no name), `edge`
/// (a SPIFFE ID), `orders` (a DNS name).
pub(crate) struct World {
    pub(crate) certificates: Certificates,
    pub(crate) port: u16,
    pub(crate) metrics: Registry,
    _shutdown: DropGuard,
}

/// With this list of callers, or open to every verified client.
pub(crate) async fn world(list: Option<&str>) -> World {
    world_on(list, memory()).await
}

pub(crate) fn memory() -> Arc<dyn KeyValueStore> {
    Arc::new(EmbeddedStore::in_memory(Arc::new(SystemClock), 1_000).unwrap())
}

pub(crate) async fn world_on(list: Option<&str>, store: Arc<dyn KeyValueStore>) -> World {
    super::log::log();
    let certificates = tokio::task::spawn_blocking(|| {
        let certificates = Certificates::make();
        certificates.issue("ca", "edge", &format!("subjectAltName=URI:{EDGE},DNS:localhost"));
        certificates.issue(
            "ca",
            "orders",
            "subjectAltName=DNS:Orders.internal,DNS:*.internal",
        );
        certificates
    })
    .await
    .unwrap();
    let files = TlsFiles {
        certificate: certificates.path("server.pem"),
        key: certificates.path("server.key"),
        client_ca: Some(certificates.path("ca.pem")),
    };
    // The service's own files, so that each can be replaced without the other.
    let files = TlsFiles {
        client_ca: Some(copied(
            &certificates,
            files.client_ca.as_ref().unwrap(),
            "clients.pem",
        )),
        ..files
    };
    let tls = ServerTls::load(&files).unwrap().recheck_every(POLL);
    tls.follow(POLL, files);
    let callers = match list {
        None => Callers::anyone(),
        Some(list) => {
            let path = certificates.path("callers.toml");
            std::fs::write(&path, list).unwrap();
            let callers = Callers::listed(parse(list).unwrap());
            callers.follow(POLL, &path);
            callers
        }
    };
    let access = AccessPolicy {
        tls: Some(tls),
        callers,
    };
    let metrics = Registry::new();
    let (port, shutdown) = start_measured(access, store, metrics.clone()).await;
    World {
        certificates,
        port,
        metrics,
        _shutdown: shutdown.drop_guard(),
    }
}

fn copied(certificates: &Certificates, from: &std::path::Path, name: &str) -> std::path::PathBuf {
    let to = certificates.path(name);
    std::fs::copy(from, &to).unwrap();
    to
}

/// Starts a service behind an access policy. Returns its port and its stop handle.
pub(crate) async fn start(access: AccessPolicy, store: Arc<dyn KeyValueStore>) -> (u16, CancellationToken) {
    start_measured(access, store, Registry::new()).await
}

async fn start_measured(
    access: AccessPolicy,
    store: Arc<dyn KeyValueStore>,
    metrics: Registry,
) -> (u16, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let parts = ServiceParts {
        transmitters: None,
        receivers: None,
        store,
        keys: Reloading::new(KeyRing::parse(&[Secret::new("ab".repeat(32))]).unwrap()),
        provider: AnyProvider,
        lifetime: Lifetime {
            rolling_ms: 86_400_000,
            absolute_ms: 604_800_000,
            roll_interval_ms: 60_000,
        },
        limits: SessionLimits {
            revalidate_ms: 60_000,
            refresh_lease: session_svc::refresh::LEASE,
            max_bytes: 65_536,
            max_per_subject: 0,
            operator_search: false,
            watch_heartbeat: POLL,
        },
    };
    let shutdown = CancellationToken::new();
    let runtime = Runtime {
        clock: Arc::new(SystemClock),
        shutdown: shutdown.clone(),
        readiness: Readiness::new(),
        metrics,
        workers: Workers::here(),
    };
    tokio::spawn(async move { serve(access, parts, listener, runtime).await.unwrap() });
    (port, shutdown)
}

impl World {
    /// A channel that presents this certificate and trusts this authority.
    pub(crate) fn endpoint(&self, certificate: Option<&str>, authority: &str) -> Endpoint {
        let read = |name: String| std::fs::read(self.certificates.path(&name)).unwrap();
        let mut tls = ClientTlsConfig::new()
            .domain_name("localhost")
            .ca_certificate(Certificate::from_pem(read(format!("{authority}.pem"))));
        if let Some(name) = certificate {
            let (pem, key) = (read(format!("{name}.pem")), read(format!("{name}.key")));
            tls = tls.identity(Identity::from_pem(pem, key));
        }
        Endpoint::try_from(format!("https://127.0.0.1:{}", self.port))
            .unwrap()
            .tls_config(tls)
            .unwrap()
    }

    /// A channel over a connection of its own.
    pub(crate) fn channel(&self, certificate: &str) -> Channel {
        self.endpoint(Some(certificate), "ca").connect_lazy()
    }

    pub(crate) fn client(&self, certificate: &str) -> Client {
        SessionServiceClient::new(self.channel(certificate))
    }

    /// Replaces a file atomically, as Kubernetes does with a mounted Secret.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) {
        let new = self.certificates.path(&format!("{name}.new"));
        std::fs::write(&new, content).unwrap();
        std::fs::rename(new, self.certificates.path(name)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.certificates.path(name)).unwrap()
    }
}

/// The methods of the session service.
pub(crate) fn session_rpcs() -> impl Iterator<Item = Rpc> {
    Rpc::ALL.iter().copied().filter(|rpc| !rpc.is_for_operators())
}

/// One entry of a list of callers.
pub(crate) fn entry(identity: &str, rpcs: &[&str]) -> String {
    format!("[[caller]]\nidentity = {identity:?}\nrpcs = {rpcs:?}\n")
}

/// Calls a method with an empty message: an allowed caller gets an error that names the missing field.
pub(crate) async fn call(client: &mut Client, rpc: Rpc) -> Result<(), Status> {
    match rpc {
        Rpc::BeginSignIn => client
            .begin_sign_in(v1::BeginSignInRequest::default())
            .await
            .map(|_| ()),
        Rpc::AbandonSignIn => client
            .abandon_sign_in(v1::AbandonSignInRequest::default())
            .await
            .map(|_| ()),
        Rpc::CreateSession => client
            .create_session(v1::CreateSessionRequest::default())
            .await
            .map(|_| ()),
        Rpc::GetSession => client
            .get_session(v1::GetSessionRequest::default())
            .await
            .map(|_| ()),
        Rpc::BatchGetSessions => client
            .batch_get_sessions(v1::BatchGetSessionsRequest::default())
            .await
            .map(|_| ()),
        Rpc::RollSession => client
            .roll_session(v1::RollSessionRequest::default())
            .await
            .map(|_| ()),
        Rpc::UpdateSession => client
            .update_session(v1::UpdateSessionRequest::default())
            .await
            .map(|_| ()),
        Rpc::RotateCookie => client
            .rotate_cookie(v1::RotateCookieRequest::default())
            .await
            .map(|_| ()),
        Rpc::ReceiveSecurityEvent => client
            .receive_security_event(v1::ReceiveSecurityEventRequest::default())
            .await
            .map(|_| ()),
        Rpc::BindSession => client
            .bind_session(v1::BindSessionRequest::default())
            .await
            .map(|_| ()),
        Rpc::GetAccessToken => client
            .get_access_token(v1::GetAccessTokenRequest::default())
            .await
            .map(|_| ()),
        Rpc::EndSession => client
            .end_session(v1::EndSessionRequest::default())
            .await
            .map(|_| ()),
        Rpc::EndSessions => client
            .end_sessions(v1::EndSessionsRequest::default())
            .await
            .map(|_| ()),
        Rpc::ListSessions => client
            .list_sessions(v1::ListSessionsRequest::default())
            .await
            .map(|_| ()),
        Rpc::WatchSessions => client
            .watch_sessions(v1::WatchSessionsRequest::default())
            .await
            .map(|_| ()),
        Rpc::FollowSessions => client
            .follow_sessions(tokio_stream::once(v1::FollowSessionsRequest::default()))
            .await
            .map(|_| ()),
        Rpc::ListProviders
        | Rpc::SearchSessions
        | Rpc::EndFoundSessions
        | Rpc::ListEndings
        | Rpc::WatchActivity => unreachable!("{rpc:?} is a method of another service"),
    }
}

/// Whether a call reached its method.
pub(crate) async fn may_call(client: &mut Client, rpc: Rpc) -> Result<(), ErrorReason> {
    match call(client, rpc).await {
        Ok(()) => Ok(()),
        Err(status) => match reason_of(&status).expect("a reason of ours") {
            // The call reached its method, which is not configured.
            ErrorReason::ErrInvalidArgument | ErrorReason::ErrUnimplemented => Ok(()),
            reason => {
                let turned_away = matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied);
                assert!(turned_away, "{status:?}");
                Err(reason)
            }
        },
    }
}

/// Waits until a call reaches its method, or is denied.
pub(crate) async fn until(client: &mut Client, rpc: Rpc, expected: Result<(), ErrorReason>) {
    within(async {
        while may_call(client, rpc).await != expected {
            tokio::time::sleep(POLL).await;
        }
    })
    .await;
}

/// Nothing in these tests takes this long.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work)
        .await
        .expect("within 30 seconds")
}
