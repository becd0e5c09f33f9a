//! `SessionClient`: the session API for Rust services.
//!
//! Invariants
//! - Building one does no IO; the first call connects. Clones share connections.
//! - Every call ends within its deadline, also when no address is known or no connection can be made.
//! - A call is repeated only where repeating is safe: it never reached a server, or its method may be repeated.
//! - Every name is resolved again and again, and all its addresses take turns; one that cannot be reached is left
//!   out for a moment.
//!
//! Deliberately absent: caching. What a session says is true at the moment of the answer and not later.

mod call;
mod failure;
mod pool;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Request, Streaming};

pub use self::failure::SessionError;
pub use self::settings::{Annotate, ClientSettings, ClientTls, InvalidSettings};

use self::call::Repeat;
use self::pool::Pool;
use crate::v1::session_service_client::SessionServiceClient;
use crate::v1::{
    CreateSessionRequest, CreateSessionResponse, EndSessionRequest, EndSessionResponse, EndSessionsRequest,
    EndSessionsResponse, GetAccessTokenRequest, GetAccessTokenResponse, GetSessionRequest,
    GetSessionResponse, ListSessionsRequest, ListSessionsResponse, RollSessionRequest, RollSessionResponse,
    SessionEvent, UpdateSessionRequest, UpdateSessionResponse, WatchSessionsRequest,
};

/// Answers larger than this are refused: a page of 200 sessions of the largest size a service stores fits.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A refresh may have to wait for a slow provider, so a token has more time than the other calls.
const TOKEN_DEADLINE_FACTOR: u32 = 4;

/// Calls the session service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionClient {
    pool: Arc<Pool>,
    deadline: Duration,
}

fn service(channel: Channel) -> SessionServiceClient<Channel> {
    SessionServiceClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX)
}

/// Writes one unary method: its name, messages, deadline factor and whether it may be repeated.
macro_rules! unary {
    ($(#[$doc:meta])* $method:ident($request:ty) -> $response:ty, $repeat:expr, $factor:expr) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// The reason the service gave, or that it could not be reached within the deadline.
        pub async fn $method(&self, request: $request) -> Result<$response, SessionError> {
            let deadline = self.deadline * $factor;
            call::unary(&self.pool, deadline, $repeat(&request), request, |channel, request: Request<$request>| async move {
                service(channel).$method(request).await
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
        let deadline = settings.deadline;
        Ok(Self {
            pool: Arc::new(Pool::new(settings)?),
            deadline,
        })
    }

    unary!(
        /// Begins a session. Repeated on failure only with a `request_id`.
        create_session(CreateSessionRequest) -> CreateSessionResponse,
        |request: &CreateSessionRequest| Repeat::safe_if(!request.request_id.is_empty()), 1
    );
    unary!(
        /// Reads a session without touching it.
        get_session(GetSessionRequest) -> GetSessionResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Reads a session for its browser and extends it by use.
        roll_session(RollSessionRequest) -> RollSessionResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Replaces the user claims or the attributes of a session.
        update_session(UpdateSessionRequest) -> UpdateSessionResponse, |_: &_| Repeat::OnlyUnsent, 1
    );
    unary!(
        /// Hands out a valid access token, refreshed first where needed.
        get_access_token(GetAccessTokenRequest) -> GetAccessTokenResponse,
        |request: &GetAccessTokenRequest| Repeat::safe_if(!request.force_refresh), TOKEN_DEADLINE_FACTOR
    );
    unary!(
        /// Ends a session.
        end_session(EndSessionRequest) -> EndSessionResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Ends all sessions of a person or of a provider session.
        end_sessions(EndSessionsRequest) -> EndSessionsResponse, |_: &_| Repeat::Safe, 1
    );
    unary!(
        /// Lists the sessions of a person, the newest first.
        list_sessions(ListSessionsRequest) -> ListSessionsResponse, |_: &_| Repeat::Safe, 1
    );

    /// Watches sessions on one replica, which tells of all replicas. The deadline covers opening the stream, not the
    /// stream: a stream without a heartbeat for a few intervals is dead, and the caller opens another.
    ///
    /// # Errors
    /// As for every call.
    pub async fn watch_sessions(
        &self,
        request: WatchSessionsRequest,
    ) -> Result<Streaming<SessionEvent>, SessionError> {
        call::stream(
            &self.pool,
            self.deadline,
            request,
            |channel, request| async move { service(channel).watch_sessions(request).await },
        )
        .await
    }
}
