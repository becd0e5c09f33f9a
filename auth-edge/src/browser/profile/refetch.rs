//! The profile read anew at the provider: seldom for one session, and once for all requests at the same moment.
//!
//! Invariants
//! - However often a session requests it, its bucket bounds the calls to the provider, also when clients hang up.
//! - What is kept of a refetch is gone with the last who waits for it.
//!
//! Deliberately absent: sharing between replicas; the bucket is for each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use oidc::{Outage, UserinfoError};
use serde_json::Map;
use session_proto::client::SessionError;
use session_proto::v1::{ErrorReason, Session};
use tokio::sync::OnceCell;

use crate::browser::Browser;
use crate::http::errors::{Handler, HttpError};
use crate::http::protect::rate_limit::RateLimiter;
use crate::sessions::{CachedSession, CurrentSession, TokenFor};
use crate::sign_in::user::user;

/// Refetches of one session in [`REFETCH_WINDOW`]: one, and two more for whoever tries again.
const REFETCHES: u64 = 3;

/// One refetch in five seconds in the long run: a profile that somebody has just changed at the provider is seen as soon as
/// they are back.
const REFETCH_WINDOW: Duration = Duration::from_secs(15);

/// How often a merge is tried again when the session changes meanwhile.
const MERGES: usize = 3;

/// What came of a refetch; none if the session has used up its bucket.
type RefetchOutcome = Result<Option<Arc<CachedSession>>, HttpError>;

/// Refetches under way, by handle.
type UnderWay = Arc<Mutex<HashMap<String, Weak<RefetchFlight>>>>;

/// Reads profiles anew.
#[derive(Debug)]
pub(crate) struct ProfileRefetches {
    limit: RateLimiter,
    under_way: UnderWay,
}

/// One refetch, for all who wait for it.
#[derive(Debug)]
struct RefetchFlight {
    handle: String,
    outcome: OnceCell<RefetchOutcome>,
    under_way: UnderWay,
}

impl Default for ProfileRefetches {
    fn default() -> Self {
        Self {
            limit: RateLimiter::within(REFETCH_WINDOW, REFETCHES),
            under_way: UnderWay::default(),
        }
    }
}

impl ProfileRefetches {
    /// The session with what the provider says of the person now; `None` if the session has used up its bucket.
    pub(crate) async fn refetch(&self, browser: &Browser, current: &CurrentSession) -> RefetchOutcome {
        let handle = current.session.handle.as_str();
        let flight = self.flight(handle);
        let outcome = flight.outcome.get_or_init(|| async {
            // Here and not before: whoever goes on for somebody that hung up calls the provider once more.
            if self.limit.check(handle, browser.clock.now_ms()).is_err() {
                return Ok(None);
            }
            read(browser, current)
                .await
                .map(|session| Some(CachedSession::new(session)))
        });
        outcome.await.clone()
    }

    fn flight(&self, handle: &str) -> Arc<RefetchFlight> {
        let mut under_way = lock(&self.under_way);
        if let Some(flight) = under_way.get(handle).and_then(Weak::upgrade) {
            return flight;
        }
        let flight = Arc::new(RefetchFlight {
            handle: handle.to_owned(),
            outcome: OnceCell::new(),
            under_way: Arc::clone(&self.under_way),
        });
        under_way.insert(handle.to_owned(), Arc::downgrade(&flight));
        flight
    }
}

impl Drop for RefetchFlight {
    fn drop(&mut self) {
        let mut under_way = lock(&self.under_way);
        // The next one may have begun since.
        if under_way
            .get(&self.handle)
            .is_some_and(|flight| flight.strong_count() == 0)
        {
            under_way.remove(&self.handle);
        }
    }
}

fn lock(under_way: &UnderWay) -> MutexGuard<'_, HashMap<String, Weak<RefetchFlight>>> {
    // Nothing panics half way through a change.
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads userinfo with a valid access token, merges it over the user and saves the merge, if this edge may.
async fn read(browser: &Browser, current: &CurrentSession) -> Result<Session, HttpError> {
    let Some(provider) = browser.providers.of_session(&current.session.issuer) else {
        tracing::warn!(
            issuer = current.session.issuer,
            "profile not read anew: the provider is not configured"
        );
        return Err(HttpError::Provider(Handler::Profile, Outage::BadAnswer));
    };
    let token = browser
        .sessions
        .access_token(&current.id, TokenFor::default())
        .await
        .map_err(not_updated)?;
    let userinfo = provider
        .relying_party
        .userinfo(
            &token.token_type,
            token.value.expose(),
            &current.session.subject,
            browser.clock.now_ms() / 1000,
        )
        .await
        .map_err(userinfo_failed)?;
    let mut session = Session::clone(&current.session);
    let mut tries = 0;
    loop {
        let merged = user(
            &session.user,
            Some(userinfo.clone()),
            Map::new(),
            &browser.claim_filter,
        )
        .map_err(|_no_object| HttpError::Internal)?;
        match browser
            .sessions
            .update_user(&current.id, merged.clone(), session.version)
            .await
        {
            Ok(session) => return Ok(session),
            // An edge may do without the right to keep it.
            Err(error) if error.reason == ErrorReason::ErrCallerNotAllowed => {
                tracing::debug!(
                    "the profile that was read anew is not kept: this edge may not call UpdateSession"
                );
                session.user = merged;
                return Ok(session);
            }
            Err(error) if error.reason == ErrorReason::ErrStaleVersion && tries < MERGES => {
                tries += 1;
                session = *browser.sessions.get(&current.id).await.map_err(not_updated)?;
            }
            Err(error) => return Err(not_updated(error)),
        }
    }
}

fn not_updated(error: SessionError) -> HttpError {
    tracing::warn!(error = &error as &dyn std::error::Error, "profile not read anew");
    HttpError::Session {
        reason: error.reason,
        scopes: None,
        handler: Some(Handler::Profile),
    }
}

fn userinfo_failed(error: UserinfoError) -> HttpError {
    tracing::warn!(error = &error as &dyn std::error::Error, "profile not read anew");
    let outage = match &error {
        UserinfoError::Provider(error) => error.outage(),
        UserinfoError::Token(oidc::IdTokenError::Provider(error)) => error.outage(),
        UserinfoError::Token(oidc::IdTokenError::UnknownKey) => Outage::Unreachable,
        UserinfoError::Unauthorized
        | UserinfoError::Subject
        | UserinfoError::Malformed
        | UserinfoError::Token(_) => Outage::BadAnswer,
    };
    HttpError::Provider(Handler::Profile, outage)
}
