//! The methods of `session.v1.SessionService`: read the request, do the one thing, write the answer.

use prost::Message as _;
use session_proto::v1::session_service_server::SessionService;
use session_proto::{timestamp, v1};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::call::Call;
use super::call_context::{CallContext, conclude};
use super::{arguments, batch, end_sessions, new_session, resource, sign_in, watching};
use crate::callers::Rpc;
use crate::keeper::Removed;
use crate::receiver::{Received, SignalReceiver};
use crate::session::access::good_until_ms;
use crate::session::{Cause, Handle, Session};
use crate::sessions::ports::WaitingCaller;
use crate::sessions::{BeginSignInOutcome, OfflineTokens, Page, Sessions, SessionsError, Update};
use crate::store::Cursor;

/// Most bytes of sessions on a page: gRPC clients take 4 MiB unless configured otherwise.
const MAX_PAGE_BYTES: usize = 3 * 1024 * 1024;

/// The service.
#[derive(Clone)]
pub(crate) struct Api {
    sessions: Sessions,
    receiver: Option<SignalReceiver>,
    calls: CallContext,
    shutdown: CancellationToken,
}

impl Api {
    /// The service over its use cases.
    pub(super) fn new(
        sessions: Sessions,
        receiver: Option<SignalReceiver>,
        calls: CallContext,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            sessions,
            receiver,
            calls,
            shutdown,
        }
    }

    /// The use cases.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Cancelled when whoever stays connected is to go.
    pub(super) fn draining(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// A page of a person's as a message; one that would be too large ends early, and the next begins where it ended.
    fn page(
        &self,
        issuer: &str,
        subject: &str,
        page: Page,
    ) -> Result<v1::ListSessionsResponse, SessionsError> {
        let mut answer = v1::ListSessionsResponse {
            sessions: Vec::with_capacity(page.sessions.len()),
            next_page_token: page.next_page_token,
        };
        let mut bytes = 0;
        let mut last: Option<Cursor> = None;
        // One by one, so that a session and what is shown of it are not both in memory for the whole page.
        for listed in page.sessions {
            let message = resource::listed(&listed.shown, issuer, subject, self.sessions.lifetime());
            bytes += message.encoded_len();
            if let Some(last) = last.as_ref().filter(|_| bytes > MAX_PAGE_BYTES) {
                answer.next_page_token = self.sessions.page_token_behind(issuer, subject, last)?;
                break;
            }
            answer.sessions.push(message);
            last = Some(listed.cursor);
        }
        // Those that are in no order of the store's come last there.
        let created = |session: &v1::Session| session.created_at.as_ref().map_or(0, timestamp::to_ms);
        answer
            .sessions
            .sort_by_key(|session| std::cmp::Reverse(created(session)));
        Ok(answer)
    }

    /// What a session that was read is answered with.
    pub(super) fn read(&self, session: &Session) -> v1::GetSessionResponse {
        v1::GetSessionResponse {
            session: Some(Box::new(self.resource(session))),
            roll_due: self.sessions.roll_is_due(session),
        }
    }

    /// What all calls share.
    pub(super) fn calls(&self) -> &CallContext {
        &self.calls
    }

    fn resource(&self, session: &Session) -> v1::Session {
        resource::session(session, self.sessions.lifetime())
    }
}

/// The session a well-formed request is about, noted for the record of the call.
fn noted(call: &Call, handle: Result<Handle, SessionsError>) -> Result<Handle, SessionsError> {
    if let Ok(handle) = &handle {
        call.is_about(*handle);
    }
    handle
}

/// The session a request names.
pub(super) fn named(request: &v1::GetSessionRequest) -> Result<Handle, SessionsError> {
    use v1::get_session_request::By;
    match &request.by {
        Some(By::SessionId(id)) => arguments::session_id("session_id", id).map(|id| id.handle()),
        Some(By::Handle(handle)) => arguments::handle("handle", handle),
        None => arguments::wrong("session_id", "either session_id or handle is required"),
    }
}

