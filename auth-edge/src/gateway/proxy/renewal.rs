//! Repeats a request once if the upstream rejected its access token.
//!
//! A token may be unusable before it expires: revoked, or checked by a clock ahead of ours. One refresh may
//! help, a second one would not. Rejected requests of one session wait for each other and share the new
//! token.
//!
//! Invariants
//! - A request is repeated at most once for its token.
//! - A token is force-refreshed at most once in [`PAUSE_MS`], to protect the provider from repeated rejections.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use axum::http::{Response, StatusCode, header};
use tokio::sync::Mutex;

use crate::http::shared::Shared;
use crate::sessions::{CachedToken, CurrentSession, TokenFor};

/// Slots for sessions' tokens. Two tokens that share a slot only wait for each other.
const SLOTS: usize = 1_024;

/// Minimum time between two forced refreshes of a token, in milliseconds.
const PAUSE_MS: u64 = 30_000;

/// Remembers which tokens were force-refreshed recently.
#[derive(Clone)]
pub(super) struct Renewals {
    /// Per slot: a hash of the session, and when its token was refreshed, in milliseconds.
    slots: Arc<[Mutex<(u64, u64)>]>,
    hasher: RandomState,
}

impl Default for Renewals {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Renewals {
    /// Another token than the rejected one, if available.
    pub(super) async fn renew(
        &self,
        shared: &Shared,
        current: &CurrentSession,
        wanted: &TokenFor,
        refused: &CachedToken,
    ) -> Option<Arc<CachedToken>> {
        // The session's own token is the same for all required scopes.
        let api = wanted.names_api().then_some(wanted);
        let session = self.hasher.hash_one((&current.session.handle, api));
        let slot = usize::try_from(session % SLOTS as u64).ok()?;
        let mut last = self.slots.get(slot)?.lock().await;
        // Another request may have refreshed it since.
        let other = async |force_refresh| match shared
            .sessions
            .fetch_token(&current.id, wanted, force_refresh)
            .await
        {
            Ok(granted) => Some(granted).filter(|granted| granted.authorization != refused.authorization),
            Err(error) => {
                tracing::info!(
                    error = &error as &dyn std::error::Error,
                    "an access token that the upstream refused could not be refreshed"
                );
                None
            }
        };
        if let Some(other) = other(false).await {
            return Some(other);
        }
        let now_ms = shared.clock.now_ms();
        let (last_session, last_at_ms) = *last;
        if last_session == session && now_ms < last_at_ms.saturating_add(PAUSE_MS) {
            return None;
        }
        *last = (session, now_ms);
        other(true).await
    }
}

/// Whether an answer rejects the token itself (RFC 6750, section 3.1), or the token has expired by now.
pub(super) fn refuses<B>(answer: &Response<B>, granted: &CachedToken, now_ms: u64) -> bool {
    let says_so = || {
        answer
            .headers()
            .get_all(header::WWW_AUTHENTICATE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| {
                let value = value.to_ascii_lowercase();
                let ours = value.contains("bearer") || value.contains("dpop");
                ours && value.contains("invalid_token")
            })
    };
    answer.status() == StatusCode::UNAUTHORIZED && (granted.expires_at_ms <= now_ms || says_so())
}

#[cfg(test)]
mod tests {
    use session_proto::timestamp;
    use session_proto::v1::GetAccessTokenResponse;

    use super::*;
    use crate::sessions::Moment;

    #[test]
    fn only_an_answer_about_the_token_asks_for_another() {
        let granted = GetAccessTokenResponse {
            expires_at: Some(timestamp::from_ms(1_000)),
            ..GetAccessTokenResponse::default()
        };
        let granted = CachedToken::new(&TokenFor::default(), Moment::default(), granted);
        let answer = |status: u16, challenge: &str| {
            let answer = Response::builder().status(status);
            answer
                .header(header::WWW_AUTHENTICATE, challenge)
                .body(())
                .unwrap()
        };
        let invalid = "Bearer realm=\"a\", error=\"invalid_token\"";
        let scope = "Bearer error=\"insufficient_scope\"";
        assert!(refuses(&answer(401, invalid), &granted, 999));
        assert!(!refuses(&answer(403, invalid), &granted, 999));
        assert!(!refuses(&answer(401, scope), &granted, 999));
        assert!(!refuses(&answer(401, "Basic"), &granted, 999));
        let silent = Response::builder().status(401).body(()).unwrap();
        assert!(refuses(&silent, &granted, 1_000));
    }
}
