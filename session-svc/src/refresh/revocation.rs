//! Revoking refresh tokens at the provider once nobody needs them (RFC 7009): later, bounded, without an answer to
//! anybody, and again until it is done, for each is noted in the store first (`revocation_notes`).

use std::sync::{Arc, PoisonError};

use chassis::secret::Secret;
use oidc::{ProviderError, Revoked};

use super::Refresher;
use super::measures::RevocationOutcome;
use crate::sessions::ports::RevocationNote;

/// What the provider says of a token type it does not revoke: another request changes nothing (RFC 7009, section 2.2.1).
const UNSUPPORTED: &str = "unsupported_token_type";

impl Refresher {
    /// Notes and revokes a refresh token in a task of its own.
    pub(super) fn revoke_in_background(&self, issuer: &str, refresh_token: Secret<String>) {
        let (refresher, issuer) = (self.clone(), issuer.to_owned());
        self.work.spawn(async move {
            let note = refresher.note(&issuer, refresh_token, None).await;
            refresher.revoke_and_forget(note).await;
        });
    }

    /// Revokes what was noted, unless too many revocations are under way; the provider's HTTP timeout bounds it.
    pub(super) async fn revoke_and_forget(&self, note: RevocationNote) {
        let Ok(_permit) = Arc::clone(&self.revocations).try_acquire_owned() else {
            tracing::warn!("too many revocations are under way: a refresh token is revoked later");
            self.measures.revocation(RevocationOutcome::PutOff);
            return;
        };
        if self.revoke(&note).await {
            self.forget_note(&note).await;
        }
    }

    /// Sends the request; true if there is nothing left to revoke.
    pub(super) async fn revoke(&self, note: &RevocationNote) -> bool {
        let issuer = note.issuer.as_str();
        let Some(provider) = self.providers.of(issuer) else {
            tracing::warn!(
                issuer,
                "the provider is not configured: a refresh token is left to expire"
            );
            self.measures.revocation(RevocationOutcome::GivenUp);
            return true;
        };
        let (outcome, is_over) = match provider
            .revoke(note.refresh_token.expose(), self.keeper.now_ms() / 1_000)
            .await
        {
            Ok(Revoked::Done) => {
                tracing::debug!(issuer, "a refresh token was revoked");
                (RevocationOutcome::Done, true)
            }
            Ok(Revoked::NotOffered) => {
                tracing::debug!(
                    issuer,
                    "the provider revokes no tokens: a refresh token is left to expire"
                );
                (RevocationOutcome::NotOffered, true)
            }
            Err(error) => {
                let is_final =
                    matches!(&error, ProviderError::Refused { refusal, .. } if refusal.code() == UNSUPPORTED);
                let error = &error as &dyn std::error::Error;
                tracing::warn!(issuer, error, "a refresh token could not be revoked");
                (RevocationOutcome::Failed, is_final)
            }
        };
        self.measures.revocation(outcome);
        let mut without = self
            .without_revocation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match outcome {
            RevocationOutcome::NotOffered => _ = without.insert(note.issuer.clone()),
            RevocationOutcome::Done => _ = without.remove(issuer),
            RevocationOutcome::Failed | RevocationOutcome::PutOff | RevocationOutcome::GivenUp => {}
        }
        is_over
    }
}
