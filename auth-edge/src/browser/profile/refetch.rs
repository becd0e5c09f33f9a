//! Reads the profile again at the provider, and limits how often one session causes this.
//!
//! Invariant: a bucket per session bounds the calls to the provider, also when clients hang up.
//!
//! Deliberately absent: sharing between replicas. Each replica has its own bucket.

use std::time::Duration;

use oidc::{Outage, UserinfoError};
use serde_json::Map;
use session_proto::client::SessionError;
use session_proto::v1::{ErrorReason, Session};

use crate::browser::Browser;
use crate::http::errors::{Handler, HttpError};
use crate::http::protect::rate_limit::RateLimiter;
use crate::sessions::{CurrentSession, TokenFor};
use crate::sign_in::user::user;

/// When `me` reads userinfo again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProfileRefetch {
    /// Never.
    Never,
    /// When requested by `?refetch=true`.
    OnRequest,
    /// Each time.
    Always,
}

/// Refetches per session in [`REFETCH_WINDOW`]: one, and two retries.
const REFETCHES: u64 = 3;

/// On average one refetch in five seconds: a user who returns from the provider's profile page sees the changes.
const REFETCH_WINDOW: Duration = Duration::from_secs(15);

/// How often a merge is retried if the session changes meanwhile.
const MERGES: usize = 3;

/// One bucket per session.
pub(crate) fn limiter() -> RateLimiter {
    RateLimiter::within(REFETCH_WINDOW, REFETCHES)
}

/// The session with the provider's current claims. Reads userinfo with a valid access token, merges it over the user,
/// and saves the result if this edge may.
pub(super) async fn refetch(browser: &Browser, current: &CurrentSession) -> Result<Session, HttpError> {
    let Some(provider) = browser.providers.of_session(&current.session.issuer) else {
        tracing::warn!(
            issuer = current.session.issuer,
            "profile not refreshed: the provider is not configured"
        );
        return Err(HttpError::Provider(Handler::Profile, Outage::BadAnswer));
    };
    let token = browser
        .sessions
        .access_token(&current.id, &TokenFor::default())
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
            // Without the right to update sessions, the edge answers with the merged claims and does not store them.
            Err(error) if error.reason == ErrorReason::ErrCallerNotAllowed => {
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
    tracing::warn!(error = &error as &dyn std::error::Error, "profile not refreshed");
    HttpError::Session {
        reason: error.reason,
        scopes: None,
        handler: Some(Handler::Profile),
    }
}

fn userinfo_failed(error: UserinfoError) -> HttpError {
    tracing::warn!(error = &error as &dyn std::error::Error, "profile not refreshed");
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
