//! `SessionClient`: the session API for Rust services.
//!
//! Invariants
//! - Building a client does no IO; the first call connects. Clones share connections, which are driven by the
//!   tokio runtime that made them. In a process with several runtimes, each needs its own client
//!   ([`SessionClient::for_worker`]), because a call across runtimes would wake two threads.
//! - Every call ends within its deadline, even if no address is known or no connection succeeds.
//! - A call is retried only if that is safe: it never reached a server, or its method can be repeated.
//! - Every name is resolved regularly, and all its addresses take turns. An unreachable address is skipped
//!   for a moment, and one that the name no longer resolves to is dropped.
//! - Calls use established connections. A replica that sends GOAWAY or whose connection ends gets no further
//!   calls until the client has reconnected. No call waits for that while another replica is available.
//!
//! Each method is a separate call, except that `get_session` combines concurrent reads.
//!
//! # What is repeated
//! At most three attempts, within one deadline, with a pause of 10 to 40 ms between them. The client retries
//! after silence, failures of the connection, `ERR_DEADLINE_EXCEEDED` and `ERR_UNKNOWN_ENCRYPTION_KEY`:
//!
//! | Call | Repeated | Because |
//! |---|---|---|
//! | `get_session`, `list_sessions` | yes | they change nothing |
//! | `roll_session` | yes | rolling twice is rolling once |
//! | `get_access_token` | yes, unless `force_refresh` | a forced refresh would happen twice |
//! | `create_session` | with a `request_id` | for ten minutes, the service answers with the same session |
//! | `update_session` | no | it could undo another caller's change |
//! | `end_session` | yes | idempotent; a retry may return `ended` false and no sign-out hint |
//! | `end_sessions`, `end_found_sessions` | yes | idempotent; `ended_count` counts only what the last attempt ended |
//! | `search_sessions`, `list_endings` | yes | they change nothing; each attempt has its own audit record |
//! | `watch_activity` | no | the caller opens another stream |
//! | any | if no server received it | it had no effect |
//!
//! With several replicas, repeatable calls are hedged. After a quarter of a second (reads and rolls) or a
//! second (others) the client also asks another replica. The first answer counts. A silent replica gets no
//! further calls until a new connection to it has brought data. A connection without data or ping answers for
//! two seconds fails its calls. A slow store may use the whole deadline.
//!
//! Deliberately absent: caching. An answer is valid only at its time.

mod batching;
mod call;
mod connection;
mod endpoint;
mod failure;
mod operators;
mod pool;
mod request;
mod resolve;
mod settings;
mod span;
mod stream_connections;
mod tls;
mod watch;

use std::sync::Arc;

use futures_util::Stream;
use tonic::Response;

pub use self::endpoint::EndpointId;
pub use self::failure::{Advice, SessionError};
pub use self::resolve::{Resolve, ResolveFuture, SystemResolver};
pub use self::settings::{Annotate, ClientSettings, ConnectInMemory, InvalidSettings, OnRenewal};
pub use self::tls::ClientTls;
pub use self::watch::WatchItem;

use self::call::Repeat;
use self::connection::ReplicaConnection;
use self::pool::Pool;
use crate::v1::{
    AbandonSignInRequest, AbandonSignInResponse, BeginSignInRequest, BeginSignInResponse, BindSessionRequest,
    BindSessionResponse, CreateSessionRequest, CreateSessionResponse, EndFoundSessionsRequest,
    EndFoundSessionsResponse, EndSessionRequest, EndSessionResponse, EndSessionsRequest, EndSessionsResponse,
    GetAccessTokenRequest, GetAccessTokenResponse, GetSessionRequest, GetSessionResponse, ListEndingsRequest,
    ListEndingsResponse, ListSessionsRequest, ListSessionsResponse, ReceiveSecurityEventRequest,
    ReceiveSecurityEventResponse, RollSessionRequest, RollSessionResponse, RotateCookieRequest,
    RotateCookieResponse, SearchSessionsRequest, SearchSessionsResponse, UpdateSessionRequest,
    UpdateSessionResponse, WatchSessionsRequest,
};

/// A refresh may wait for a slow provider, so a token request has a longer deadline than other calls.
const TOKEN_DEADLINE_FACTOR: u32 = 4;

/// A call examines or ends many sessions, so it has a longer deadline than other calls.
const OPERATOR_DEADLINE_FACTOR: u32 = 4;

/// Calls the session service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionClient {
    pool: Arc<Pool>,
}

