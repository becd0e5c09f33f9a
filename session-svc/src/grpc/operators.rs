//! `session.v1.OperatorSessionService`: finds, ends and watches the sessions of all people.
//!
//! Invariants
//! - Every call names its operator and purpose before it does anything.
//! - Without a list of callers, the service is open only if `SESSION_OPERATOR_SEARCH` is set.

use session_proto::timestamp::from_ms;
use session_proto::v1;
use session_proto::v1::list_providers_response::Provider;

use super::api::Api;
use super::call::Call;
use super::operator_requests::{claims, filter, message, note_operator};
use super::{arguments, resource, watching};
use crate::session::Cause;
use crate::sessions::{FoundEnding, SessionsError};

/// Notes the operator of a call. Fails if the service is not open.
fn begin(api: &Api, call: &Call, operator: Option<&v1::Operator>) -> Result<(), SessionsError> {
    check_open(api)?;
    note_operator(call, operator)
}

/// Fails if neither the list of callers nor the setting opens the service.
fn check_open(api: &Api) -> Result<(), SessionsError> {
    let is_open = api.calls.callers.is_listed() || api.sessions.has_operator_search();
    is_open.then_some(()).ok_or(SessionsError::OperatorsOff)
}

pub(super) async fn list_providers(
    api: &Api,
    _call: &Call,
    _request: v1::ListProvidersRequest,
) -> Result<v1::ListProvidersResponse, SessionsError> {
    check_open(api)?;
    let provider = |issuer| Provider {
        issuer,
        name: String::new(),
    };
    let providers = api.sessions.issuers().into_iter().map(provider).collect();
    Ok(v1::ListProvidersResponse { providers })
}

pub(super) async fn search_sessions(
    api: &Api,
    call: &Call,
    request: v1::SearchSessionsRequest,
) -> Result<v1::SearchSessionsResponse, SessionsError> {
    begin(api, call, request.operator.as_ref())?;
    let filter = filter(call, request.filter.as_ref())?;
    let claims = claims(&request.claims)?;
    let size = arguments::page_size(request.page_size)?;
    let token = arguments::token("page_token", &request.page_token)?;
    let page = api.sessions.search(&filter, size, token).await?;
    let lifetime = api.sessions.lifetime();
    let found = |one| resource::found(one, &filter.issuer, claims, lifetime);
    let sessions: Vec<v1::Session> = page.sessions.iter().map(found).collect();
    note_found(call, sessions.len());
    Ok(v1::SearchSessionsResponse {
        sessions,
        next_page_token: page.next_page_token,
        examined_count: u32::try_from(page.examined).unwrap_or(u32::MAX),
        server_time: Some(from_ms(api.sessions.now_ms())),
    })
}

pub(super) async fn end_found_sessions(
    api: &Api,
    call: &Call,
    request: v1::EndFoundSessionsRequest,
) -> Result<v1::EndFoundSessionsResponse, SessionsError> {
    begin(api, call, request.operator.as_ref())?;
    let order = FoundEnding {
        filter: filter(call, request.filter.as_ref())?,
        except: match request.except_handle.as_str() {
            "" => None,
            text => Some(arguments::handle("except_handle", text)?),
        },
        message: message(&request.message_to_person)?,
    };
    // The origin names the operator: for the records of the sessions, and for the notes of their endings.
    let ending = call.origin().scope(api.sessions.end_found(&order));
    let (ended_count, complete) = ending.await?;
    let _ = call.notes.ended.set((Cause::Operator, ended_count));
    Ok(v1::EndFoundSessionsResponse {
        ended_count,
        complete,
    })
}

pub(super) async fn list_endings(
    api: &Api,
    call: &Call,
    request: v1::ListEndingsRequest,
) -> Result<v1::ListEndingsResponse, SessionsError> {
    begin(api, call, request.operator.as_ref())?;
    let issuer = arguments::issuer(&request.issuer)?;
    let subject = arguments::required_name("subject", &request.subject)?;
    call.is_about_person(issuer, subject);
    let _ = call.notes.filter.set(("subject", subject.to_owned()));
    let endings = api.sessions.endings_of(issuer, subject).await?;
    note_found(call, endings.len());
    let endings = endings.into_iter().map(resource::ending).collect();
    Ok(v1::ListEndingsResponse { endings })
}

pub(super) async fn watch_activity(
    api: &Api,
    call: &Call,
    request: v1::WatchActivityRequest,
) -> Result<watching::ActivityStream, SessionsError> {
    begin(api, call, request.operator.as_ref())?;
    let issuer = arguments::issuer(&request.issuer)?;
    let _ = call.notes.filter.set(("everyone", String::new()));
    watching::activity(api, call, issuer).await
}

fn note_found(call: &Call, count: usize) {
    let _ = call.notes.found.set(u32::try_from(count).unwrap_or(u32::MAX));
}
