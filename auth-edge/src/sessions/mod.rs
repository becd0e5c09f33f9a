//! Sessions as the edge sees them: from a request's cookie to the session service and back.
//!
//! A read checks the cookie's signature, then the cache while its entry is valid, then calls `GetSession`. It
//! calls `RollSession` if the read counts as use and a roll is due. Before a response renews the cookie, the
//! edge calls `GetSession` again ([`SessionRepository::cookie_if_alive`]).
//!
//! Invariants
//! - A cookie that does not verify costs no call.
//! - If the session service is unreachable, the edge signs no user out and changes no cookie.
//! - Only use rolls a session. A request with [`NO_ROLL`] is no use.
//!
//! Calls without a wrapper here (lists, watches, forced refreshes, the startup probe) use
//! `SessionRepository::client`.

mod cache;
pub(crate) mod cache_gauges;
mod cached_session;
mod calls;
pub mod cookie_rotation;
pub mod cookies;
pub mod device_binding;
pub mod keys;
pub(crate) mod metrics;
mod open_streams;
mod replica_freshness;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use chassis::audit::RepeatedRecords;
use chassis::clock::Clock;
use session_proto::client::{SessionClient, SessionError};
use session_proto::timestamp;
use session_proto::v1::{self, Device, ErrorReason};

pub(crate) use cache::SessionCache;
pub(crate) use cached_session::{CachedSession, CachedToken, TokenFor};
pub(crate) use open_streams::{OpenStream, OpenStreams};
pub(crate) use replica_freshness::SILENCE_MAX;

use self::calls::malformed;
use self::cookie_rotation::{CookieRotation, CurrentGeneration, Generation, HELD_MS};
use self::device_binding::{DeviceBindings, DeviceBound, DeviceStanding};
use self::metrics::{CacheMetrics, DeviceProofOutcome};
pub(crate) use self::replica_freshness::Moment;
use crate::sessions::cookies::{SessionCookies, SessionId};

/// The request header, of any value, by which same-origin code says that a request is no use of the session. So a
/// page that polls keeps no idle session alive.
pub(crate) const NO_ROLL: &str = "x-no-roll";

/// The session a request acts for.
#[derive(Clone, Debug)]
pub(crate) struct CurrentSession {
    /// Its secret ID.
    pub(crate) id: SessionId,
    /// What it holds.
    pub(crate) session: Arc<CachedSession>,
    /// What the request proves about the device that the session is bound to.
    pub(crate) device: DeviceStanding,
    /// The cookie to renew, if this request rolled the session. [`SessionRepository::cookie_if_alive`]
    /// decides whether it may be sent.
    renewal: Option<CookieRenewal>,
}

/// The cookie with its new expiry after a roll, or with a new generation.
#[derive(Clone, Debug)]
struct CookieRenewal {
    cookie: HeaderValue,
    /// Until when it may be sent, in milliseconds since the Unix epoch.
    until_ms: u64,
}

