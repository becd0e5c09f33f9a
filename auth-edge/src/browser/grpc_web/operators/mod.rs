//! `OperatorSessionService` over gRPC-Web: operators find and end the sessions of all people.
//!
//! Invariants
//! - The rule `[operator]` decides each call and each message of a stream, against the caller's session at that time.
//! - The edge alone says who the operator is, which provider a call is about, and which claims it returns.
//! - A call does not extend the operator's own session.

mod activity;
mod admission;
pub(super) mod status;

use std::pin::Pin;

use futures_util::Stream;
use session_proto::v1::list_providers_response::Provider;
use session_proto::v1::operator_session_service_server::OperatorSessionService;
use session_proto::v1::{
    Activity, EndFoundSessionsRequest, EndFoundSessionsResponse, ListEndingsRequest, ListEndingsResponse,
    ListProvidersRequest, ListProvidersResponse, SearchSessionsRequest, SearchSessionsResponse,
    SessionFilter, WatchActivityRequest,
};
use tonic::{Request, Response, Status};

use self::admission::Admission;
use self::status::unanswered;
use super::caller::{listing_share, watching_share};
use super::service::BrowserApi;

#[tonic::async_trait]
impl OperatorSessionService for BrowserApi {
    async fn list_providers(
        &self,
        request: Request<ListProvidersRequest>,
    ) -> Result<Response<ListProvidersResponse>, Status> {
        let admission = Admission::of(&self.browser, "ListProviders", &request).await?;
        let all = &self.browser.providers;
        let own = &admission.current.session.issuer;
        let issuers = admission.rule.providers.issuers(own, all);
        let provider = |issuer: &str| Provider {
            issuer: issuer.to_owned(),
            name: all.name_of_session(issuer),
        };
        Ok(Response::new(ListProvidersResponse {
            providers: issuers.into_iter().map(provider).collect(),
        }))
    }

    async fn search_sessions(
        &self,
        request: Request<SearchSessionsRequest>,
    ) -> Result<Response<SearchSessionsResponse>, Status> {
        let admission = Admission::of(&self.browser, "SearchSessions", &request).await?;
        let asked = request.into_inner();
        let search = SearchSessionsRequest {
            operator: admission.operator(issuer(asked.filter.as_ref()), asked.operator)?,
            claims: admission.rule.claims.clone(),
            ..asked
        };
        let _share = listing_share(&self.browser, &admission.current.session)?;
        let client = &self.browser.sessions.client;
        let mut page = client.search_sessions(search).await.map_err(unanswered)?;
        for session in &mut page.sessions {
            session.current = session.handle == admission.current.session.handle;
        }
        Ok(Response::new(page))
    }

    async fn end_found_sessions(
        &self,
        request: Request<EndFoundSessionsRequest>,
    ) -> Result<Response<EndFoundSessionsResponse>, Status> {
        let admission = Admission::of(&self.browser, "EndFoundSessions", &request).await?;
        let asked = request.into_inner();
        let end = EndFoundSessionsRequest {
            operator: admission.operator(issuer(asked.filter.as_ref()), asked.operator)?,
            ..asked
        };
        let _share = listing_share(&self.browser, &admission.current.session)?;
        let ended = self.browser.sessions.client.end_found_sessions(end).await;
        // Even if no answer came: the operator's own session may have ended.
        self.browser.sessions.cache.forget(&admission.current.id);
        ended.map(Response::new).map_err(unanswered)
    }

    async fn list_endings(
        &self,
        request: Request<ListEndingsRequest>,
    ) -> Result<Response<ListEndingsResponse>, Status> {
        let admission = Admission::of(&self.browser, "ListEndings", &request).await?;
        let asked = request.into_inner();
        let list = ListEndingsRequest {
            operator: admission.operator(&asked.issuer, asked.operator)?,
            ..asked
        };
        let _share = listing_share(&self.browser, &admission.current.session)?;
        let listed = self.browser.sessions.client.list_endings(list).await;
        listed.map(Response::new).map_err(unanswered)
    }

    type WatchActivityStream = Pin<Box<dyn Stream<Item = Result<Activity, Status>> + Send>>;

    async fn watch_activity(
        &self,
        request: Request<WatchActivityRequest>,
    ) -> Result<Response<Self::WatchActivityStream>, Status> {
        let admission = Admission::of(&self.browser, "WatchActivity", &request).await?;
        let asked = request.into_inner();
        let watch = WatchActivityRequest {
            operator: admission.operator(&asked.issuer, asked.operator)?,
            issuer: asked.issuer,
        };
        let share = watching_share(&self.browser, &admission.current.session)?;
        activity::stream(admission, watch, share).await.map(Response::new)
    }
}

fn issuer(filter: Option<&SessionFilter>) -> &str {
    filter.map_or("", |filter| filter.issuer.as_str())
}
