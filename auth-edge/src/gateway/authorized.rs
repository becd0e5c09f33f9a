//! What a guard judges, and what it lets pass with.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::response::Response;
use oidc::VerifiedAccessToken;

use crate::http::observe::{ClientOfToken, SessionHandle};
use crate::route_table::principal::Principal;
use crate::sessions::{CachedToken, CurrentSession};

/// What a guard looks at of a request.
pub(super) struct RequestHead<'a> {
    /// Method, path, query and headers as they came.
    pub(super) parts: &'a Parts,
    /// Whether a body comes with it.
    pub(super) has_body: bool,
    /// Whether it is a WebSocket handshake.
    pub(super) is_websocket: bool,
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
    /// By the access token the client has shown.
    pub(super) fn by_token(token: Arc<VerifiedAccessToken>) -> Self {
        Self {
            bearer: Some(token),
            ..Self::default()
        }
    }

    /// Names the session or the client for the log.
    pub(super) fn name_in(&self, response: &mut Response) {
        let extensions = response.extensions_mut();
        if let Some(token) = &self.bearer {
            extensions.insert(ClientOfToken(token.client_id.clone()));
        } else if let Some(current) = &self.current {
            extensions.insert(SessionHandle(current.session.handle.clone()));
        }
    }

    /// Who the request acts for; none where the route is not guarded.
    pub(super) fn principal(&self) -> Option<Principal<'_>> {
        match (&self.current, &self.bearer) {
            (Some(current), _) => Some((&*current.session).into()),
            (None, Some(token)) => Some((&**token).into()),
            (None, None) => None,
        }
    }
}