/// Whether a read of a session counts as its use.
#[derive(Clone, Copy)]
pub(crate) enum SessionUse<'a> {
    /// It does, and the session may roll. The device is read only if the session service needs it.
    Counts(&'a (dyn Fn() -> Device + Sync)),
    /// It does, but the response may reach the browser late: it carries no cookie of a new generation.
    CountsAndIsAnsweredLate(&'a (dyn Fn() -> Device + Sync)),
    /// The user wants to stay signed in: the session rolls as soon as it may, or the read fails.
    Rolls(&'a (dyn Fn() -> Device + Sync)),
    /// It does not.
    LookOnly,
}

impl SessionUse<'_> {
    fn counts(self) -> bool {
        !matches!(self, Self::LookOnly)
    }
}

/// Reads, rolls, creates and ends sessions.
#[derive(Clone)]
pub(crate) struct SessionRepository {
    /// The plain client, for calls without a wrapper here.
    pub(crate) client: SessionClient,
    /// The cookies that browsers hold.
    pub(crate) cookies: SessionCookies,
    /// Which sessions are bound to devices.
    pub(crate) bindings: Option<DeviceBindings>,
    /// When cookies rotate.
    pub(crate) rotation: Option<CookieRotation>,
    /// Wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The cached sessions.
    pub(crate) cache: Arc<SessionCache>,
    /// Counts cache hits and misses.
    pub(crate) lookups: CacheMetrics,
    /// Counts repeated audit records.
    pub(crate) records: Arc<RepeatedRecords>,
    /// The open streams of sessions.
    pub(crate) streams: OpenStreams,
}

impl SessionRepository {
    /// A copy for a worker.
    #[must_use]
    pub(crate) fn for_worker(&self) -> Self {
        Self {
            client: self.client.for_worker(),
            ..self.clone()
        }
    }

    /// The session of a request.
    ///
    /// # Errors
    /// The session service, or its store, is unreachable: nothing is known about the session.
    pub(crate) async fn current(
        &self,
        headers: &HeaderMap,
        use_: SessionUse<'_>,
    ) -> Result<Option<CurrentSession>, SessionError> {
        let Some((id, generation)) = self.cookies.read_with_generation(headers) else {
            return Ok(None);
        };
        let use_ = match use_ {
            SessionUse::Counts(_) | SessionUse::CountsAndIsAnsweredLate(_)
                if headers.contains_key(NO_ROLL) =>
            {
                SessionUse::LookOnly
            }
            use_ => use_,
        };
        let current = match self.find_cached(&id, use_) {
            Some(session) => self.check_device(headers, id, session, None)?,
            None => {
                let requested_at = self.cache.now();
                let read = match use_ {
                    SessionUse::Counts(device) | SessionUse::CountsAndIsAnsweredLate(device) => {
                        self.read_as_use(headers, &id, device, false).await
                    }
                    SessionUse::Rolls(device) => self.read_as_use(headers, &id, device, true).await,
                    SessionUse::LookOnly => self.get(&id).await.map(|session| (session, false)),
                };
                self.remember(headers, (id, generation), requested_at, use_.counts(), read)?
            }
        };
        match (current, self.rotation) {
            (Some(current), Some(rotation)) if current.device == DeviceStanding::Unbound => {
                // A boxed future: requests whose cookies do not rotate do not carry its size.
                Box::pin(self.rotate_if_due(headers, current, generation, rotation, use_)).await
            }
            (current, _) => Ok(current),
        }
    }

    /// The session of an ID without device or cookie checks, from the cache or the session service.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn find(&self, id: &SessionId) -> Result<Arc<CachedSession>, SessionError> {
        match self.find_cached(id, SessionUse::LookOnly) {
            Some(session) => Ok(session),
            None => {
                let requested_at = self.cache.now();
                let session = CachedSession::new(*self.get(id).await?);
                self.cache.keep(id, &session, requested_at, false);
                Ok(session)
            }
        }
    }

    /// A cached session.
    fn find_cached(&self, id: &SessionId, use_: SessionUse<'_>) -> Option<Arc<CachedSession>> {
        if matches!(use_, SessionUse::Rolls(_)) {
            return None;
        }
        let found = self.cache.find(id, use_.counts(), self.clock.now_ms());
        self.lookups.count(&found);
        found.ok()
    }

    /// The session, if its cookie's generation is valid. A use that is due for a new generation gets one.
    async fn rotate_if_due(
        &self,
        headers: &HeaderMap,
        mut current: CurrentSession,
        shown: Option<Generation>,
        rotation: CookieRotation,
        use_: SessionUse<'_>,
    ) -> Result<Option<CurrentSession>, SessionError> {
        if !CurrentGeneration::of(&current.session).accepts(shown, self.clock.now_ms()) {
            let asked_at = self.cache.now();
            match self.rotate_cookie(&current.id, shown).await {
                Ok(session) => {
                    current.session = CachedSession::new(*session);
                    self.cache
                        .keep(&current.id, &current.session, asked_at, use_.counts());
                }
                Err(error) if error.reason == ErrorReason::ErrMissingSession => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let now_ms = self.clock.now_ms();
        if matches!(use_, SessionUse::Counts(_) | SessionUse::Rolls(_))
            && let Some(next) = rotation.next(CurrentGeneration::of(&current.session), shown, now_ms)
        {
            let until_ms = now_ms.saturating_add(HELD_MS);
            current.renewal = self.renewal(headers, &current.id, Some(next), &current.session, until_ms);
        }
        Ok(Some(current))
    }

    /// Whether this edge binds sessions to devices.
    #[must_use]
    pub(crate) fn binds_devices(&self) -> bool {
        let binds = |bindings: &DeviceBindings| bindings.settings.mode != DeviceBound::Off;
        self.bindings.as_ref().is_some_and(binds)
    }

    /// Reads a session as a use, and extends it if that is due or `rolls` is set. Without `rolls`, a failed
    /// roll does not fail the request.
    async fn read_as_use(
        &self,
        headers: &HeaderMap,
        id: &SessionId,
        device: &(dyn Fn() -> Device + Sync),
        rolls: bool,
    ) -> Result<(Box<v1::Session>, bool), SessionError> {
        let read = self.read(id).await?;
        let session = read.session.ok_or_else(malformed)?;
        let is_worth_nothing = matches!(
            self.standing(headers, id, &session),
            DeviceStanding::Missing | DeviceStanding::Skipped
        );
        if !(read.roll_due || rolls) || is_worth_nothing {
            return Ok((session, false));
        }
        match Box::pin(self.roll_session(id, device())).await {
            Err(error) if !rolls && error.reason != ErrorReason::ErrMissingSession => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a session in use could not be extended"
                );
                Ok((session, false))
            }
            rolled => rolled,
        }
    }

    /// Caches the answer to a call that began at `requested_at`. `used`: whether that call was a use.
    fn remember(
        &self,
        headers: &HeaderMap,
        (id, generation): (SessionId, Option<Generation>),
        requested_at: Moment,
        used: bool,
        read: Result<(Box<v1::Session>, bool), SessionError>,
    ) -> Result<Option<CurrentSession>, SessionError> {
        match read {
            Ok((session, rolled)) => {
                // Rotating cookies last as long as the session can, and none is issued twice.
                let renewal = if rolled && self.rotation.is_none() {
                    self.renewal(headers, &id, generation, &session, u64::MAX)
                } else {
                    None
                };
                let session = CachedSession::new(*session);
                self.cache.keep(&id, &session, requested_at, used);
                self.check_device(headers, id, session, renewal)
            }
            Err(error) if error.reason == ErrorReason::ErrMissingSession => {
                self.cache.forget(&id);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The cookie of this generation, with the session's remaining lifetime.
    fn renewal(
        &self,
        headers: &HeaderMap,
        id: &SessionId,
        generation: Option<Generation>,
        session: &v1::Session,
        until_ms: u64,
    ) -> Option<CookieRenewal> {
        let max_age = self.max_age(session);
        let cookie = self.cookies.issue_generation(headers, id, generation, max_age)?;
        Some(CookieRenewal { cookie, until_ms })
    }

    /// What a request proves about a session's device.
    fn standing(&self, headers: &HeaderMap, id: &SessionId, session: &v1::Session) -> DeviceStanding {
        let Some(bindings) = &self.bindings else {
            return DeviceStanding::Unbound;
        };
        let binding = session.device_binding.as_ref();
        let bound_at = binding.map(|binding| binding.bound_at.as_ref().map_or(0, timestamp::to_ms));
        bindings.standing(headers, (id, &session.handle), bound_at, self.clock.now_ms())
    }

    /// The session, unless it is bound to a device that this request does not prove: then none. If the
    /// browser could not request a proof, the answer is an error, because "not signed in" would be wrong.
    fn check_device(
        &self,
        headers: &HeaderMap,
        id: SessionId,
        session: Arc<CachedSession>,
        renewal: Option<CookieRenewal>,
    ) -> Result<Option<CurrentSession>, SessionError> {
        let device = self.standing(headers, &id, &session);
        let count = |outcome| {
            if let Some(bindings) = &self.bindings {
                bindings.metrics.count(outcome);
            }
        };
        match device {
            DeviceStanding::Unbound | DeviceStanding::Proven | DeviceStanding::JustBound => {
                Ok(Some(CurrentSession {
                    id,
                    session,
                    device,
                    renewal,
                }))
            }
            DeviceStanding::Missing => {
                count(DeviceProofOutcome::Missing);
                if session.device_binding.is_some() {
                    self.records.write(&session.record_without_device());
                }
                Ok(None)
            }
            DeviceStanding::Skipped => {
                count(DeviceProofOutcome::Skipped);
                Err(calls::unproven())
            }
        }
    }

    /// The cookie of a session that was just created or rolled, for the site of these request headers. Its
    /// lifetime comes from the session's own times: a wrong clock here shortens no cookie.
    #[must_use]
    pub(crate) fn cookie_for(
        &self,
        headers: &HeaderMap,
        id: &SessionId,
        session: &v1::Session,
    ) -> Option<HeaderValue> {
        self.cookies.issue(headers, id, self.max_age(session))
    }

    /// The lifetime of a cookie issued now, in seconds: the session's idle lifetime. Rotating cookies, which
    /// use does not renew, last as long as the session can.
    fn max_age(&self, session: &v1::Session) -> u64 {
        let ms = |at: &Option<prost_types::Timestamp>| at.as_ref().map_or(0, timestamp::to_ms);
        let ends_ms = match self.rotation {
            None => ms(&session.expires_at),
            Some(_) => ms(&session.absolute_expires_at),
        };
        // Rounded up: a browser must not drop the cookie before the session ends.
        ends_ms.saturating_sub(ms(&session.rolled_at)).div_ceil(1000)
    }

    /// The cookies that a response may set, decided when its head is ready: the renewed session cookie, if
    /// any, and `further`. None if the session ended after its roll: they could replace the cookie of the
    /// browser's next session. If the session service cannot answer, the browser keeps its cookie. A new
    /// generation that waited too long for its response is dropped, since the browser may have a newer one.
    pub(crate) async fn cookies_if_alive(
        &self,
        current: &CurrentSession,
        further: Option<HeaderValue>,
    ) -> Vec<HeaderValue> {
        let renewal = current.renewal.as_ref();
        let renewal = renewal.filter(|renewal| self.clock.now_ms() < renewal.until_ms);
        let cookie = renewal.map(|renewal| renewal.cookie.clone());
        let cookies: Vec<HeaderValue> = cookie.into_iter().chain(further).collect();
        if cookies.is_empty() || self.get(&current.id).await.is_ok() {
            return cookies;
        }
        tracing::info!("no cookie is renewed: the session ended before the answer was ready");
        Vec::new()
    }

    /// The renewed session cookie of this response, if there is one and the session has not ended.
    pub(crate) async fn cookie_if_alive(&self, current: &CurrentSession) -> Option<HeaderValue> {
        self.cookies_if_alive(current, None).await.pop()
    }
}
