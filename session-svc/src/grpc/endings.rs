//! Ends sessions: one, all of a user or of a provider's session, and those that a security event names.

use std::time::Duration;

use session_proto::v1;
use session_proto::v1::end_session_request::By;
use tokio::time::Instant;

use super::api::Api;
use super::arguments;
use super::call::Call;
use crate::session::Cause;
use crate::session_store::Removal;
use crate::sessions::{EndAll, OfflineTokens, SessionsError, SingleUseOrder};

pub(super) async fn end_session(
    api: &Api,
    call: &Call,
    request: v1::EndSessionRequest,
) -> Result<v1::EndSessionResponse, SessionsError> {
    let cause = arguments::cause(request.cause, Cause::Logout);
    let offline = OfflineTokens::kept_if(request.keep_offline_tokens);
    let (handle, is_holder) = match &request.by {
        Some(By::SessionId(id)) => (call.by_id(id)?, true),
        Some(By::Handle(handle)) => (call.note_session(arguments::handle("handle", handle))?, false),
        None => return arguments::wrong("session_id", "either session_id or handle is required"),
    };
    let removed = api.sessions.end_session(handle, cause, offline).await?;
    let ended = removed.is_ended();
    let _ = call.notes.ended.set((cause, u32::from(ended)));
    // Only the holder of the secret receives the hint.
    let (issuer, id_token_hint) = match removed {
        Removal::Session(session) if is_holder => (session.values.issuer, session.values.tokens.id_token),
        _ => Default::default(),
    };
    Ok(v1::EndSessionResponse {
        ended,
        id_token_hint: id_token_hint
            .map(|token| token.text().into_inner())
            .unwrap_or_default(),
        issuer,
    })
}

pub(super) async fn end_sessions(
    api: &Api,
    call: &Call,
    request: v1::EndSessionsRequest,
) -> Result<v1::EndSessionsResponse, SessionsError> {
    let all = read(&request, call.deadline)?;
    if let Some(subject) = &all.subject {
        call.is_about_person(&all.issuer, subject);
    }
    let ended_count = api.sessions.end_all(&all).await?;
    let _ = call.notes.ended.set((all.cause, ended_count));
    Ok(v1::EndSessionsResponse { ended_count })
}

pub(super) async fn receive_security_event(
    api: &Api,
    _: &Call,
    request: v1::ReceiveSecurityEventRequest,
) -> Result<v1::ReceiveSecurityEventResponse, SessionsError> {
    let Some(receiver) = &api.receiver else {
        return Err(SessionsError::ListensToNobody);
    };
    let (sessions, authorization) = (&api.sessions, &request.authorization);
    let refusal = match &request.revocation {
        Some(request) => receiver.revoke(sessions, &request.body, authorization).await?,
        None => receiver.receive(sessions, &request.token, authorization).await?,
    };
    let refusal = refusal.map(|(code, description)| (code.name().to_owned(), description));
    let (error_code, description) = refusal.unwrap_or_default();
    Ok(v1::ReceiveSecurityEventResponse {
        error_code,
        description,
    })
}

/// The endings that a request names, for a caller that waits until `answer_by`.
fn read(request: &v1::EndSessionsRequest, answer_by: Option<Instant>) -> Result<EndAll, SessionsError> {
    let issuer = arguments::issuer(&request.issuer)?.to_owned();
    let subject = arguments::name("subject", &request.subject)?.map(str::to_owned);
    let provider_sid = arguments::name("provider_sid", &request.provider_sid)?.map(str::to_owned);
    if subject.is_none() && provider_sid.is_none() {
        return arguments::wrong("subject", "subject or provider_sid is required");
    }
    let except = match request.except_handle.as_str() {
        "" => None,
        text => Some(arguments::handle("except_handle", text)?),
    };
    Ok(EndAll {
        issuer,
        subject,
        provider_sid,
        everyone: false,
        except,
        cause: arguments::cause(request.cause, Cause::Operator),
        offline_tokens: OfflineTokens::kept_if(request.keep_offline_tokens),
        existing_only: request.existing_only,
        once: once(request)?,
        order_age_ms: order_age_ms(request)?,
        answer_by,
    })
}

/// How long ago the caller learned of the ending, in milliseconds: at most a minute, which is longer than a
/// caller retries the call.
fn order_age_ms(request: &v1::EndSessionsRequest) -> Result<Option<u64>, SessionsError> {
    const MOST: Duration = Duration::from_secs(60);
    match arguments::duration("told_ago", request.told_ago.as_ref())? {
        Some(told_ago) if told_ago > MOST => arguments::wrong("told_ago", "is longer than a minute"),
        told_ago => Ok(told_ago.map(|ago| u64::try_from(ago.as_millis()).unwrap_or_default())),
    }
}

fn once(request: &v1::EndSessionsRequest) -> Result<Option<SingleUseOrder>, SessionsError> {
    let until_ms = arguments::time_ms("once_until", request.once_until.as_ref())?;
    let Some(id) = arguments::once_id(&request.once_id)? else {
        return Ok(None);
    };
    let Some(until_ms) = until_ms else {
        return arguments::wrong("once_until", "is required with once_id");
    };
    Ok(Some(SingleUseOrder {
        id: id.to_owned(),
        until_ms,
        request_id: arguments::request_id(&request.request_id)?.map(str::to_owned),
    }))
}
