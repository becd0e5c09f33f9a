//! The methods of `session.v1.SessionService`: read the request, do the one thing, write the answer.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use session_proto::v1::session_service_server::SessionService;
use session_proto::{claims, timestamp, v1};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::calls::{Calls, Method};
use super::{arguments, new_session, resource, status};
use crate::session::{Handle, Session, SessionId};
use crate::sessions::{EndAll, Ended, Sessions, SessionsError, Update, WatchScope};

/// Reads and single writes: a few round trips to the store.
const SHORT: Duration = Duration::from_secs(5);

/// Calls that may wait for the provider or touch many sessions.
const LONG: Duration = Duration::from_secs(30);

macro_rules! method {
    ($name:literal, $deadline:expr) => {
        Method {
            name: concat!("session.v1.SessionService/", $name),
            deadline: $deadline,
        }
    };
}

/// The service.
#[derive(Clone)]
pub struct Api {
    sessions: Sessions,
    calls: Calls,
    shutdown: CancellationToken,
}

impl Api {
    /// The service over its use cases.
    pub(super) fn new(sessions: Sessions, calls: Calls, shutdown: CancellationToken) -> Self {
        Self {
            sessions,
            calls,
            shutdown,
        }
    }

    fn resource(&self, session: &Session) -> Option<v1::Session> {
        Some(resource::session(session, self.sessions.lifetime()))
    }
}

fn handle_of(id: &Result<SessionId, SessionsError>) -> Option<Handle> {
    id.as_ref().ok().map(SessionId::handle)
}

#[tonic::async_trait]
impl SessionService for Api {
    type WatchSessionsStream = BoxStream<'static, Result<v1::SessionEvent, Status>>;

    async fn create_session(
        &self,
        request: Request<v1::CreateSessionRequest>,
    ) -> Result<Response<v1::CreateSessionResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let work = async {
            let created = self.sessions.create(new_session::read(&request)?).await?;
            tracing::info!(session = %created.session.handle, "a session began");
            Ok(v1::CreateSessionResponse {
                session_id: created.id.reveal(),
                session: self.resource(&created.session),
            })
        };
        self.calls
            .answer(method!("CreateSession", SHORT), &metadata, None, work)
            .await
    }

    async fn get_session(
        &self,
        request: Request<v1::GetSessionRequest>,
    ) -> Result<Response<v1::GetSessionResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let handle = match &request.by {
            Some(v1::get_session_request::By::SessionId(id)) => {
                arguments::session_id("session_id", id).map(|id| id.handle())
            }
            Some(v1::get_session_request::By::Handle(handle)) => arguments::handle("handle", handle),
            None => arguments::wrong("session_id", "either session_id or handle is required"),
        };
        let session = handle.as_ref().ok().copied();
        let work = async {
            let session = self.sessions.get(handle?).await?;
            Ok(v1::GetSessionResponse {
                session: self.resource(&session),
            })
        };
        self.calls
            .answer(method!("GetSession", SHORT), &metadata, session, work)
            .await
    }

    async fn roll_session(
        &self,
        request: Request<v1::RollSessionRequest>,
    ) -> Result<Response<v1::RollSessionResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let id = arguments::session_id("session_id", &request.session_id);
        let session = handle_of(&id);
        let work = async {
            let handle = id?.handle();
            let device = arguments::device(request.device.as_ref())?;
            let (session, rolled) = self.sessions.roll(handle, device).await?;
            Ok(v1::RollSessionResponse {
                session: self.resource(&session),
                rolled,
            })
        };
        self.calls
            .answer(method!("RollSession", SHORT), &metadata, session, work)
            .await
    }

    async fn update_session(
        &self,
        request: Request<v1::UpdateSessionRequest>,
    ) -> Result<Response<v1::UpdateSessionResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let id = arguments::session_id("session_id", &request.session_id);
        let session = handle_of(&id);
        let work = async {
            let handle = id?.handle();
            let session = self.sessions.update(handle, update(&request)?).await?;
            Ok(v1::UpdateSessionResponse {
                session: self.resource(&session),
            })
        };
        self.calls
            .answer(method!("UpdateSession", SHORT), &metadata, session, work)
            .await
    }

    async fn get_access_token(
        &self,
        request: Request<v1::GetAccessTokenRequest>,
    ) -> Result<Response<v1::GetAccessTokenResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let id = arguments::session_id("session_id", &request.session_id);
        let session = handle_of(&id);
        let work = async {
            let handle = id?.handle();
            let scopes = arguments::scopes(&request.scopes)?;
            let granted = self
                .sessions
                .access_token(handle, scopes, request.force_refresh)
                .await?;
            Ok(v1::GetAccessTokenResponse {
                access_token: granted.access.value.into_inner(),
                token_type: granted.access.token_type,
                scope: granted.scope.text(),
                expires_at: Some(timestamp::from_ms(granted.access.expires_at_ms)),
            })
        };
        self.calls
            .answer(method!("GetAccessToken", LONG), &metadata, session, work)
            .await
    }

    async fn end_session(
        &self,
        request: Request<v1::EndSessionRequest>,
    ) -> Result<Response<v1::EndSessionResponse>, Status> {
        use v1::end_session_request::By;
        let (metadata, _, request) = request.into_parts();
        let handle = match &request.by {
            Some(By::SessionId(id)) => arguments::session_id("session_id", id).map(|id| id.handle()),
            Some(By::Handle(handle)) => arguments::handle("handle", handle),
            None => arguments::wrong("session_id", "either session_id or handle is required"),
        };
        let session = handle.as_ref().ok().copied();
        let work = async {
            let handle = handle?;
            let cause = arguments::cause(&request.cause, "logout")?;
            let Ended { ended, id_token_hint } = match &request.by {
                // The hint is for the holder of the secret alone.
                Some(By::SessionId(_)) => self.sessions.end_for_holder(handle, &cause).await?,
                Some(By::Handle(_)) | None => self.sessions.end_by_handle(handle, &cause).await?,
            };
            if ended {
                tracing::info!(session = %handle, cause, "a session ended");
            }
            let id_token_hint = id_token_hint
                .map(chassis::secret::Secret::into_inner)
                .unwrap_or_default();
            Ok(v1::EndSessionResponse { ended, id_token_hint })
        };
        self.calls
            .answer(method!("EndSession", SHORT), &metadata, session, work)
            .await
    }

    async fn end_sessions(
        &self,
        request: Request<v1::EndSessionsRequest>,
    ) -> Result<Response<v1::EndSessionsResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let work = async {
            let all = end_all(&request)?;
            let ended_count = self.sessions.end_all(&all).await?;
            tracing::info!(ended_count, cause = all.cause, "sessions ended");
            Ok(v1::EndSessionsResponse { ended_count })
        };
        self.calls
            .answer(method!("EndSessions", LONG), &metadata, None, work)
            .await
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let work = async {
            let issuer = arguments::issuer(&request.issuer)?;
            let subject = arguments::required_name("subject", &request.subject)?;
            let size = arguments::page_size(request.page_size)?;
            let token = arguments::token("page_token", &request.page_token)?;
            let page = self.sessions.list(issuer, subject, size, token).await?;
            let sessions = page
                .sessions
                .iter()
                .filter_map(|session| self.resource(session))
                .collect();
            Ok(v1::ListSessionsResponse {
                sessions,
                next_page_token: page.next_page_token,
            })
        };
        self.calls
            .answer(method!("ListSessions", SHORT), &metadata, None, work)
            .await
    }

    async fn watch_sessions(
        &self,
        request: Request<v1::WatchSessionsRequest>,
    ) -> Result<Response<Self::WatchSessionsStream>, Status> {
        let (metadata, _, request) = request.into_parts();
        let work = async {
            let scope = watch_scope(&request)?;
            let resume = Some(arguments::token("resume_token", &request.resume_token)?)
                .filter(|token| !token.is_empty());
            let watching = self.sessions.watch(scope, resume.map(str::to_owned)).await?;
            let events = watching.map(|told| match told {
                Ok((told, at_ms, resume_token)) => Ok(resource::event(told, at_ms, resume_token)),
                Err(error) => Err(status::of(&error)),
            });
            // A draining process ends its watches; whoever watches goes on at another replica.
            Ok(events.take_until(self.shutdown.clone().cancelled_owned()).boxed())
        };
        self.calls
            .answer(method!("WatchSessions", SHORT), &metadata, None, work)
            .await
    }
}

