//! Sessions as the edge sees them: from the cookie of a request to the session service and back.
//!
//! A read: the cookie's signature → memory, while what it holds is vouched for → `GetSession`, and `RollSession` where the
//! read counts as use and the answer says that it is due. Before an answer renews the cookie, `GetSession` once more
//! ([`SessionRepository::cookie_if_alive`]).
//!
//! Invariants
//! - A cookie that does not verify costs no call.
//! - A session service that cannot be reached signs nobody out and never changes a cookie.
//! - Only use rolls a session, and no request that says that it is none ([`NO_ROLL`]).
//!
//! What has no meaning of its own here (lists, watches, forced refreshes, the probe at the start) calls
//! `SessionRepository::client`.

mod cache;
pub(crate) mod cache_gauges;
mod cached_session;
mod calls;
pub mod cookie_rotation;
pub mod cookies;
pub mod device_binding;
pub mod keys;
mod listening;
pub(crate) mod metrics;
mod open_streams;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use chassis::audit::RepeatedRecords;
use chassis::clock::Clock;
use session_proto::client::{SessionClient, SessionError};
use session_proto::timestamp;
use session_proto::v1::{self, Device, ErrorReason};

pub(crate) use cache::SessionCache;
pub(crate) use cached_session::{CachedSession, CachedToken, TokenFor};
pub(crate) use listening::SILENCE_MAX;
pub(crate) use open_streams::{OpenStream, OpenStreams};

use self::calls::malformed;
use self::cookie_rotation::{CookieRotation, Counting, Generation, HELD_MS};
use self::device_binding::{DeviceBindings, DeviceBound, DeviceStanding};
pub(crate) use self::listening::Moment;
use self::metrics::{CacheMetrics, DeviceProofOutcome};
use crate::sessions::cookies::{SessionCookies, SessionId};

/// The request header, of any value, by which same-origin code says that a request is no use of the session: a page that asks
/// again and again keeps no idle session alive.
pub(crate) const NO_ROLL: &str = "x-no-roll";

/// The session a request acts for.
#[derive(Clone, Debug)]
pub(crate) struct CurrentSession {
    /// Its secret name.
    pub(crate) id: SessionId,
    /// What it holds.
    pub(crate) session: Arc<CachedSession>,
    /// What the request proves of the device the session is bound to.
    pub(crate) device: DeviceStanding,
    /// The cookie to renew, if this request rolled the session: [`SessionRepository::cookie_if_alive`] tells whether it may
    /// be sent.
    renewal: Option<CookieRenewal>,
}

/// The cookie with its new expiry, of a session that a request has rolled, or one of a new generation.
#[derive(Clone, Debug)]
struct CookieRenewal {
    cookie: HeaderValue,
    /// Until when it may be sent, in milliseconds since the Unix epoch.
    until_ms: u64,
}

