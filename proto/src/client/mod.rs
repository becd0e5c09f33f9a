//! `SessionClient`: the session API for Rust services.
//!
//! Invariants
//! - Building one does no IO; the first call connects. Clones share connections, which the tokio runtime drives that made them: a process
//!   with several makes each a client of its own ([`SessionClient::for_worker`]), for a call from another one would wake two threads.
//! - Every call ends within its deadline, also when no address is known or no connection can be made.
//! - A call is repeated only where repeating is safe: it never reached a server, or its method may be repeated.
//! - Every name is resolved again and again, and all its addresses take turns; one that cannot be reached is left
//!   out for a moment, and one the name does not lead to any more is dropped.
//! - Calls go over established connections. A replica that sends GOAWAY, or whose connection ends, has no further calls
//!   until it has been connected to again, which no call waits for while there is another replica.
//!
//! Each method is a call of its own, but for `get_session`: reads that come while another one is in flight are sent together.
//!
//! # What is repeated
//! At most three attempts, all within the one deadline, with a pause of 10 to 40 ms between them. What the service says
//! is never repeated; what the connection says (refused, reset, gone away) and silence are, like this:
//!
//! | Call | Repeated | Because |
//! |---|---|---|
//! | `get_session`, `list_sessions` | yes | they change nothing |
//! | `roll_session` | yes | rolling twice is rolling once |
//! | `get_access_token` | yes, unless `force_refresh` | callers share one refresh; a forced one would be a second |
//! | `create_session` | with a `request_id` | the service remembers it for ten minutes and answers with the same session |
//! | `update_session` | no | a change somebody made in between would be undone |
//! | `end_session` | yes | ended stays ended; after a lost answer `ended` is false and the sign-out hint is gone |
//! | `end_sessions` | yes | likewise; `ended_count` is what the last attempt ended |
//! | any | if it was never sent | no connection, no effect |
//!
//! With several replicas, a call that may be repeated is sent to another one as well where the first says nothing for a quarter of a second
//! (reads and rolls) or a second (the others), and the first answer counts: a replica that is cut off costs that moment once. It
//! has no further calls until a new connection to it has brought something. A connection that brings nothing for two
//! seconds, no answer to a ping either, fails its calls. A call that waits for a slow store has its deadline.
//!
//! Deliberately absent: caching. What a session says is true at the moment of the answer and not later.

mod batching;
mod call;
mod connection;
mod endpoint;
mod failure;
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
pub use self::settings::{Annotate, ClientSettings, InvalidSettings, OnRenewal};
pub use self::tls::ClientTls;
pub use self::watch::WatchItem;

use self::call::Repeat;
use self::connection::ReplicaConnection;
use self::pool::Pool;
use crate::v1::{
    AbandonSignInRequest, AbandonSignInResponse, BeginSignInRequest, BeginSignInResponse, BindSessionRequest,
    BindSessionResponse, CreateSessionRequest, CreateSessionResponse, EndSessionRequest, EndSessionResponse,
    EndSessionsRequest, EndSessionsResponse, GetAccessTokenRequest, GetAccessTokenResponse,
    GetSessionRequest, GetSessionResponse, ListSessionsRequest, ListSessionsResponse,
    ReceiveSecurityEventRequest, ReceiveSecurityEventResponse, RollSessionRequest, RollSessionResponse,
    RotateCookieRequest, RotateCookieResponse, UpdateSessionRequest, UpdateSessionResponse,
    WatchSessionsRequest,
};

/// A refresh may have to wait for a slow provider, so a token has more time than the other calls.
const TOKEN_DEADLINE_FACTOR: u32 = 4;

/// Calls the session service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionClient {
    pool: Arc<Pool>,
}

