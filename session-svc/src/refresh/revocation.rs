//! Taking refresh tokens back at the provider once nobody needs them (RFC 7009): later, bounded, told to nobody.

use std::sync::Arc;

use chassis::secret::Secret;
use oidc::Revoked;

use super::Refresher;
use super::measures::RevocationOutcome;

impl Refresher {
    /// Revokes a refresh token in a task of its own; the provider's HTTP timeout bounds it.
    pub(super) fn revoke_in_background(&self, issuer: &str, refresh_token: Secret<String>) {
        let Some(provider) = self.providers.of(issuer).map(Arc::clone) else {
            tracing::warn!(
                issuer,
                "the provider is not configured: a refresh token is left to expire"
            );
            self.measures.revocation(RevocationOutcome::GivenUp);
            return;
        };
        let Ok(permit) = Arc::clone(&self.revocations).try_acquire_owned() else {
            tracing::warn!("too many revocations are under way: a refresh token is left to expire");
            self.measures.revocation(RevocationOutcome::GivenUp);
            return;
        };
        let (measures, issuer) = (self.measures.clone(), issuer.to_owned());
        let now_secs = self.keeper.now_ms() / 1_000;
        self.work.spawn(async move {
            let outcome = match provider.revoke(refresh_token.expose(), now_secs).await {
                Ok(Revoked::Done) => {
                    tracing::debug!(issuer, "a refresh token was revoked");
                    RevocationOutcome::Done
                }
                Ok(Revoked::NotOffered) => {
                    tracing::debug!(
                        issuer,
                        "the provider revokes no tokens: a refresh token is left to expire"
                    );
                    RevocationOutcome::NotOffered
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(issuer, error, "a refresh token could not be revoked");
                    RevocationOutcome::Failed
                }
            };
            measures.revocation(outcome);
            drop(permit);
        });
    }
}