fn update(request: &v1::UpdateSessionRequest) -> Result<Update, SessionsError> {
    let mut paths: Vec<&str> = request
        .update_mask
        .iter()
        .flat_map(|mask| mask.paths.iter().map(String::as_str))
        .collect();
    if paths.is_empty() {
        paths.extend(request.user.as_ref().map(|_| "user"));
        paths.extend(request.attributes.as_ref().map(|_| "attributes"));
    }
    if paths.is_empty() {
        return arguments::wrong(
            "update_mask",
            "names nothing to replace, and neither user nor attributes is present",
        );
    }
    let mut update = Update {
        version: (request.version != 0).then_some(request.version),
        ..Update::default()
    };
    for path in paths {
        match path {
            "user" => match &request.user {
                Some(user) => update.user = Some(claims::from_struct(user)),
                None => return arguments::wrong("user", "is required by the update_mask"),
            },
            // Absent but named: the attributes are cleared.
            "attributes" => {
                update.attributes = Some(
                    request
                        .attributes
                        .as_ref()
                        .map(claims::from_struct)
                        .unwrap_or_default(),
                );
            }
            _ => return arguments::wrong("update_mask", "names something else than user and attributes"),
        }
    }
    Ok(update)
}

fn end_all(request: &v1::EndSessionsRequest) -> Result<EndAll, SessionsError> {
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
        except,
        cause: arguments::cause(&request.cause, "operator")?,
    })
}

fn watch_scope(request: &v1::WatchSessionsRequest) -> Result<WatchScope, SessionsError> {
    match (
        request.handle.as_str(),
        request.issuer.as_str(),
        request.subject.as_str(),
    ) {
        ("", "", "") => Ok(WatchScope::All),
        (handle, "", "") => Ok(WatchScope::Session(arguments::handle("handle", handle)?)),
        ("", issuer, subject) => Ok(WatchScope::Person {
            issuer: arguments::issuer(issuer)?.to_owned(),
            subject: arguments::required_name("subject", subject)?.to_owned(),
        }),
        (_, _, _) => arguments::wrong("handle", "stands alone, without issuer and subject"),
    }
}
