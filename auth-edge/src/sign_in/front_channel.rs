//! Front-channel logout: the provider frames this address in the browser that signs out at the provider
//! (OpenID Connect Front-Channel Logout 1.0). Off by default.
//!
//! Invariants
//! - Without both `iss` and `sid` the request has no effect.
//! - They identify the session, since browsers send no cookie into a cross-site frame.
//! - Only the provider may frame the answer.
//!
//! The caller is not authenticated. So a request without a matching session leaves no trace, offline tokens
//! stay valid, and each address has a rate limit.
//!
//! Deliberately absent: the answer does not show whether there was a session.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use chassis::audit::{AuditRecord, Event, Outcome};
use session_proto::v1::{Cause, EndSessionsRequest};

use crate::http::device::record_from;
use crate::http::errors::{HttpError, Limit};
use crate::http::pages;
use crate::http::{no_store, request};
use crate::providers::IdentityProvider;
use crate::sign_in::SignIn;

/// GET with `iss` and `sid` ends the sessions that belong to them.
pub(crate) async fn handle(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, _body) = request.into_parts();
    sign_in.admit((&sign_in.front_channel_limit, Limit::FrontChannelLogouts), &head)?;
    let query = head.uri.query().unwrap_or_default();
    let sid = request::first_parameter(query, "sid").filter(|sid| !sid.is_empty());
    let issuer = request::first_parameter(query, "iss");
    let provider = issuer
        .as_deref()
        .and_then(|issuer| sign_in.providers.by_issuer(issuer));
    if let (Some(provider_sid), Some(provider), Some(issuer)) = (sid, provider, issuer) {
        let request = EndSessionsRequest {
            issuer,
            provider_sid,
            cause: Cause::FrontChannelLogout.into(),
            keep_offline_tokens: true,
            existing_only: true,
            ..EndSessionsRequest::default()
        };
        let ended = sign_in.sessions.client.end_sessions(request).await;
        let ended =
            ended.map_err(|error| HttpError::session_service_down(&error, "sessions could not be ended"))?;
        let count = ended.ended_count;
        // An unauthenticated request that ended no session leaves no trace.
        if count > 0 {
            let device = sign_in.device(&head);
            AuditRecord {
                provider: Some(&provider.id),
                step: Some("front_channel"),
                ended_count: Some(count),
                ..record_from(&device, Event::ProviderLogout, Outcome::Success)
            }
            .write();
        }
    }
    let ours = || sign_in.providers.origins();
    let framed_by = provider.map_or_else(ours, IdentityProvider::origin);
    Ok(no_store(pages::framed_by(&framed_by)))
}
