//! Access tokens for single APIs: by token exchange (RFC 8693), or a refresh for one (RFC 8707, section 2.2).

use super::RelyingParty;
use crate::grants::grant;
use crate::settings::token_target::TokenTarget;
use crate::{GrantError, RefreshedTokens};

/// The grant of an exchange (RFC 8693, section 2.1).
pub(super) const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// The type of the subject token and the requested token (RFC 8693, section 3).
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

impl RelyingParty {
    /// Exchanges a user's access token for one for the target (RFC 8693, section 2.1). A refresh token in the
    /// answer is ignored.
    pub async fn exchange_token(
        &self,
        access_token: &str,
        target: &TokenTarget<'_>,
        now: u64,
    ) -> Result<RefreshedTokens, GrantError> {
        let fields = [
            ("grant_type", TOKEN_EXCHANGE),
            ("subject_token", access_token),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
        ];
        let fields: Vec<_> = fields.into_iter().chain(target.fields()).collect();
        let answer = self.request_token(&fields, now).await?;
        grant::exchange_answer(&answer, &self.settings, now)
    }

    /// Exchanges a refresh token for an access token for the target. The refresh token may rotate as usual.
    pub async fn refresh_for(
        &self,
        refresh_token: &str,
        target: &TokenTarget<'_>,
        now: u64,
    ) -> Result<RefreshedTokens, GrantError> {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        let fields: Vec<_> = fields.into_iter().chain(target.fields()).collect();
        self.send_refresh(&fields, now).await
    }
}
