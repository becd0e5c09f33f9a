//! The calls.

use std::pin::Pin;
use std::sync::Arc;

use axum::http::header;
use futures_util::Stream;
use session_proto::v1::browser_session_service_server::BrowserSessionService;
use session_proto::v1::session::State;
use session_proto::v1::{
    Cause, DeviceBinding, EndMyOtherSessionsRequest, EndMyOtherSessionsResponse, EndMySessionRequest,
    EndMySessionResponse, EndSessionRequest, EndSessionsRequest, ErrorReason, GetCurrentSessionRequest,
    GetCurrentSessionResponse, GetSessionRequest, ListMySessionsRequest, ListMySessionsResponse,
    ListSessionsRequest, RollCurrentSessionRequest, RollCurrentSessionResponse, Session, SessionEvent,
    WatchMySessionRequest, end_session_request, get_session_request,
};
use session_proto::{error, timestamp};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::caller::{failed, listing_share, require_session, watching_share};
use super::watch;
use crate::browser::Browser;
use crate::http::protect::shares::Share;
use crate::http::request;
use crate::sessions::{CachedSession, CurrentSession, SessionUse};

/// The largest page the session service returns, and how many pages are searched for an unreadable session.
const LARGEST_PAGE: i32 = 200;
const PAGES_MAX: usize = 20;

/// Answers the browser's calls, of users and of operators.
pub(super) struct BrowserApi {
    pub(super) browser: Arc<Browser>,
}

impl BrowserApi {
    /// The session the call acts for, read without rolling. The caller has checked the origin.
    async fn current<Q>(&self, request: &Request<Q>) -> Result<CurrentSession, Status> {
        require_session(
            self.browser
                .sessions
                .current(request.metadata().as_ref(), SessionUse::LookOnly)
                .await,
        )
    }

    /// [`Self::current`] for a call that reads or ends several sessions. It takes one of the person's call slots. A
    /// session that has to sign in again is rejected: the client may be an attacker with a stolen cookie.
    async fn administering<Q>(&self, request: &Request<Q>) -> Result<(Arc<CachedSession>, Share), Status> {
        let mine = self.current(request).await?.session;
        if mine.sign_in_demand.is_some() {
            let problem = "the user has to sign in again";
            return Err(error::status(ErrorReason::ErrFailedRefreshGrant, problem, []));
        }
        let share = listing_share(&self.browser, &mine)?;
        Ok((mine, share))
    }

    /// [`Self::current`] for a call that counts as use.
    async fn roll<Q>(&self, request: &Request<Q>) -> Result<CurrentSession, Status> {
        let headers = request.metadata().as_ref();
        let peer = request::peer(request.extensions());
        let device = || self.browser.device(headers, peer);
        require_session(
            self.browser
                .sessions
                .current(headers, SessionUse::Rolls(&device))
                .await,
        )
    }

    /// Whether an unreadable session is in its person's list: only the list says who owns it.
    async fn is_unreadable_of(&self, mine: &Session, handle: &str) -> Result<bool, Status> {
        let mut list = ListSessionsRequest {
            issuer: mine.issuer.clone(),
            subject: mine.subject.clone(),
            page_size: LARGEST_PAGE,
            page_token: String::new(),
        };
        for _ in 0..PAGES_MAX {
            let client = &self.browser.sessions.client;
            let page = client.list_sessions(list.clone()).await.map_err(failed)?;
            let is_it = |one: &Session| one.handle == handle && one.state() == State::Unreadable;
            if page.sessions.iter().any(is_it) {
                return Ok(true);
            }
            if page.next_page_token.is_empty() {
                break;
            }
            list.page_token = page.next_page_token;
        }
        Ok(false)
    }

    fn server_time(&self) -> Option<prost_types::Timestamp> {
        Some(timestamp::from_ms(self.browser.clock.now_ms()))
    }
}

#[tonic::async_trait]
impl BrowserSessionService for BrowserApi {
    async fn get_current_session(
        &self,
        request: Request<GetCurrentSessionRequest>,
    ) -> Result<Response<GetCurrentSessionResponse>, Status> {
        let current = self.current(&request).await?;
        let session = Some(redact_session(Session::clone(&current.session), None));
        Ok(Response::new(GetCurrentSessionResponse {
            session,
            server_time: self.server_time(),
            provider_name: self.browser.providers.name_of_session(&current.session.issuer),
        }))
    }

    async fn roll_current_session(
        &self,
        request: Request<RollCurrentSessionRequest>,
    ) -> Result<Response<RollCurrentSessionResponse>, Status> {
        let current = self.roll(&request).await?;
        let cookie = self.browser.sessions.cookie_if_alive(&current).await;
        let session = Some(redact_session(Session::clone(&current.session), None));
        let mut response = Response::new(RollCurrentSessionResponse {
            session,
            server_time: self.server_time(),
        });
        let cookie = cookie.map(|cookie| (header::SET_COOKIE, cookie));
        *response.metadata_mut() = MetadataMap::from_headers(cookie.into_iter().collect());
        Ok(response)
    }

