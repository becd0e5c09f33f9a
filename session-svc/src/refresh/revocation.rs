//! Taking refresh tokens back at the provider once nobody needs them (RFC 7009): later, bounded, told to nobody.

use std::sync::Arc;

use chassis::secret::Secret;
use oidc::Revoked;

use super::Refresher;

impl Refresher {
    /// Revokes a refresh token in a task of its own; the provider's HTTP timeout bounds it.
    pub(super) fn revoke_in_background(&self, refresh_token: Secret<String>) {
        let Ok(permit) = Arc::clone(&self.revocations).try_acquire_owned() else {
            tracing::warn!("too many revocations are under way: a refresh token is left to expire");
            return;
        };
        let provider = Arc::clone(&self.provider);
        let now_secs = self.keeper.now_ms() / 1_000;
        tokio::spawn(async move {
            match provider.revoke(refresh_token.expose(), now_secs).await {
                Ok(Revoked::Done | Revoked::NotOffered) => {}
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "a refresh token could not be revoked"
                    );
                }
            }
            drop(permit);
        });
    }
}