/// Defines one unary method: its client and name, messages, deadline factor and whether it can be repeated.
macro_rules! unary {
    ($(#[$doc:meta])* $client:ident $name:literal $method:ident($request:ty) -> $response:ty, $repeat:expr, $factor:expr) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// The reason that the service gave, or that it was not reached within the deadline.
        pub async fn $method(&self, request: $request) -> Result<$response, SessionError> {
            let deadline = self.pool.settings.deadline * $factor;
            let (pool, request) = (&self.pool, &request);
            call::unary(pool, concat!("session.v1.", $name), deadline, $repeat(request), request, |connection, until| async move {
                let answer = connection.$client().$method(pool.request(request.clone(), until)).await;
                answer.map(Response::into_inner)
            })
            .await
        }
    };
}

impl SessionClient {
    /// A client for the service at these addresses. Does no IO.
    ///
    /// # Errors
    /// An address that is not an `http` or `https` URL with a host, or unreadable TLS material.
    pub fn new(settings: ClientSettings) -> Result<Self, InvalidSettings> {
        let pool = Arc::new(Pool::new(settings)?);
        Ok(Self { pool })
    }

    /// A client with the same settings and its own connections, for another tokio runtime.
    #[must_use]
    pub fn for_worker(&self) -> Self {
        let pool = Arc::new(self.pool.for_worker());
        Self { pool }
    }

    unary!(
        /// Claims a sign-in, or returns its result. The request names its `holder`, so a repetition is safe.
        service "SessionService/BeginSignIn" begin_sign_in(BeginSignInRequest) -> BeginSignInResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Abandons a claimed sign-in.
        service "SessionService/AbandonSignIn" abandon_sign_in(AbandonSignInRequest) -> AbandonSignInResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Creates a session. Repeated after a failure only with a `request_id`.
        service "SessionService/CreateSession" create_session(CreateSessionRequest) -> CreateSessionResponse,
        |request: &CreateSessionRequest| Repeat::safe_if(!request.request_id.is_empty()), 1
    );
    /// Reads a session without extending it.
    ///
    /// # Errors
    /// The reason that the service gave, or that it was not reached within the deadline.
    pub async fn get_session(&self, request: GetSessionRequest) -> Result<GetSessionResponse, SessionError> {
        let (pool, request) = (&self.pool, &request);
        let read = |connection: Arc<ReplicaConnection>, until| async move {
            connection.reads.get(pool.annotations(), request, until).await
        };
        let method = "session.v1.SessionService/GetSession";
        call::unary(pool, method, pool.settings.deadline, Repeat::Soon, request, read).await
    }

    unary!(
        /// Reads a session for its browser and extends it by use.
        service "SessionService/RollSession" roll_session(RollSessionRequest) -> RollSessionResponse, |_: &_| Repeat::Soon, 1
    );
    unary!(
        /// Replaces the user claims or the attributes of a session.
        service "SessionService/UpdateSession" update_session(UpdateSessionRequest) -> UpdateSessionResponse, |_: &_| Repeat::OnlyUnsent, 1
    );
    unary!(
        /// Binds a session to a key of its browser's device.
        service "SessionService/BindSession" bind_session(BindSessionRequest) -> BindSessionResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Reports that a browser used another generation of the session's cookie than the current one.
        service "SessionService/RotateCookie" rotate_cookie(RotateCookieRequest) -> RotateCookieResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Returns a valid access token, and refreshes it first if needed.
        service "SessionService/GetAccessToken" get_access_token(GetAccessTokenRequest) -> GetAccessTokenResponse,
        |request: &GetAccessTokenRequest| Repeat::safe_if(!request.force_refresh), TOKEN_DEADLINE_FACTOR
    );
    unary!(
        /// Ends a session.
        service "SessionService/EndSession" end_session(EndSessionRequest) -> EndSessionResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Ends all sessions of a user or of a provider session.
        service "SessionService/EndSessions" end_sessions(EndSessionsRequest) -> EndSessionsResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Processes a security event token. A rejected token is also an answer.
        service "SessionService/ReceiveSecurityEvent" receive_security_event(ReceiveSecurityEventRequest) -> ReceiveSecurityEventResponse,
        |_: &_| Repeat::Safe, TOKEN_DEADLINE_FACTOR
    );
    unary!(
        /// Lists the sessions of a user, the newest first.
        service "SessionService/ListSessions" list_sessions(ListSessionsRequest) -> ListSessionsResponse, |_: &_| Repeat::Soon, 1
    );
    unary!(
        /// Finds sessions of all people of a provider.
        operators "OperatorSessionService/SearchSessions" search_sessions(SearchSessionsRequest) -> SearchSessionsResponse,
        |_: &_| Repeat::Safe, OPERATOR_DEADLINE_FACTOR
    );
    unary!(
        /// Ends the sessions of a filter. Repeat it until `complete` is true.
        operators "OperatorSessionService/EndFoundSessions" end_found_sessions(EndFoundSessionsRequest) -> EndFoundSessionsResponse,
        |_: &_| Repeat::Safe, OPERATOR_DEADLINE_FACTOR
    );
    unary!(
        /// Lists why a person's sessions ended.
        operators "OperatorSessionService/ListEndings" list_endings(ListEndingsRequest) -> ListEndingsResponse,
        |_: &_| Repeat::Safe, OPERATOR_DEADLINE_FACTOR
    );

    /// Watches sessions while the stream is read. If the connection ends, it resumes on any replica after the
    /// last event. To miss no ending, read sessions again at every [`WatchItem::Missed`], and use cached ones
    /// only between [`WatchItem::Connected`] and [`WatchItem::Lost`].
    ///
    /// The stream ends by itself only if the service rejects the request as malformed.
    pub fn watch(
        &self,
        request: WatchSessionsRequest,
    ) -> impl Stream<Item = WatchItem> + Send + Unpin + use<> {
        watch::watch(Arc::clone(&self.pool), None, request)
    }

    /// Watches on every replica at once, with one stream each that is reopened whenever it ends. Begins with
    /// [`WatchItem::Found`] for every known replica, and follows replicas that come and go.
    pub fn watch_each(
        &self,
        request: WatchSessionsRequest,
    ) -> impl Stream<Item = (EndpointId, WatchItem)> + Send + Unpin + use<> {
        watch::each(Arc::clone(&self.pool), request)
    }

    /// The known addresses, and every change of them. Empty before the first call.
    #[must_use]
    pub fn endpoints(&self) -> tokio::sync::watch::Receiver<Vec<EndpointId>> {
        self.pool.endpoints()
    }
}