    async fn list_my_sessions(
        &self,
        request: Request<ListMySessionsRequest>,
    ) -> Result<Response<ListMySessionsResponse>, Status> {
        let (mine, _share) = self.administering(&request).await?;
        let ListMySessionsRequest {
            page_size,
            page_token,
        } = request.into_inner();
        let list = ListSessionsRequest {
            issuer: mine.issuer.clone(),
            subject: mine.subject.clone(),
            page_size,
            page_token,
        };
        let client = &self.browser.sessions.client;
        let page = client.list_sessions(list).await.map_err(failed)?;
        let sessions = page
            .sessions
            .into_iter()
            .map(|session| redact_session(session, Some(&mine.handle)))
            .collect();
        Ok(Response::new(ListMySessionsResponse {
            sessions,
            next_page_token: page.next_page_token,
            server_time: self.server_time(),
        }))
    }

    async fn end_my_session(
        &self,
        request: Request<EndMySessionRequest>,
    ) -> Result<Response<EndMySessionResponse>, Status> {
        let (mine, _share) = self.administering(&request).await?;
        let handle = request.into_inner().handle;
        let client = &self.browser.sessions.client;
        let by = Some(get_session_request::By::Handle(handle.clone()));
        let is_mine = match client.get_session(GetSessionRequest { by }).await {
            Ok(read) => {
                let theirs = read.session.unwrap_or_default();
                (&theirs.issuer, &theirs.subject) == (&mine.issuer, &mine.subject)
            }
            Err(error) => match error.reason {
                ErrorReason::ErrMissingSession => false,
                ErrorReason::ErrInternal | ErrorReason::ErrUnknownEncryptionKey => {
                    self.is_unreadable_of(&mine, &handle).await?
                }
                _ => return Err(failed(error)),
            },
        };
        // Answer as if another person's session did not exist: a handle must not reveal who has sessions.
        if !is_mine {
            return Ok(Response::new(EndMySessionResponse { ended: false }));
        }
        let by = Some(end_session_request::By::Handle(handle));
        let end = EndSessionRequest {
            by,
            cause: Cause::OtherDevice.into(),
            ..EndSessionRequest::default()
        };
        let ended = client.end_session(end).await.map_err(failed)?.ended;
        Ok(Response::new(EndMySessionResponse { ended }))
    }

    async fn end_my_other_sessions(
        &self,
        request: Request<EndMyOtherSessionsRequest>,
    ) -> Result<Response<EndMyOtherSessionsResponse>, Status> {
        let (mine, _share) = self.administering(&request).await?;
        let end = EndSessionsRequest {
            issuer: mine.issuer.clone(),
            subject: mine.subject.clone(),
            except_handle: mine.handle.clone(),
            cause: Cause::OtherDevice.into(),
            ..EndSessionsRequest::default()
        };
        let client = &self.browser.sessions.client;
        let ended_count = client.end_sessions(end).await.map_err(failed)?.ended_count;
        Ok(Response::new(EndMyOtherSessionsResponse { ended_count }))
    }

    type WatchMySessionStream = Pin<Box<dyn Stream<Item = Result<SessionEvent, Status>> + Send>>;

    async fn watch_my_session(
        &self,
        request: Request<WatchMySessionRequest>,
    ) -> Result<Response<Self::WatchMySessionStream>, Status> {
        let current = self.current(&request).await?;
        let share = watching_share(&self.browser, &current.session)?;
        let stream = watch::stream(&self.browser, current, share, request.into_inner().resume_token)
            .await
            .map_err(failed)?;
        Ok(Response::new(stream))
    }
}

/// A session as its own person may see it in a browser: of each token, only scope and expiry.
fn redact_session(session: Session, current: Option<&str>) -> Session {
    let is_current = current.is_none_or(|handle| handle == session.handle);
    let device_binding = session.device_binding.map(|binding| DeviceBinding {
        jwk: String::new(),
        ..binding
    });
    Session {
        device_binding,
        cookie_generation: None,
        has_refresh_token: false,
        provider_sid: String::new(),
        current: is_current,
        ..session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_told_that_a_session_is_bound_and_not_to_which_key() {
        let session = Session {
            device_binding: Some(DeviceBinding {
                jwk: "{}".to_owned(),
                bound_at: Some(timestamp::from_ms(1_000)),
            }),
            cookie_generation: Some(session_proto::v1::CookieGeneration::default()),
            ..Session::default()
        };
        let redacted = redact_session(session, None);
        assert_eq!(redacted.cookie_generation, None);
        let binding = redacted.device_binding.unwrap();
        assert_eq!(
            (binding.jwk.as_str(), binding.bound_at),
            ("", Some(timestamp::from_ms(1_000)))
        );
    }
}
