//! What a guard judges, and what it lets pass with.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Uri};
use oidc::VerifiedAccessToken;

use crate::route_table::principal::Principal;
use crate::sessions::{CachedToken, CurrentSession};

/// The parts of a request a guard looks at.
pub(super) struct RequestHead<'a> {
    /// Method.
    pub(crate) method: &'a Method,
    /// Path and query as they came.
    pub(crate) uri: &'a Uri,
    /// Headers as they came.
    pub(crate) headers: &'a HeaderMap,
    /// Who opened the connection.
    pub(crate) peer: IpAddr,
    /// Whether a body comes with it.
    pub(crate) has_body: bool,
    /// Whether it is a WebSocket handshake.
    pub(crate) is_websocket: bool,
}

/// What an authorized request is passed on with.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorized {
    /// The session, where the route is guarded.
    pub(crate) current: Option<CurrentSession>,
    /// The access token, where the route attaches it.
    pub(crate) access_token: Option<Arc<CachedToken>>,
    /// The access token the client has shown, where it stands in the place of a session.
    pub(crate) bearer: Option<Arc<VerifiedAccessToken>>,
}

impl Authorized {
    /// Who the request acts for; none where the route is not guarded.
    pub(super) fn principal(&self) -> Option<Principal<'_>> {
        match (&self.current, &self.bearer) {
            (Some(current), _) => Some((&*current.session).into()),
            (None, Some(token)) => Some((&**token).into()),
            (None, None) => None,
        }
    }
}
