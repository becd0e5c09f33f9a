//! A session as the edge knows it: what the session service said, and what is made of it once for many requests.

use std::ops::Deref;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use axum::body::Bytes;
use chassis::secret::Secret;
use serde_json::{Map, Value};
use session_proto::v1::{GetAccessTokenResponse, Session};
use session_proto::{claims, timestamp};

use super::listening::Moment;

/// Access tokens remembered for one session: one for each set of scopes that routes ask for.
const TOKENS_MAX: usize = 8;

/// A session that was read.
#[derive(Debug)]
pub struct Known {
    session: Session,
    user: OnceLock<Map<String, Value>>,
    user_json: OnceLock<Bytes>,
    tokens: RwLock<Vec<Arc<Token>>>,
}

/// An access token that was handed out.
#[derive(Debug)]
pub struct Token {
    scopes: Vec<String>,
    /// When it was asked for.
    pub(super) asked: Moment,
    /// The token.
    pub value: Secret<String>,
    /// How it is presented: `Bearer`, usually.
    pub token_type: String,
    /// The scope granted, separated by spaces.
    pub scope: String,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

impl Token {
    pub(super) fn new(scopes: Vec<String>, asked: Moment, granted: GetAccessTokenResponse) -> Arc<Self> {
        Arc::new(Self {
            scopes,
            asked,
            value: Secret::new(granted.access_token),
            token_type: granted.token_type,
            scope: granted.scope,
            expires_at_ms: granted.expires_at.as_ref().map_or(0, timestamp::to_ms),
        })
    }
}

impl Known {
    /// Takes what the session service said.
    #[must_use]
    pub fn new(session: Session) -> Arc<Self> {
        Arc::new(Self {
            session,
            user: OnceLock::new(),
            user_json: OnceLock::new(),
            tokens: RwLock::default(),
        })
    }

    /// The user's claims.
    pub fn user(&self) -> &Map<String, Value> {
        self.user.get_or_init(|| {
            let user = self.session.user.as_ref();
            user.map(claims::from_struct).unwrap_or_default()
        })
    }

    /// The user's claims as a JSON text.
    pub fn user_json(&self) -> Bytes {
        let json = self.user_json.get_or_init(|| {
            let user = self.session.user.as_ref();
            user.map_or_else(|| b"{}".to_vec(), claims::to_json).into()
        });
        json.clone()
    }

    pub(super) fn token(&self, scopes: &[String]) -> Option<Arc<Token>> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().find(|token| token.scopes == scopes).cloned()
    }

    pub(super) fn keep_token(&self, token: Arc<Token>) {
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|known| known.scopes != token.scopes);
        tokens.truncate(TOKENS_MAX - 1);
        tokens.push(token);
    }
}

impl Deref for Known {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_remembers_a_few_tokens_each_for_its_own_scopes() {
        let known = Known::new(Session::default());
        let scopes = |number: usize| vec![format!("scope-{number}")];
        for number in 0..100 {
            let granted = GetAccessTokenResponse {
                access_token: format!("token-{number}"),
                ..GetAccessTokenResponse::default()
            };
            known.keep_token(Token::new(scopes(number), Moment::default(), granted));
        }
        let kept = |number: &usize| known.token(&scopes(*number)).is_some();
        assert_eq!((0..100).filter(kept).count(), TOKENS_MAX);
        assert_eq!(known.token(&scopes(99)).unwrap().value.expose(), "token-99");
    }
}
