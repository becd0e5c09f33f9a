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

/// The credentials that the edge uses when it forwards an authorized request.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestCredentials {
    /// The session that authorized the request; `None` for a bearer token, an open route or a preflight.
    pub(crate) current: Option<CurrentSession>,
    /// The session's access token, if the edge has to attach one.
    pub(crate) access_token: Option<Arc<CachedToken>>,
    /// The access token that the client sent in place of a session cookie.
    pub(crate) bearer: Option<Arc<VerifiedAccessToken>>,
}

impl RequestCredentials {
    /// Authorizes a request by the access token that the client sent. There is no session.
    pub(super) fn by_token(token: Arc<VerifiedAccessToken>) -> Self {
        Self {
            bearer: Some(token),
            ..Self::default()
        }
    }

    /// Adds the session's handle or the client's ID to the response extensions, for the access log.
    pub(super) fn name_in(&self, response: &mut Response) {
        let extensions = response.extensions_mut();
        if let Some(token) = &self.bearer {
            extensions.insert(ClientOfToken(token.client_id.clone()));
        } else if let Some(current) = &self.current {
            extensions.insert(SessionHandle(current.session.handle.clone()));
        }
    }

    /// The user or client that sent the request; `None` if the request has neither a session nor a token.
    pub(super) fn principal(&self) -> Option<Principal<'_>> {
        match (&self.current, &self.bearer) {
            (Some(current), _) => Some((&*current.session).into()),
            (None, Some(token)) => Some((&**token).into()),
            (None, None) => None,
        }
    }
}