/// Whether a read of a session counts as its use.
#[derive(Clone, Copy)]
pub(crate) enum Use<'a> {
    /// It does, and the session may roll. From what device it is used is read only when the session service is to know it.
    Counts(&'a (dyn Fn() -> Device + Sync)),
    /// The same, where the answer may reach the browser late: it gets no cookie of a new generation.
    CountsAndIsAnsweredLate(&'a (dyn Fn() -> Device + Sync)),
    /// The person wants to stay signed in: the session rolls as soon as it may, or the read fails.
    Rolls(&'a (dyn Fn() -> Device + Sync)),
    /// It only looks.
    LookOnly,
}

impl Use<'_> {
    fn counts(self) -> bool {
        !matches!(self, Self::LookOnly)
    }
}

/// Reads, rolls, creates and ends sessions.
#[derive(Clone)]
pub(crate) struct SessionRepository {
    /// The plain client, for calls that have no meaning of their own here.
    pub(crate) client: SessionClient,
    /// The cookies that browsers hold.
    pub(crate) cookies: SessionCookies,
    /// Which sessions are bound to devices.
    pub(crate) bindings: Option<DeviceBindings>,
    /// When cookies rotate.
    pub(crate) rotation: Option<CookieRotation>,
    /// Wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The sessions remembered.
    pub(crate) cache: Arc<SessionCache>,
    /// How often they are found.
    pub(crate) lookups: CacheMetrics,
    /// Where repeated audit records are counted.
    pub(crate) records: Arc<RepeatedRecords>,
    /// The streams that are open on behalf of sessions.
    pub(crate) streams: OpenStreams,
}

impl SessionRepository {
    /// The same, for a worker of its own.
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
    /// The session service, or what stands behind it, cannot be reached: nothing is known about the session.
    pub(crate) async fn current(
        &self,
        headers: &HeaderMap,
        use_: Use<'_>,
    ) -> Result<Option<CurrentSession>, SessionError> {
        let Some((id, generation)) = self.cookies.read_whole(headers) else {
            return Ok(None);
        };
        let use_ = match use_ {
            Use::Counts(_) | Use::CountsAndIsAnsweredLate(_) if headers.contains_key(NO_ROLL) => {
                Use::LookOnly
            }
            use_ => use_,
        };
        let current = match self.remembered(&id, use_) {
            Some(session) => self.admitted(headers, id, session, None)?,
            None => {
                let requested_at = self.cache.now();
                let read = match use_ {
                    Use::Counts(device) | Use::CountsAndIsAnsweredLate(device) => {
                        self.read_as_use(headers, &id, device, false).await
                    }
                    Use::Rolls(device) => self.read_as_use(headers, &id, device, true).await,
                    Use::LookOnly => self.get(&id).await.map(|session| (session, false)),
                };
                self.remember(headers, (id, generation), requested_at, use_.counts(), read)?
            }
        };
        match (current, self.rotation) {
            (Some(current), Some(rotation)) if current.device == DeviceStanding::Unbound => {
                // A future of its own: requests of cookies that do not rotate do not carry it.
                Box::pin(self.rotated(headers, current, generation, rotation, use_)).await
            }
            (current, _) => Ok(current),
        }
    }

    /// The session of a secret, whatever else its cookie has to prove; the session service is asked if the edge does not know it.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn find(&self, id: &SessionId) -> Result<Arc<CachedSession>, SessionError> {
        match self.remembered(id, Use::LookOnly) {
            Some(session) => Ok(session),
            None => Ok(CachedSession::new(*self.get(id).await?)),
        }
    }

    /// A session of this edge's memory.
    fn remembered(&self, id: &SessionId, use_: Use<'_>) -> Option<Arc<CachedSession>> {
        if matches!(use_, Use::Rolls(_)) {
            return None;
        }
        let found = self.cache.find(id, use_.counts(), self.clock.now_ms());
        self.lookups.count(&found);
        found.ok()
    }

    /// The session, if the generation of its cookie counts; a use that is due for another one gets it.
    async fn rotated(
        &self,
        headers: &HeaderMap,
        mut current: CurrentSession,
        shown: Option<Generation>,
        rotation: CookieRotation,
        use_: Use<'_>,
    ) -> Result<Option<CurrentSession>, SessionError> {
        if !Counting::of(&current.session).takes(shown, self.clock.now_ms()) {
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
        if matches!(use_, Use::Counts(_) | Use::Rolls(_))
            && let Some(next) = rotation.next(Counting::of(&current.session), shown, now_ms)
        {
            let until_ms = now_ms.saturating_add(HELD_MS);
            current.renewal = self.renewal(headers, &current.id, Some(next), &current.session, until_ms);
        }
        Ok(Some(current))
    }

    /// Whether sessions are bound to devices here.
    #[must_use]
    pub(crate) fn binds_devices(&self) -> bool {
        let binds = |bindings: &DeviceBindings| bindings.settings.mode != DeviceBound::Off;
        self.bindings.as_ref().is_some_and(binds)
    }

    /// Reads a session that is used, and extends it where that is due or `rolls` demands it; a failed roll never fails a request that
    /// it only rides on.
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
                    "a session that is used is not extended"
                );
                Ok((session, false))
            }
            rolled => rolled,
        }
    }

    /// Remembers what the session service answered to a call that began at `requested_at`. `used` tells whether that was a
    /// use.
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
                // Where cookies rotate they last as long as the session can, and none is given twice.
                let renewal = if rolled && self.rotation.is_none() {
                    self.renewal(headers, &id, generation, &session, u64::MAX)
                } else {
                    None
                };
                let session = CachedSession::new(*session);
                self.cache.keep(&id, &session, requested_at, used);
                self.admitted(headers, id, session, renewal)
            }
            Err(error) if error.reason == ErrorReason::ErrMissingSession => {
                self.cache.forget(&id);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The cookie of this generation, as long as the session lasts from now on.
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

    /// What a request proves of the device of a session.
    fn standing(&self, headers: &HeaderMap, id: &SessionId, session: &v1::Session) -> DeviceStanding {
        let Some(bindings) = &self.bindings else {
            return DeviceStanding::Unbound;
        };
        let binding = session.device_binding.as_ref();
        let bound_at = binding.map(|binding| binding.bound_at.as_ref().map_or(0, timestamp::to_ms));
        bindings.standing(headers, (id, &session.handle), bound_at, self.clock.now_ms())
    }

    /// The session, unless it is bound to a device and this request proves nothing of that: then it is worth as much as none. A browser that
    /// could not prove it is told that nothing is known at the moment, since "nobody is signed in" would not be true.
    fn admitted(
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

    /// The cookie that holds a session as long as the session lasts, which was created or rolled just now, for the site of
    /// these request headers. How long that is the session's own times say: a clock here that is off shortens no cookie.
    #[must_use]
    pub(crate) fn cookie_for(
        &self,
        headers: &HeaderMap,
        id: &SessionId,
        session: &v1::Session,
    ) -> Option<HeaderValue> {
        self.cookies.issue(headers, id, self.max_age(session))
    }

    /// How long a cookie lasts that is given now, in seconds: as long as its session if it is not used any more, and where cookies rotate, and
    /// are not renewed by use, as long as the session can be.
    fn max_age(&self, session: &v1::Session) -> u64 {
        let ms = |at: &Option<prost_types::Timestamp>| at.as_ref().map_or(0, timestamp::to_ms);
        let ends_ms = match self.rotation {
            None => ms(&session.expires_at),
            Some(_) => ms(&session.absolute_expires_at),
        };
        // Rounded up: a browser must not drop the cookie before the session ends.
        ends_ms.saturating_sub(ms(&session.rolled_at)).div_ceil(1000)
    }

    /// The cookies that an answer may set, decided when its head is ready to be sent: the renewed session cookie, if there is
    /// one, and `further`. None if the session ended since it was rolled: the cookie may not be this browser's any more, and the
    /// cookie of the session after it would be lost. When nothing can be learnt the browser keeps the cookie it has. A new
    /// generation that has waited for its answer for long is dropped: the browser may have a newer one by now.
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
        tracing::info!("no cookie is renewed: the session ended while its answer was made");
        Vec::new()
    }

    /// The renewed session cookie of this answer, if there is one and the session has not ended.
    pub(crate) async fn cookie_if_alive(&self, current: &CurrentSession) -> Option<HeaderValue> {
        self.cookies_if_alive(current, None).await.pop()
    }
}
