//! Revoking tokens at the provider once nobody needs them (RFC 7009): later, bounded, without an answer to
//! anybody, and again until it is done, for each is noted in the store first (`revocation_notes`).

use std::sync::Arc;

use oidc::{ProviderError, Revoked, TokenHint};

use super::revocation_notes::RevocationNote;
use super::{RefreshProvider, Refresher};
use crate::session::{Name, RevocableToken};

/// What the provider says of a token type it does not revoke: another request changes nothing (RFC 7009, section 2.2.1).
const UNSUPPORTED: &str = "unsupported_token_type";

/// Statuses of the 400s that say nothing of the token: the client is not believed, or the request may be repeated later.
const MAY_PASS: [u16; 5] = [401, 403, 408, 425, 429];

impl Refresher {
    /// Revokes what was noted, unless too many revocations are under way; the provider's HTTP timeout bounds it.
    pub(super) async fn revoke_and_forget(&self, name: Name, note: RevocationNote) {
        let Ok(_permit) = Arc::clone(&self.revocations).try_acquire_owned() else {
            tracing::warn!("too many revocations are under way: a refresh token is revoked later");
            self.measures.revocation("put_off");
            return;
        };
        if self.revoke(&note).await {
            self.forget_note(name).await;
        }
    }

    /// Sends the requests, one after the other; true if there is nothing left to revoke.
    pub(super) async fn revoke(&self, note: &RevocationNote) -> bool {
        let issuer = note.issuer.as_str();
        let Some(provider) = self.providers.of(issuer) else {
            tracing::warn!(
                issuer,
                "the provider is not configured: a refresh token is left to expire"
            );
            self.measures.revocation("given_up");
            return true;
        };
        for token in &note.tokens {
            // A provider that is away has not come back for the next.
            if !self.revoke_one(provider.as_ref(), issuer, token).await {
                return false;
            }
        }
        true
    }

    /// Sends one request; true if it need not be repeated.
    async fn revoke_one(&self, provider: &dyn RefreshProvider, issuer: &str, token: &RevocableToken) -> bool {
        let now = self.keeper.now_ms() / 1_000;
        let hint = if token.is_access {
            TokenHint::AccessToken
        } else {
            TokenHint::RefreshToken
        };
        let answer = provider.revoke(token.value.text().expose(), hint, now).await;
        let (outcome, is_over) = match answer {
            Ok(Revoked::Done) => {
                tracing::debug!(issuer, "a token was revoked");
                ("done", true)
            }
            Ok(Revoked::NotOffered) => {
                tracing::debug!(issuer, "the provider revokes no tokens: one is left to expire");
                ("not_offered", true)
            }
            Err(error) => {
                let is_final = is_final(&error, token.is_access);
                let error = &error as &dyn std::error::Error;
                if is_final && token.is_access {
                    tracing::debug!(issuer, error, "the provider revokes no such access tokens");
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

/// Whether another request would be refused again. An access token is refused for good by anything but a client that is not
/// believed: it dies by itself soon, and holds up no other note meanwhile.
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
