//! The edge's own wrappers of calls to the session service, each with its effect on the cache.
//!
//! Invariants
//! - A call that changes or ends a session drops it from the cache before its answer is used, or if it fails.
//! - No token of an ended session gets into a log.

use std::sync::Arc;

use session_proto::client::SessionError;
use session_proto::v1::{
    self, BindSessionRequest, Cause, CreateSessionRequest, Device, EndSessionRequest, EndSessionResponse,
    ErrorReason, GetAccessTokenRequest, GetSessionRequest, GetSessionResponse, RollSessionRequest,
    RotateCookieRequest, UpdateSessionRequest, end_session_request, get_session_request,
};

use super::cookie_rotation::{GRACE, Generation, generation_bytes};
use super::{CachedToken, SessionRepository, TokenFor};
use crate::sessions::cookies::SessionId;

impl SessionRepository {
    /// Creates a session and returns its secret ID.
    pub(crate) async fn create(
        &self,
        request: CreateSessionRequest,
    ) -> Result<(SessionId, v1::Session), SessionError> {
        let replaced = SessionId::parse(&request.replaces_session_id);
        let response = self.client.create_session(request).await;
        // Even if no answer came: the session may have ended.
        if let Some(replaced) = replaced {
            self.cache.forget(&replaced);
        }
        let response = response?;
        match (SessionId::parse(&response.session_id), response.session) {
            (Some(id), Some(session)) => Ok((id, session)),
            _ => Err(malformed()),
        }
    }

    /// Reads a session without touching it.
    pub(crate) async fn get(&self, id: &SessionId) -> Result<Box<v1::Session>, SessionError> {
        self.read(id).await?.session.ok_or_else(malformed)
    }

    pub(super) async fn read(&self, id: &SessionId) -> Result<GetSessionResponse, SessionError> {
        let by = Some(get_session_request::By::SessionId(id.expose().to_owned()));
        self.client.get_session(GetSessionRequest { by }).await
    }

    /// Extends a session by use. Returns whether its deadline moved.
    pub(super) async fn roll_session(
        &self,
        id: &SessionId,
        device: Device,
    ) -> Result<(Box<v1::Session>, bool), SessionError> {
        let request = RollSessionRequest {
            session_id: id.expose().to_owned(),
            device: Some(device),
        };
        let response = self.client.roll_session(request).await?;
        Ok((response.session.ok_or_else(malformed)?, response.rolled))
    }

    /// Replaces the user claims of a session that is still at `version`.
    pub(crate) async fn update_user(
        &self,
        id: &SessionId,
        user: String,
        version: u64,
    ) -> Result<v1::Session, SessionError> {
        let request = UpdateSessionRequest {
            session_id: id.expose().to_owned(),
            user,
            version,
            ..UpdateSessionRequest::default()
        };
        let updated = self.client.update_session(request).await;
        self.cache.forget(id);
        updated?.session.ok_or_else(malformed)
    }

    /// Reports a cookie generation that this edge cannot judge. Returns the session after the report.
    pub(super) async fn rotate_cookie(
        &self,
        id: &SessionId,
        generation: Option<Generation>,
    ) -> Result<Box<v1::Session>, SessionError> {
        let request = RotateCookieRequest {
            session_id: id.expose().to_owned(),
            id: generation
                .map(|shown| generation_bytes(&shown.id).to_vec())
                .unwrap_or_default(),
            parent: generation
                .map(|shown| generation_bytes(&shown.parent).to_vec())
                .unwrap_or_default(),
            grace: prost_types::Duration::try_from(GRACE).ok(),
        };
        let rotated = self.client.rotate_cookie(request).await;
        // The cached session has the earlier generation.
        self.cache.forget(id);
        rotated?.session.map(Box::new).ok_or_else(malformed)
    }

    /// Binds a session to the key of its browser's device.
    pub(crate) async fn bind(&self, id: &SessionId, jwk: String) -> Result<v1::Session, SessionError> {
        let request = BindSessionRequest {
            session_id: id.expose().to_owned(),
            jwk,
        };
        let bound = self.client.bind_session(request).await;
        self.cache.forget(id);
        bound?.session.ok_or_else(malformed)
    }

    /// The requested valid access token of a session.
    pub(crate) async fn access_token(
        &self,
        id: &SessionId,
        wanted: &TokenFor,
    ) -> Result<Arc<CachedToken>, SessionError> {
        if let Some(token) = self.cache.token(id, wanted, self.clock.now_ms()) {
            return Ok(token);
        }
        let token = self.fetch_token(id, wanted, false).await?;
        self.cache.keep_token(id, &token);
        Ok(token)
    }

    /// An access token from the session service, past the cache.
    pub(crate) async fn fetch_token(
        &self,
        id: &SessionId,
        wanted: &TokenFor,
        force_refresh: bool,
    ) -> Result<Arc<CachedToken>, SessionError> {
        let requested_at = self.cache.now();
        let request = GetAccessTokenRequest {
            session_id: id.expose().to_owned(),
            scopes: wanted.scopes.clone(),
            force_refresh,
            audience: wanted.audience.clone(),
            resource: wanted.resource.clone(),
        };
        let granted = self.client.get_access_token(request).await?;
        Ok(CachedToken::new(wanted, requested_at, granted))
    }

    /// Ends a session. Returns its ID token for the provider, if it kept one.
    pub(crate) async fn end(&self, id: &SessionId) -> Result<EndSessionResponse, SessionError> {
        let by = Some(end_session_request::By::SessionId(id.expose().to_owned()));
        let request = EndSessionRequest {
            by,
            cause: Cause::Logout.into(),
            ..EndSessionRequest::default()
        };
        let response = self.client.end_session(request).await;
        // Even if no answer came: the session may have ended.
        self.cache.forget(id);
        response
    }
}

/// The browser could not request the cookie that proves its device.
pub(super) fn unproven() -> SessionError {
    failed(
        ErrorReason::ErrSessionServiceUnavailable,
        "the browser could not prove its device",
    )
}

/// An answer that lacks a required field.
pub(super) fn malformed() -> SessionError {
    failed(
        ErrorReason::ErrInternal,
        "the answer of the session service lacks a required part",
    )
}

fn failed(reason: ErrorReason, message: &str) -> SessionError {
    SessionError {
        reason,
        message: message.to_owned(),
        metadata: std::collections::HashMap::new(),
    }
}
