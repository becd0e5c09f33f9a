//! Sessions as the edge sees them: from the cookie of a request to the session service and back.
//!
//! Invariants: a cookie that does not verify costs no call; a session service that cannot be
//! reached signs nobody out and never changes a cookie; only use rolls a session. Every path of the edge to the session
//! service leads through here. Each read: cookie → what is remembered, if it holds → the session service.

mod cache;
mod cached_session;
pub mod cookies;
mod ended_session;
pub mod keys;
mod listening;
pub(crate) mod metrics;
mod open_streams;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use chassis::clock::Clock;
use session_proto::client::{SessionClient, SessionError};
use session_proto::timestamp;
use session_proto::v1::{
    self, AbandonSignInRequest, BeginSignInRequest, BeginSignInResponse, Cause, CreateSessionRequest, Device,
    EndSessionRequest, EndSessionsRequest, ErrorReason, GetAccessTokenRequest, GetSessionRequest,
    GetSessionResponse, RollSessionRequest, UpdateSessionRequest, end_session_request, get_session_request,
};

pub(crate) use cache::SessionCache;
pub(crate) use cached_session::{CachedSession, CachedToken, authorization};
pub(crate) use ended_session::EndedSession;
pub(crate) use listening::SILENCE_MAX;
pub(crate) use open_streams::{OpenStream, OpenStreams};

use self::listening::Moment;
use self::metrics::CacheMetrics;
use crate::sessions::cookies::{SessionCookies, SessionId};

