//! Reads sessions: one by its ID or handle, or those of a user, page by page.

use session_proto::v1::get_session_request::By;
use session_proto::{timestamp, v1};

use super::api::Api;
use super::arguments;
use super::call::Call;
use super::resource;
use crate::session::{Handle, Session};
use crate::sessions::SessionsError;

/// The session that a request names.
pub(super) fn requested_handle(request: &v1::GetSessionRequest) -> Result<Handle, SessionsError> {
    match &request.by {
        Some(By::SessionId(id)) => arguments::session_id("session_id", id).map(|id| id.handle()),
        Some(By::Handle(handle)) => arguments::handle("handle", handle),
        None => arguments::wrong("session_id", "either session_id or handle is required"),
    }
}

/// Whether a request names a session by its handle, which is public.
pub(super) fn is_by_handle(request: &v1::GetSessionRequest) -> bool {
    matches!(request.by, Some(By::Handle(_)))
}

/// The answer with a session.
pub(super) fn answer(api: &Api, session: &Session) -> v1::GetSessionResponse {
    v1::GetSessionResponse {
        session: Some(Box::new(api.resource(session))),
        roll_due: api.sessions.roll_is_due(session),
    }
}

pub(super) async fn get_session(
    api: &Api,
    call: &Call,
    request: v1::GetSessionRequest,
) -> Result<v1::GetSessionResponse, SessionsError> {
    let by_handle = is_by_handle(&request);
    if by_handle {
        let _ = call.notes.is_administrative.set(());
    }
    let handle = call.note_session(requested_handle(&request))?;
    let session = api.sessions.get(handle).await?;
    if by_handle {
        call.is_about_person(&session.issuer, &session.subject);
    }
    Ok(answer(api, &session))
}

pub(super) async fn list_sessions(
    api: &Api,
    call: &Call,
    request: v1::ListSessionsRequest,
) -> Result<v1::ListSessionsResponse, SessionsError> {
    let issuer = arguments::issuer(&request.issuer)?;
    let subject = arguments::required_name("subject", &request.subject)?;
    call.is_about_person(issuer, subject);
    let _ = call.notes.is_administrative.set(());
    let size = arguments::page_size(request.page_size)?;
    let token = arguments::token("page_token", &request.page_token)?;
    let page = api.sessions.list(issuer, subject, size, token).await?;
    let lifetime = api.sessions.lifetime();
    let shown = |one| resource::listed(&one, issuer, subject, lifetime);
    let mut sessions: Vec<v1::Session> = page.sessions.into_iter().map(shown).collect();
    // Sessions without a position in the store's order come last.
    let created = |session: &v1::Session| session.created_at.as_ref().map_or(0, timestamp::to_ms);
    sessions.sort_by_key(|session| std::cmp::Reverse(created(session)));
    Ok(v1::ListSessionsResponse {
        sessions,
        next_page_token: page.next_page_token,
    })
}
