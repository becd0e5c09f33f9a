//! `session.v1.OperatorSessionService`: finds, ends and watches the sessions of all people.
//!
//! Invariants
//! - Every call names its operator and purpose before it does anything.
//! - Without a list of callers, the service is open only if `SESSION_OPERATOR_SEARCH` is set.

use session_proto::timestamp::from_ms;
use session_proto::v1;
use session_proto::v1::list_providers_response::Provider;
use session_proto::v1::operator_session_service_server::OperatorSessionService;
use tonic::{Request, Response, Status};

use super::api::Api;
use super::call::Call;
use super::call_context::conclude;
use super::operator_requests::{claims, filter, message, note_operator};
use super::{arguments, resource, watching};
use crate::callers::Rpc;
use crate::session::Cause;
use crate::sessions::{FoundEnding, SessionsError};

#[tonic::async_trait]
impl OperatorSessionService for Api {
    type WatchActivityStream = watching::ActivityStream;

    async fn list_providers(
        &self,
        request: Request<v1::ListProvidersRequest>,
    ) -> Result<Response<v1::ListProvidersResponse>, Status> {
        let (call, _) = Call::with_message(request);
        conclude(Rpc::ListProviders, &call, list_providers(self)).map(Response::new)
    }

    async fn search_sessions(
        &self,
        request: Request<v1::SearchSessionsRequest>,
    ) -> Result<Response<v1::SearchSessionsResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = search_sessions(self, &call, request).await;
        conclude(Rpc::SearchSessions, &call, outcome).map(Response::new)
    }

    async fn end_found_sessions(
        &self,
        request: Request<v1::EndFoundSessionsRequest>,
    ) -> Result<Response<v1::EndFoundSessionsResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let (api, its) = (self.clone(), call.clone());
        let work = Box::pin(async move { end_found_sessions(&api, &its, request).await });
        self.calls.complete(Rpc::EndFoundSessions, &call, work).await
    }

    async fn list_endings(
        &self,
        request: Request<v1::ListEndingsRequest>,
    ) -> Result<Response<v1::ListEndingsResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = list_endings(self, &call, request).await;
        conclude(Rpc::ListEndings, &call, outcome).map(Response::new)
    }

    async fn watch_activity(
        &self,
        request: Request<v1::WatchActivityRequest>,
    ) -> Result<Response<Self::WatchActivityStream>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = watch_activity(self, &call, request).await;
        conclude(Rpc::WatchActivity, &call, outcome).map(Response::new)
    }
}

/// Fails if neither the list of callers nor the setting opens the service.
fn check_open(api: &Api) -> Result<(), SessionsError> {
    let is_open = api.calls.callers.is_listed() || api.sessions.has_operator_search();
    is_open.then_some(()).ok_or(SessionsError::OperatorsOff)
}

fn list_providers(api: &Api) -> Result<v1::ListProvidersResponse, SessionsError> {
    check_open(api)?;
    let provider = |issuer| Provider {
        issuer,
        name: String::new(),
    };
    let providers = api.sessions.issuers().into_iter().map(provider).collect();
    Ok(v1::ListProvidersResponse { providers })
}

async fn search_sessions(
    api: &Api,
    call: &Call,
    request: v1::SearchSessionsRequest,
) -> Result<v1::SearchSessionsResponse, SessionsError> {
    check_open(api)?;
    note_operator(call, request.operator.as_ref())?;
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

async fn end_found_sessions(
    api: &Api,
    call: &Call,
    request: v1::EndFoundSessionsRequest,
) -> Result<v1::EndFoundSessionsResponse, SessionsError> {
    check_open(api)?;
    note_operator(call, request.operator.as_ref())?;
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

async fn list_endings(
    api: &Api,
    call: &Call,
    request: v1::ListEndingsRequest,
) -> Result<v1::ListEndingsResponse, SessionsError> {
    check_open(api)?;
    note_operator(call, request.operator.as_ref())?;
    let issuer = arguments::issuer(&request.issuer)?;
    let subject = arguments::required_name("subject", &request.subject)?;
    call.is_about_person(issuer, subject);
    let _ = call.notes.filter.set(("subject", subject.to_owned()));
    let endings = api.sessions.endings_of(issuer, subject).await?;
    note_found(call, endings.len());
    let endings = endings.into_iter().map(resource::ending).collect();
    Ok(v1::ListEndingsResponse { endings })
}

async fn watch_activity(
    api: &Api,
    call: &Call,
    request: v1::WatchActivityRequest,
) -> Result<watching::ActivityStream, SessionsError> {
    check_open(api)?;
    note_operator(call, request.operator.as_ref())?;
    let issuer = arguments::issuer(&request.issuer)?;
    let _ = call.notes.filter.set(("everyone", String::new()));
    watching::activity(api, call, issuer).await
}

fn note_found(call: &Call, count: usize) {
    let _ = call.notes.found.set(u32::try_from(count).unwrap_or(u32::MAX));
}