/// The session service, or what stands behind it, cannot be reached: nothing is known about the session.
#[derive(Debug, thiserror::Error)]
#[error("the session service cannot be reached")]
pub(crate) struct SessionsUnavailable(#[source] pub(crate) SessionError);

/// The session a request acts for.
#[derive(Clone, Debug)]
pub(crate) struct CurrentSession {
    /// Its secret name.
    pub(crate) id: SessionId,
    /// What it holds.
    pub(crate) session: Arc<CachedSession>,
    /// What this request has renewed: [`SessionRepository::renewed`] tells whether it may be sent.
    renewed: Option<Renewed>,
}

/// The cookie with its new expiry, of a session that a request has rolled.
#[derive(Clone, Debug)]
struct Renewed {
    cookie: HeaderValue,
    /// Before the session service was called.
    requested_at: Moment,
}

/// Reads from what device a person uses their session; called only when the session service is to know it.
pub(crate) type DeviceSource<'a> = &'a (dyn Fn() -> Device + Sync);

/// Reads, rolls, creates and ends sessions.
#[derive(Clone)]
pub(crate) struct SessionRepository {
    client: SessionClient,
    cookies: SessionCookies,
    clock: Arc<dyn Clock>,
    cache: Option<Arc<SessionCache>>,
    lookups: CacheMetrics,
    streams: OpenStreams,
}

impl SessionRepository {
    /// Speaks to the session service through `client` for browsers that hold `cookies`; without a cache it calls each time.
    #[must_use]
    pub(crate) fn new(
        client: SessionClient,
        cookies: SessionCookies,
        clock: Arc<dyn Clock>,
        cache: Option<SessionCache>,
        lookups: CacheMetrics,
    ) -> Self {
        let heard = cache.as_ref().map(SessionCache::heard);
        Self {
            streams: OpenStreams::new(client.clone(), Arc::clone(&clock), heard),
            client,
            cookies,
            clock,
            cache: cache.map(Arc::new),
            lookups,
        }
    }

    /// The same, for a worker of its own.
    #[must_use]
    pub(crate) fn for_worker(&self) -> Self {
        Self {
            client: self.client.for_worker(),
            lookups: self.lookups.for_worker(),
            ..self.clone()
        }
    }

    /// The streams that are open on behalf of sessions.
    #[must_use]
    pub(crate) fn streams(&self) -> &OpenStreams {
        &self.streams
    }

    /// The plain client, for calls that have no meaning of their own here (lists, watching).
    #[must_use]
    pub(crate) fn client(&self) -> &SessionClient {
        &self.client
    }

    /// The session of a request. With a visitor it counts as use and may roll; without, it only reads.
    pub(crate) async fn current(
        &self,
        headers: &HeaderMap,
        visitor: Option<DeviceSource<'_>>,
    ) -> Result<Option<CurrentSession>, SessionsUnavailable> {
        let Some(id) = self.cookies.read(headers) else {
            return Ok(None);
        };
        if let Some(cache) = &self.cache {
            let found = cache.find(&id, visitor.is_some(), self.clock.now_ms());
            self.lookups.count(&found);
            if let Ok(session) = found {
                return Ok(Some(CurrentSession {
                    id,
                    session,
                    renewed: None,
                }));
            }
        }
        let used = visitor.is_some();
        let requested_at = self.now();
        let read = match visitor {
            Some(device) => self.used(&id, device).await,
            None => self.get(&id).await.map(|session| (session, false)),
        };
        self.remembered(headers, id, requested_at, used, read)
    }

    /// The session of a request whose person wants to stay signed in: it rolls as soon as it may.
    pub(crate) async fn rolled(
        &self,
        headers: &HeaderMap,
        device: Device,
    ) -> Result<Option<CurrentSession>, SessionsUnavailable> {
        match self.cookies.read(headers) {
            Some(id) => {
                let requested_at = self.now();
                let read = self.roll(&id, device).await;
                self.remembered(headers, id, requested_at, true, read)
            }
            None => Ok(None),
        }
    }

    /// To be taken before the session service is called.
    fn now(&self) -> Moment {
        self.cache.as_deref().map(SessionCache::now).unwrap_or_default()
    }

    /// Reads a session that is used, and extends it where that is due; a failed roll never fails the request it rides on.
    async fn used(
        &self,
        id: &SessionId,
        device: DeviceSource<'_>,
    ) -> Result<(Box<v1::Session>, bool), SessionError> {
        let read = self.read(id).await?;
        let session = read.session.ok_or_else(malformed)?;
        if !read.roll_due {
            return Ok((session, false));
        }
        match Box::pin(self.roll(id, device())).await {
            Err(error) if error.reason != ErrorReason::ErrMissingSession => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a session that is used is not extended"
                );
                Ok((session, false))
            }
            rolled => rolled,
        }
    }

    /// What the session service answered to a call that began at `requested_at`, remembered.
    fn remembered(
        &self,
        headers: &HeaderMap,
        id: SessionId,
        requested_at: Moment,
        used: bool,
        read: Result<(Box<v1::Session>, bool), SessionError>,
    ) -> Result<Option<CurrentSession>, SessionsUnavailable> {
        match read {
            Ok((session, rolled)) => {
                let cookie = if rolled {
                    self.cookie_for(headers, &id, &session)
                } else {
                    None
                };
                let renewed = cookie.map(|cookie| Renewed { cookie, requested_at });
                let session = CachedSession::new(*session);
                if let Some(cache) = &self.cache {
                    cache.keep(&id, &session, requested_at, used);
                }
                Ok(Some(CurrentSession { id, session, renewed }))
            }
            Err(error) if error.reason == ErrorReason::ErrMissingSession => {
                self.forget(&id);
                Ok(None)
            }
            Err(error) => Err(SessionsUnavailable(error)),
        }
    }

    /// The cookie that holds a session as long as the session lasts, which was created or rolled just now, for the site of these
    /// request headers. How long that is the session's own times say: a clock here that is off shortens no cookie.
    #[must_use]
    pub(crate) fn cookie_for(
        &self,
        headers: &HeaderMap,
        id: &SessionId,
        session: &v1::Session,
    ) -> Option<HeaderValue> {
        let [expires_ms, rolled_ms] =
            [&session.expires_at, &session.rolled_at].map(|at| at.as_ref().map_or(0, timestamp::to_ms));
        // Rounded up: a browser must not drop the cookie before the session ends.
        let max_age = expires_ms.saturating_sub(rolled_ms).div_ceil(1000);
        self.cookies.issue(headers, id, max_age)
    }

    /// The cookie that an answer may renew, read when its head is ready to be sent: none if the session ended since it
    /// was rolled, for then it may not be this browser's any more, and the cookie of the session after it would be lost. Where
    /// an ending would have been heard no call is made. When nothing can be learnt the browser keeps the cookie it has.
    pub(crate) async fn renewed(&self, current: &CurrentSession) -> Option<HeaderValue> {
        let Renewed { cookie, requested_at } = current.renewed.as_ref()?;
        let lasts = |cache: &Arc<SessionCache>| cache.hears_no_end(&current.session.handle, *requested_at);
        if self.cache.as_ref().is_some_and(lasts) || self.get(&current.id).await.is_ok() {
            return Some(cookie.clone());
        }
        tracing::info!("no cookie is renewed: the session ended while its answer was made");
        None
    }

    /// Claims a sign-in, or tells what became of it.
    pub(crate) async fn begin_sign_in(
        &self,
        request: BeginSignInRequest,
    ) -> Result<BeginSignInResponse, SessionError> {
        self.client.begin_sign_in(request).await
    }

    /// Gives up a sign-in that was begun.
    pub(crate) async fn abandon_sign_in(&self, request: AbandonSignInRequest) -> Result<(), SessionError> {
        self.client.abandon_sign_in(request).await.map(|_done| ())
    }

    /// Begins a session and gives its secret name.
    pub(crate) async fn create(
        &self,
        request: CreateSessionRequest,
    ) -> Result<(SessionId, v1::Session), SessionError> {
        let replaced = SessionId::parse(&request.replaces_session_id);
        let response = self.client.create_session(request).await;
        // Also when no answer came: it may have ended.
        if let Some(replaced) = replaced {
            self.forget(&replaced);
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

    async fn read(&self, id: &SessionId) -> Result<GetSessionResponse, SessionError> {
        let by = Some(get_session_request::By::SessionId(id.expose().to_owned()));
        self.client.get_session(GetSessionRequest { by }).await
    }

    /// Extends a session by use; tells whether its deadline moved.
    pub(crate) async fn roll(
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
        self.forget(id);
        updated?.session.ok_or_else(malformed)
    }

    /// A valid access token of a session, with these scopes.
    pub(crate) async fn access_token(
        &self,
        id: &SessionId,
        scopes: Vec<String>,
    ) -> Result<Arc<CachedToken>, SessionError> {
        let cache = self.cache.as_deref();
        if let Some(token) = cache.and_then(|cache| cache.token(id, &scopes, self.clock.now_ms())) {
            return Ok(token);
        }
        let requested_at = cache.map(SessionCache::now).unwrap_or_default();
        let request = GetAccessTokenRequest {
            session_id: id.expose().to_owned(),
            scopes: scopes.clone(),
            force_refresh: false,
        };
        let token = CachedToken::new(scopes, requested_at, self.client.get_access_token(request).await?);
        if let Some(cache) = cache {
            cache.keep_token(id, &token);
        }
        Ok(token)
    }

    fn forget(&self, id: &SessionId) {
        if let Some(cache) = &self.cache {
            cache.forget(id);
        }
    }

    /// Ends a session. Gives the ID token for the provider, if there was a session and it kept one.
    pub(crate) async fn end(&self, id: &SessionId) -> Result<EndedSession, SessionError> {
        let by = Some(end_session_request::By::SessionId(id.expose().to_owned()));
        let request = EndSessionRequest {
            by,
            cause: Cause::Logout.into(),
            ..EndSessionRequest::default()
        };
        let response = self.client.end_session(request).await;
        // Also when no answer came: it may have ended.
        self.forget(id);
        let response = response?;
        let hint = Some(response.id_token_hint).filter(|hint| !hint.is_empty());
        Ok(EndedSession {
            ended: response.ended,
            id_token_hint: hint,
            issuer: response.issuer,
        })
    }

    /// Ends sessions by person, by the provider's session, or those that are both; tells how many.
    pub(crate) async fn end_all(&self, request: EndSessionsRequest) -> Result<u32, SessionError> {
        self.client
            .end_sessions(request)
            .await
            .map(|response| response.ended_count)
    }
}

fn malformed() -> SessionError {
    SessionError {
        reason: ErrorReason::ErrInternal,
        message: "the session service left out what it has to answer".to_owned(),
        metadata: std::collections::HashMap::new(),
    }
}
