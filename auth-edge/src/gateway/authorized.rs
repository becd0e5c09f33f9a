//! The input of a guard, and its result.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::response::Response;
use oidc::VerifiedAccessToken;

use crate::http::observe::{ClientOfToken, SessionHandle};
use crate::route_table::principal::Principal;
use crate::sessions::{CachedToken, CurrentSession};

/// The parts of a request that a guard reads.
pub(super) struct RequestHead<'a> {
    /// Method, path, query and headers as received.
    pub(super) parts: &'a Parts,
    /// Whether the request has a body.
    pub(super) has_body: bool,
    /// Whether the request is a WebSocket handshake.
    pub(super) is_websocket: bool,
}

/// The credentials that an authorized request is forwarded with.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorized {
    /// The session, if the route is guarded.
    pub(crate) current: Option<CurrentSession>,
    /// The access token, if the route attaches one.
    pub(crate) access_token: Option<Arc<CachedToken>>,
    /// The client's own access token, if it replaces a session.
    pub(crate) bearer: Option<Arc<VerifiedAccessToken>>,
}

impl Authorized {
    /// Authorized by the client's own access token.
    pub(super) fn by_token(token: Arc<VerifiedAccessToken>) -> Self {
        Self {
            bearer: Some(token),
            ..Self::default()
        }
    }

    /// Adds the session or the client to the response extensions, for the log.
    pub(super) fn name_in(&self, response: &mut Response) {
        let extensions = response.extensions_mut();
        if let Some(token) = &self.bearer {
            extensions.insert(ClientOfToken(token.client_id.clone()));
        } else if let Some(current) = &self.current {
            extensions.insert(SessionHandle(current.session.handle.clone()));
        }
    }

    /// The user or client that the request acts for; `None` if the route is not guarded.
    pub(super) fn principal(&self) -> Option<Principal<'_>> {
        match (&self.current, &self.bearer) {
            (Some(current), _) => Some((&*current.session).into()),
            (None, Some(token)) => Some((&**token).into()),
            (None, None) => None,
        }
    }
}
