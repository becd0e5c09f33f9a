//! Access tokens of a session.

use session_proto::{timestamp, v1};
use tokio::time::Instant;

use super::api::Api;
use super::arguments;
use super::call::Call;
use crate::refresh::ports::WaitingCaller;
use crate::session::access::good_until_ms;
use crate::sessions::SessionsError;

pub(super) async fn get_access_token(
    api: &Api,
    call: &Call,
    request: v1::GetAccessTokenRequest,
) -> Result<v1::GetAccessTokenResponse, SessionsError> {
    let since = Instant::now();
    let handle = call.by_id(&request.session_id);
    let target = arguments::api_target(&request)?;
    let caller = call.caller.log_name().unwrap_or_default();
    let waiting_caller = WaitingCaller { caller, since };
    let (session, force) = (api.sessions.get(handle?).await?, request.force_refresh);
    call.is_about_person(&session.issuer, &session.subject);
    let granted = match &target {
        None => {
            let scopes = &request.scopes;
            api.sessions
                .access_token(session, scopes, force, waiting_caller)
                .await?
        }
        Some(target) => {
            api.sessions
                .api_token(&session, target, force, waiting_caller)
                .await?
        }
    };
    let good_until_ms = good_until_ms(&granted.access);
    Ok(v1::GetAccessTokenResponse {
        good_until: Some(timestamp::from_ms(good_until_ms)),
        access_token: granted.access.value.text().into_inner(),
        token_type: granted.access.token_type,
        scope: granted.scope.text(),
        expires_at: Some(timestamp::from_ms(granted.access.expires_at_ms)),
        audience: request.audience,
        resource: request.resource,
    })
}