/// Whether a request names a session by its handle, which is no secret.
pub(super) fn is_by_handle(request: &v1::GetSessionRequest) -> bool {
    matches!(request.by, Some(v1::get_session_request::By::Handle(_)))
}

fn by_id(call: &Call, session_id: &str) -> Result<Handle, SessionsError> {
    noted(
        call,
        arguments::session_id("session_id", session_id).map(|id| id.handle()),
    )
}

#[tonic::async_trait]
impl SessionService for Api {
    type WatchSessionsStream = watching::EventStream;

    async fn begin_sign_in(
        &self,
        request: Request<v1::BeginSignInRequest>,
    ) -> Result<Response<v1::BeginSignInResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = async {
            let attempt = sign_in::begun(&request)?;
            let begin = self.sessions.begin_sign_in(&attempt).await?;
            if let BeginSignInOutcome::Created(created) = &begin {
                call.is_about(created.session.handle);
            }
            sign_in::answer(begin, self.sessions.now_ms(), self.sessions.lifetime())
        }
        .await;
        conclude(Rpc::BeginSignIn, &call, outcome).map(Response::new)
    }

    async fn abandon_sign_in(
        &self,
        request: Request<v1::AbandonSignInRequest>,
    ) -> Result<Response<v1::AbandonSignInResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let api = self.clone();
        let work = async move {
            let attempt = sign_in::abandoned(&request)?;
            api.sessions.abandon_sign_in(&attempt).await?;
            Ok(v1::AbandonSignInResponse {})
        };
        self.calls.complete(Rpc::AbandonSignIn, &call, work).await
    }

    async fn create_session(
        &self,
        request: Request<v1::CreateSessionRequest>,
    ) -> Result<Response<v1::CreateSessionResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let (api, noting) = (self.clone(), call.clone());
        let work = async move {
            let new = new_session::read(&request)?;
            noting.is_about_person(&new.issuer, &new.subject);
            let created = api.sessions.create(new).await?;
            noting.is_about(created.session.handle);
            Ok(v1::CreateSessionResponse {
                session_id: created.id.reveal(),
                session: Some(api.resource(&created.session)),
            })
        };
        self.calls.complete(Rpc::CreateSession, &call, work).await
    }

    async fn get_session(
        &self,
        request: Request<v1::GetSessionRequest>,
    ) -> Result<Response<v1::GetSessionResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let handle = noted(&call, named(&request));
        if is_by_handle(&request) {
            call.reads_without_secret();
        }
        let outcome = async {
            let session = self.sessions.get(handle?).await?;
            if call.is_administrative() {
                call.is_about_person(&session.issuer, &session.subject);
            }
            Ok(self.read(&session))
        }
        .await;
        conclude(Rpc::GetSession, &call, outcome).map(Response::new)
    }

    async fn batch_get_sessions(
        &self,
        request: Request<v1::BatchGetSessionsRequest>,
    ) -> Result<Response<v1::BatchGetSessionsResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = batch::get_sessions(self, &call, &request).await;
        conclude(Rpc::BatchGetSessions, &call, outcome).map(Response::new)
    }

    async fn roll_session(
        &self,
        request: Request<v1::RollSessionRequest>,
    ) -> Result<Response<v1::RollSessionResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let handle = by_id(&call, &request.session_id);
        let outcome = async {
            let device = arguments::device(request.device.as_ref())?;
            let caller = call.caller.shown().unwrap_or_default();
            let (session, rolled) = self.sessions.roll(handle?, device, caller).await?;
            Ok(v1::RollSessionResponse {
                session: Some(Box::new(self.resource(&session))),
                rolled,
            })
        }
        .await;
        conclude(Rpc::RollSession, &call, outcome).map(Response::new)
    }

    async fn update_session(
        &self,
        request: Request<v1::UpdateSessionRequest>,
    ) -> Result<Response<v1::UpdateSessionResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let handle = by_id(&call, &request.session_id);
        let outcome = async {
            let session = self.sessions.update(handle?, update(&request)?).await?;
            call.is_about_person(&session.issuer, &session.subject);
            Ok(v1::UpdateSessionResponse {
                session: Some(self.resource(&session)),
            })
        }
        .await;
        conclude(Rpc::UpdateSession, &call, outcome).map(Response::new)
    }

    async fn rotate_cookie(
        &self,
        request: Request<v1::RotateCookieRequest>,
    ) -> Result<Response<v1::RotateCookieResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let handle = by_id(&call, &request.session_id);
        let (api, noting) = (self.clone(), call.clone());
        let work = async move {
            let handle = handle?;
            let shown = arguments::shown_generation(&request)?;
            let grace_ms = arguments::grace_ms(request.grace.as_ref())?;
            let session = api.sessions.rotate_cookie(handle, &shown, grace_ms).await?;
            noting.is_about_person(&session.issuer, &session.subject);
            Ok(v1::RotateCookieResponse {
                session: Some(api.resource(&session)),
            })
        };
        self.calls.complete(Rpc::RotateCookie, &call, work).await
    }

    async fn bind_session(
        &self,
        request: Request<v1::BindSessionRequest>,
    ) -> Result<Response<v1::BindSessionResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let handle = by_id(&call, &request.session_id);
        let outcome = async {
            let (handle, key) = (handle?, arguments::device_key("jwk", &request.jwk)?);
            let session = self.sessions.bind(handle, &key).await?;
            call.is_about_person(&session.issuer, &session.subject);
            Ok(v1::BindSessionResponse {
                session: Some(self.resource(&session)),
            })
        }
        .await;
        conclude(Rpc::BindSession, &call, outcome).map(Response::new)
    }

    async fn get_access_token(
        &self,
        request: Request<v1::GetAccessTokenRequest>,
    ) -> Result<Response<v1::GetAccessTokenResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let handle = by_id(&call, &request.session_id);
        let since = Instant::now();
        let outcome = async {
            let target = arguments::api_target(&request)?;
            let caller = call.caller.shown().unwrap_or_default();
            let waiting_caller = WaitingCaller { caller, since };
            let (session, force) = (self.sessions.get(handle?).await?, request.force_refresh);
            call.is_about_person(&session.issuer, &session.subject);
            let granted = match &target {
                None => {
                    self.sessions
                        .access_token(session, &request.scopes, force, waiting_caller)
                        .await?
                }
                Some(target) => {
                    self.sessions
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
        .await;
        conclude(Rpc::GetAccessToken, &call, outcome).map(Response::new)
    }

    async fn end_session(
        &self,
        request: Request<v1::EndSessionRequest>,
    ) -> Result<Response<v1::EndSessionResponse>, Status> {
        use v1::end_session_request::By;
        let (call, request) = Call::with_message(request);
        let handle = match &request.by {
            Some(By::SessionId(id)) => by_id(&call, id),
            Some(By::Handle(handle)) => noted(&call, arguments::handle("handle", handle)),
            None => arguments::wrong("session_id", "either session_id or handle is required"),
        };
        let (api, noting) = (self.clone(), call.clone());
        let work = async move {
            let handle = handle?;
            let cause = arguments::cause(request.cause, Cause::Logout);
            let offline = OfflineTokens::kept_if(request.keep_offline_tokens);
            let removed = api.sessions.end_session(handle, cause, offline).await?;
            let ended = removed.is_ended();
            noting.ended(cause, u32::from(ended));
            // The hint is for the holder of the secret alone.
            let is_holder = matches!(request.by, Some(By::SessionId(_)));
            let (issuer, id_token_hint) = match removed {
                Removed::Session(session) if is_holder => (session.issuer, session.tokens.id_token),
                _ => Default::default(),
            };
            Ok(v1::EndSessionResponse {
                ended,
                id_token_hint: id_token_hint
                    .map(|token| token.text().into_inner())
                    .unwrap_or_default(),
                issuer,
            })
        };
        self.calls.complete(Rpc::EndSession, &call, work).await
    }

    async fn end_sessions(
        &self,
        request: Request<v1::EndSessionsRequest>,
    ) -> Result<Response<v1::EndSessionsResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let (api, noting) = (self.clone(), call.clone());
        let work = async move {
            let all = end_sessions::read(&request, noting.deadline)?;
            if let Some(subject) = &all.subject {
                noting.is_about_person(&all.issuer, subject);
            }
            let ended_count = api.sessions.end_all(&all).await?;
            noting.ended(all.cause, ended_count);
            Ok(v1::EndSessionsResponse { ended_count })
        };
        self.calls.complete(Rpc::EndSessions, &call, work).await
    }

    async fn receive_security_event(
        &self,
        request: Request<v1::ReceiveSecurityEventRequest>,
    ) -> Result<Response<v1::ReceiveSecurityEventResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let api = self.clone();
        let work = async move {
            let Some(receiver) = &api.receiver else {
                return Err(SessionsError::ListensToNobody);
            };
            let received = receiver.receive(&api.sessions, &request.token, &request.authorization);
            Ok(match received.await? {
                Received::Taken => v1::ReceiveSecurityEventResponse::default(),
                Received::Refused { code, description } => v1::ReceiveSecurityEventResponse {
                    error_code: code.name().to_owned(),
                    description,
                },
                // Its transmitter's keys cannot be had, or lack the token's.
                Received::Undecided => return Err(SessionsError::ProviderUnavailable),
            })
        };
        self.calls.complete(Rpc::ReceiveSecurityEvent, &call, work).await
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = async {
            let issuer = arguments::issuer(&request.issuer)?;
            let subject = arguments::required_name("subject", &request.subject)?;
            call.is_about_person(issuer, subject);
            call.reads_without_secret();
            let size = arguments::page_size(request.page_size)?;
            let token = arguments::token("page_token", &request.page_token)?;
            let page = self.sessions.list(issuer, subject, size, token).await?;
            self.page(issuer, subject, page)
        }
        .await;
        conclude(Rpc::ListSessions, &call, outcome).map(Response::new)
    }

    async fn watch_sessions(
        &self,
        request: Request<v1::WatchSessionsRequest>,
    ) -> Result<Response<Self::WatchSessionsStream>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = watching::events(self, &call, &request).await;
        conclude(Rpc::WatchSessions, &call, outcome).map(Response::new)
    }

    type FollowSessionsStream = watching::EventStream;

    async fn follow_sessions(
        &self,
        request: Request<Streaming<v1::FollowSessionsRequest>>,
    ) -> Result<Response<Self::FollowSessionsStream>, Status> {
        let (call, mut questions) = Call::with_message(request);
        let first = questions.message().await?.unwrap_or_default();
        let outcome = watching::followed(self, &call, first, questions).await;
        conclude(Rpc::FollowSessions, &call, outcome).map(Response::new)
    }
}

fn update(request: &v1::UpdateSessionRequest) -> Result<Update, SessionsError> {
    let mut paths: Vec<&str> = request
        .update_mask
        .iter()
        .flat_map(|mask| mask.paths.iter().map(String::as_str))
        .collect();
    if paths.is_empty() {
        paths.extend((!request.user.is_empty()).then_some("user"));
        paths.extend((!request.attributes.is_empty()).then_some("attributes"));
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
            "user" if request.user.is_empty() => {
                return arguments::wrong("user", "is required by the update_mask");
            }
            "user" => update.user = Some(arguments::claims("user", &request.user)?),
            // Absent but named: the attributes are cleared.
            "attributes" => {
                update.attributes = Some(arguments::claims("attributes", &request.attributes)?);
            }
            _ => return arguments::wrong("update_mask", "names something else than user and attributes"),
        }
    }
    Ok(update)
}
