//! Revoking unused tokens at the provider (RFC 7009): later, bounded, and without a result for any caller.
//! Each is noted in the store first (`revocation_notes`) and retried until done.

use std::sync::Arc;

use oidc::{ProviderError, RevocationResult, TokenHint};

use super::revocation_notes::RevocationNote;
use super::{RefreshProvider, Refresher};
use crate::session::{Name, RevocableToken};

/// The provider does not revoke this token type: a retry changes nothing (RFC 7009, section 2.2.1).
const UNSUPPORTED: &str = "unsupported_token_type";

/// Client errors that say nothing about the token: client authentication failed, or a retry may succeed.
const MAY_PASS: [u16; 5] = [401, 403, 408, 425, 429];

impl Refresher {
    /// Revokes the noted tokens, unless too many revocations are running. The provider's timeout bounds it.
    pub(super) async fn revoke_and_forget(&self, name: Name, note: RevocationNote) {
        let Ok(_permit) = Arc::clone(&self.revocations).try_acquire_owned() else {
            tracing::warn!("too many revocations are under way: a refresh token is revoked later");
            self.measures.revocation("put_off");
            return;
        };
        if self.revoke(&note).await.is_ok() {
            self.forget_note(name).await;
        }
    }

    /// Sends the requests one after the other.
    ///
    /// # Errors
    /// The issuer of the last server with tokens left to revoke.
    pub(super) async fn revoke<'a>(&self, note: &'a RevocationNote) -> Result<(), &'a str> {
        let mut away = Vec::new();
        for token in &note.tokens {
            let issuer = note.issuer_of(token);
            // An unavailable server will not answer the next request either.
            if !away.contains(&issuer) && !self.revoke_one(issuer, token).await {
                away.push(issuer);
            }
        }
        away.pop().map_or(Ok(()), Err)
    }

    /// Sends one request; true if no retry is needed.
    async fn revoke_one(&self, issuer: &str, token: &RevocableToken) -> bool {
        let server = self.providers.api_servers().of(&token.server);
        let provider = match token.server.as_str() {
            "" => self.providers.of(issuer).map(Arc::as_ref),
            _ => server
                .as_ref()
                .map(|server| &server.client as &dyn RefreshProvider),
        };
        let Some(provider) = provider else {
            tracing::warn!(
                issuer,
                "the server of a token is not configured: the token is not revoked and expires"
            );
            self.measures.revocation("given_up");
            return true;
        };
        let now = self.session_store.now_ms() / 1_000;
        let hint = if token.is_access {
            TokenHint::AccessToken
        } else {
            TokenHint::RefreshToken
        };
        let answer = provider.revoke(token.value.text().expose(), hint, now).await;
        let (outcome, is_over) = match answer {
            Ok(RevocationResult::Done) => {
                tracing::debug!(issuer, "a token was revoked");
                ("done", true)
            }
            Ok(RevocationResult::NotOffered) => {
                tracing::debug!(issuer, "the provider does not revoke tokens: this one expires");
                ("not_offered", true)
            }
            Err(error) => {
                let is_final = is_final(&error, token.is_access);
                let error = &error as &dyn std::error::Error;
                if is_final && token.is_access {
                    tracing::debug!(issuer, error, "the provider does not revoke such access tokens");
                    ("unsupported", true)
                } else {
                    tracing::warn!(issuer, error, "a token could not be revoked");
                    ("failed", is_final)
                }
            }
        };
        self.measures.revocation(outcome);
        is_over
    }
}

/// Whether a retry would be refused again. For an access token every refusal is final, except a failed client
/// authentication: the token expires soon, and must not block other notes.
fn is_final(error: &ProviderError, is_access: bool) -> bool {
    match error {
        ProviderError::Refused(_, refusal) => {
            refusal.code() == UNSUPPORTED || (is_access && !refusal.is_about_client())
        }
        ProviderError::Status(_, status) => {
            is_access && (400..500).contains(status) && !MAY_PASS.contains(status)
        }
        _ => false,
    }
}