/// Writes one unary method: its name, messages, deadline factor and whether it may be repeated.
macro_rules! unary {
    ($(#[$doc:meta])* $name:literal $method:ident($request:ty) -> $response:ty, $repeat:expr, $factor:expr) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// The reason the service gave, or that it could not be reached within the deadline.
        pub async fn $method(&self, request: $request) -> Result<$response, SessionError> {
            let deadline = self.pool.settings.deadline * $factor;
            let (pool, request) = (&self.pool, &request);
            call::unary(pool, concat!("session.v1.SessionService/", $name), deadline, $repeat(request), request, |connection, until| async move {
                let answer = connection.service().$method(pool.request(request.clone(), until)).await;
                answer.map(Response::into_inner)
            })
            .await
        }
    };
}

impl SessionClient {
    /// A client for the service at the addresses given. Does no IO.
    ///
    /// # Errors
    /// An address that is not an `http` or `https` URL with a host, or TLS material that cannot be read.
    pub fn new(settings: ClientSettings) -> Result<Self, InvalidSettings> {
        let pool = Arc::new(Pool::new(settings)?);
        Ok(Self { pool })
    }

    /// A client of the same settings with connections of its own: for another tokio runtime.
    #[must_use]
    pub fn for_worker(&self) -> Self {
        let pool = Arc::new(self.pool.for_worker());
        Self { pool }
    }

    unary!(
        /// Claims a sign-in, or gives what became of it. Its holder makes repeating it safe.
        "BeginSignIn" begin_sign_in(BeginSignInRequest) -> BeginSignInResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Gives up a sign-in that was begun.
        "AbandonSignIn" abandon_sign_in(AbandonSignInRequest) -> AbandonSignInResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Begins a session. Repeated on failure only with a `request_id`.
        "CreateSession" create_session(CreateSessionRequest) -> CreateSessionResponse,
        |request: &CreateSessionRequest| Repeat::safe_if(!request.request_id.is_empty()), 1
    );
    /// Reads a session without touching it.
    ///
    /// # Errors
    /// The reason the service gave, or that it could not be reached within the deadline.
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
        "RollSession" roll_session(RollSessionRequest) -> RollSessionResponse, |_: &_| Repeat::Soon, 1
    );
    unary!(
        /// Replaces the user claims or the attributes of a session.
        "UpdateSession" update_session(UpdateSessionRequest) -> UpdateSessionResponse, |_: &_| Repeat::OnlyUnsent, 1
    );
    unary!(
        /// Binds a session to a key of its browser's device.
        "BindSession" bind_session(BindSessionRequest) -> BindSessionResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Tells that another generation of a session's cookie than the one that counts was used.
        "RotateCookie" rotate_cookie(RotateCookieRequest) -> RotateCookieResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Hands out a valid access token, refreshed first where needed.
        "GetAccessToken" get_access_token(GetAccessTokenRequest) -> GetAccessTokenResponse,
        |request: &GetAccessTokenRequest| Repeat::safe_if(!request.force_refresh), TOKEN_DEADLINE_FACTOR
    );
    unary!(
        /// Ends a session.
        "EndSession" end_session(EndSessionRequest) -> EndSessionResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Ends all sessions of a person or of a provider session.
        "EndSessions" end_sessions(EndSessionsRequest) -> EndSessionsResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Takes a security event token; what is refused is an answer too.
        "ReceiveSecurityEvent" receive_security_event(ReceiveSecurityEventRequest) -> ReceiveSecurityEventResponse,
        |_: &_| Repeat::Safe, TOKEN_DEADLINE_FACTOR
    );
    unary!(
        /// Lists the sessions of a person, the newest first.
        "ListSessions" list_sessions(ListSessionsRequest) -> ListSessionsResponse, |_: &_| Repeat::Soon, 1
    );

    /// Watches sessions for as long as the stream is read: opened again after the last event whenever it ends, on
    /// whichever replica can be reached. A consumer that reads its sessions again at every [`WatchItem::Missed`], and
    /// believes what it remembers only between [`WatchItem::Connected`] and [`WatchItem::Lost`], never misses an ending.
    ///
    /// The stream ends by itself only when the service calls the request malformed.
    pub fn watch(
        &self,
        request: WatchSessionsRequest,
    ) -> impl Stream<Item = WatchItem> + Send + Unpin + use<> {
        watch::watch(Arc::clone(&self.pool), None, request)
    }

    /// Watches on every replica at once, each by a stream of its own that is opened again whenever it ends. Begins with
    /// [`WatchItem::Found`] for every replica known and goes on with those that come and go.
    pub fn watch_each(
        &self,
        request: WatchSessionsRequest,
    ) -> impl Stream<Item = (EndpointId, WatchItem)> + Send + Unpin + use<> {
        watch::each(Arc::clone(&self.pool), request)
    }

    /// The addresses known, and every change of them. Empty before the first call.
    #[must_use]
    pub fn endpoints(&self) -> tokio::sync::watch::Receiver<Vec<EndpointId>> {
        self.pool.endpoints()
    }
}
