//! `session.v1.SessionService` and `session.v1.OperatorSessionService`: a table of the methods of each, with their
//! messages and modules.

use session_proto::v1;
use session_proto::v1::operator_session_service_server::OperatorSessionService;
use session_proto::v1::session_service_server::SessionService;
use tonic::{Request, Response, Status, Streaming};

use super::api::Api;
use super::call::Call;
use super::call_context::conclude;
use super::{batch, changes, endings, operators, reading, sign_in, tokens, watching};
use crate::callers::Rpc;

/// Answers one method. A `read` ends with its caller. A `write` runs to its end.
macro_rules! answer {
    (read $api:ident, $call:ident, $request:ident, $rpc:ident, $work:path) => {{
        let outcome = $work($api, &$call, $request).await;
        conclude(Rpc::$rpc, &$call, outcome).map(Response::new)
    }};
    (write $api:ident, $call:ident, $request:ident, $rpc:ident, $work:path) => {{
        let (api, call) = ($api.clone(), $call.clone());
        // Boxed: each layer on the way to its own task would copy the whole future.
        let work = Box::pin(async move { $work(&api, &call, $request).await });
        $api.calls.complete(Rpc::$rpc, &$call, work).await
    }};
}

/// Defines a service: `read` or `write`, the method, its name and messages, and its function. Then its streams.
macro_rules! methods {
    ($service:ident { $($kind:ident $method:ident: $rpc:ident($request:ident) -> $response:ident, $work:path;)* } $($streams:tt)*) => {
        #[tonic::async_trait]
        impl $service for Api {
            $(async fn $method(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                let (api, (call, request)) = (self, Call::with_message(request));
                answer!($kind api, call, request, $rpc, $work)
            })*

            $($streams)*
        }
    };
}

methods! {
    SessionService {
        read begin_sign_in: BeginSignIn(BeginSignInRequest) -> BeginSignInResponse, sign_in::begin;
        write abandon_sign_in: AbandonSignIn(AbandonSignInRequest) -> AbandonSignInResponse, sign_in::abandon;
        write create_session: CreateSession(CreateSessionRequest) -> CreateSessionResponse, sign_in::create_session;
        read get_session: GetSession(GetSessionRequest) -> GetSessionResponse, reading::get_session;
        read batch_get_sessions: BatchGetSessions(BatchGetSessionsRequest) -> BatchGetSessionsResponse, batch::get_sessions;
        read list_sessions: ListSessions(ListSessionsRequest) -> ListSessionsResponse, reading::list_sessions;
        read roll_session: RollSession(RollSessionRequest) -> RollSessionResponse, changes::roll_session;
        read update_session: UpdateSession(UpdateSessionRequest) -> UpdateSessionResponse, changes::update_session;
        write rotate_cookie: RotateCookie(RotateCookieRequest) -> RotateCookieResponse, changes::rotate_cookie;
        read bind_session: BindSession(BindSessionRequest) -> BindSessionResponse, changes::bind_session;
        read get_access_token: GetAccessToken(GetAccessTokenRequest) -> GetAccessTokenResponse, tokens::get_access_token;
        write end_session: EndSession(EndSessionRequest) -> EndSessionResponse, endings::end_session;
        write end_sessions: EndSessions(EndSessionsRequest) -> EndSessionsResponse, endings::end_sessions;
        write receive_security_event: ReceiveSecurityEvent(ReceiveSecurityEventRequest) -> ReceiveSecurityEventResponse, endings::receive_security_event;
    }

    type WatchSessionsStream = watching::EventStream;
    type FollowSessionsStream = watching::EventStream;

    async fn watch_sessions(
        &self,
        request: Request<v1::WatchSessionsRequest>,
    ) -> Result<Response<Self::WatchSessionsStream>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = watching::watch(self, &call, &request, None).await;
        conclude(Rpc::WatchSessions, &call, outcome).map(Response::new)
    }

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

methods! {
    OperatorSessionService {
        read list_providers: ListProviders(ListProvidersRequest) -> ListProvidersResponse, operators::list_providers;
        read search_sessions: SearchSessions(SearchSessionsRequest) -> SearchSessionsResponse, operators::search_sessions;
        write end_found_sessions: EndFoundSessions(EndFoundSessionsRequest) -> EndFoundSessionsResponse, operators::end_found_sessions;
        read list_endings: ListEndings(ListEndingsRequest) -> ListEndingsResponse, operators::list_endings;
    }

    type WatchActivityStream = watching::ActivityStream;

    async fn watch_activity(
        &self,
        request: Request<v1::WatchActivityRequest>,
    ) -> Result<Response<Self::WatchActivityStream>, Status> {
        let (call, request) = Call::with_message(request);
        let outcome = operators::watch_activity(self, &call, request).await;
        conclude(Rpc::WatchActivity, &call, outcome).map(Response::new)
    }
}
