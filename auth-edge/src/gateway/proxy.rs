//! Forwards requests to another server, streaming both ways.
//!
//! Invariants
//! - The edge removes hop-by-hop headers (RFC 9110, section 7.6.1). A client's `Connection` never removes a header
//!   that the edge adds.
//! - The length of a message follows from its body, never from a header.
//! - Upstreams never receive the edge's own cookies, and cannot set them.
//! - Identity and origin headers come only from the edge.
//! - Redirects are not followed.
//! - A request is sent again only as [`Proxy::exchange`] allows.

mod answer_framing;
mod clients;
mod measures;
mod outgoing;
mod patient_stream;
mod proof;
mod renewal;
pub(super) mod state;
mod trace;
pub(super) mod upgrade;
mod upload;
mod upstream_body;
mod upstream_failure;
mod websocket_frames;

use std::sync::{Arc, Once};
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body::Body as _;
use hyper::upgrade::OnUpgrade;
use tracing::Instrument as _;

pub(crate) use self::clients::{UpstreamSettings, UpstreamTlsError};
pub(crate) use self::measures::UpstreamDurations;
pub(super) use self::outgoing::OutgoingRequest;
pub(crate) use self::state::Proxy;

use self::answer_framing::frame_answer;
use self::clients::UpstreamResponse;
use self::outgoing::frame;
use self::upload::Upload;
use self::upstream_failure::UpstreamFailure;
use super::ending;
use super::headers;
use crate::gateway::Gateway;
use crate::http::errors::HttpError;
use crate::http::protect::security_headers::FromUpstream;
use crate::http::protect::shares::Share;
use crate::http::protect::slow_client::SilenceAllowance;
use crate::route_table::Server;
use crate::sessions::CachedToken;

/// The methods that `Allow` names. The edge forwards all others too, except [`NEVER_PASSED_ON`].
const PASSED_ON: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// CONNECT opens a tunnel to any address. TRACE and TRACK echo headers that only the upstream may see. The edge
/// ignores letter case here: some upstreams do, despite RFC 9110 (section 9.1).
const NEVER_PASSED_ON: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

/// How often the edge repeats an unprocessed request, each time on another connection. Upstreams close a connection
/// after some hundred requests or more, so a request rarely needs a second attempt.
const UNPROCESSED_MAX: u8 = 5;

fn is_never_passed_on(method: &str) -> bool {
    NEVER_PASSED_ON
        .iter()
        .any(|never| never.eq_ignore_ascii_case(method))
}

impl Proxy {
    /// Forwards a request, and returns the answer.
    pub(super) async fn forward(&self, mut outgoing: OutgoingRequest<'_>, body: Body) -> Response {
        let (route, head) = (outgoing.route, &outgoing.head);
        let Some(uri) = outgoing.target() else {
            return HttpError::BadRequest("The path cannot be forwarded.").into_response();
        };
        let limit = route.max_body_bytes.unwrap_or(self.max_body_bytes);
        if limit > 0 && body.size_hint().lower() > limit {
            return HttpError::TooLarge.into_response();
        }
        if is_never_passed_on(head.method.as_str()) {
            return HttpError::MethodNotAllowed(PASSED_ON.into()).into_response();
        }
        let takes_streams = outgoing.takes_streams();
        if takes_streams && let Some(may_be_silent) = head.extensions.get::<SilenceAllowance>() {
            may_be_silent.allow();
        }
        let is_repeatable = head.method.is_safe() && body.is_end_stream() && !outgoing.is_websocket;
        outgoing.head.uri = uri;
        let client = outgoing.head.extensions.remove::<OnUpgrade>();
        let (streams, session) = (
            &outgoing.gateway.sessions.streams,
            outgoing.authorized.current.as_ref(),
        );
        let open_upload = ending::upload(&body, streams, session);
        // `upload` keeps the body: HTTP/2 upstreams can leave a request unprocessed, any can demand a DPoP nonce.
        let is_kept = takes_streams || proof::is_needed(&outgoing);
        let upload = Upload::new(body, limit, &route.table.identity_names, is_kept);
        let began = Instant::now();
        let answer = tokio::select! {
            answer = self.exchange(&outgoing, &upload, is_repeatable) => answer,
            () = ending::wait_for_session_end(open_upload.as_ref()) => Err(HttpError::NotAuthenticated),
        };
        self.durations.observe(&route.name, began, &answer);
        match answer {
            Ok(answer) => client_response(&outgoing, answer, client),
            Err(failure) => failure.into_response(),
        }
    }

    /// Sends a request, and repeats it if that can help (RFC 9113, sections 6.8 and 8.7):
    ///
    /// | The upstream | Sent again |
    /// |---|---|
    /// | processed nothing (GOAWAY, REFUSED_STREAM, never written) | any request, while the edge has its whole body |
    /// | was unreachable, or broke off | once, if the request is safe (RFC 9110, section 9.2.1) and has no body |
    /// | demands a nonce (RFC 9449), and processed nothing | once, while the edge has its whole body |
    /// | rejects the access token | once with another token, if the request is safe and has no body |
    /// | answers anything else, or too late | never |
    async fn exchange(
        &self,
        outgoing: &OutgoingRequest<'_>,
        upload: &Upload,
        is_repeatable: bool,
    ) -> Result<UpstreamResponse, HttpError> {
        let mut unprocessed_left = UNPROCESSED_MAX;
        let (mut may_fail, mut may_want_nonce, mut may_refuse_token) = (is_repeatable, true, is_repeatable);
        let mut token = outgoing.authorized.access_token.clone();
        loop {
            let answer = match self.send(outgoing, token.as_deref(), upload).await {
                Ok(answer) => answer,
                Err(failure) if unprocessed_left > 0 && failure.is_unprocessed() && upload.is_whole() => {
                    unprocessed_left -= 1;
                    continue;
                }
                Err(UpstreamFailure::Broken(_)) if std::mem::take(&mut may_fail) => continue,
                Err(failure) => return Err(failure.into_http_error(&outgoing.route.name)),
            };
            let wants_nonce = proof::wants_nonce(outgoing, &answer);
            if wants_nonce && upload.is_whole() && std::mem::take(&mut may_want_nonce) {
                continue;
            }
            if std::mem::take(&mut may_refuse_token)
                && let Some(other) = self.other_token(outgoing, &answer).await
            {
                token = Some(other);
                continue;
            }
            upload.forget();
            return Ok(answer);
        }
    }

    /// Sends the request once. Waits for the answer up to the timeout, and longer while the body makes progress.
    async fn send(
        &self,
        outgoing: &OutgoingRequest<'_>,
        granted: Option<&CachedToken>,
        upload: &Upload,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        let mut head = outgoing.upstream_head(granted);
        proof::prove(&mut head, outgoing).map_err(UpstreamFailure::Ours)?;
        // Each attempt has its own assertion: an upstream may reject a repeated one.
        outgoing.sign(&mut head).map_err(UpstreamFailure::Ours)?;
        let body = upload.send();
        frame(&mut head, &body);
        let answer = self.dispatch(outgoing.server, Request::from_parts(head, body));
        let answered = upload.within(self.head_timeout, answer).await;
        answered.unwrap_or(Err(UpstreamFailure::TooLate))
    }

    async fn dispatch(
        &self,
        server: &Server,
        mut request: Request,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        let switches = request.headers().contains_key(header::UPGRADE);
        let client = self.clients.speaking_to(server, switches, request.headers_mut());
        let span = trace::of_request(&request);
        if !span.is_disabled() {
            span.in_scope(|| trace::continue_trace(request.headers_mut(), None));
        }
        let answer = client.request(request).instrument(span.clone()).await;
        trace::record_response(&span, answer.as_ref().ok().map(UpstreamResponse::status));
        answer.map_err(UpstreamFailure::Broken)
    }

    /// Another access token, if the upstream rejected this one for a reason that a new token can solve.
    async fn other_token(
        &self,
        outgoing: &OutgoingRequest<'_>,
        answer: &UpstreamResponse,
    ) -> Option<Arc<CachedToken>> {
        let (gateway, authorized) = (outgoing.gateway, outgoing.authorized);
        let (granted, current) = (authorized.access_token.as_ref()?, authorized.current.as_ref()?);
        if !renewal::refuses(answer, granted, gateway.clock.now_ms()) {
            return None;
        }
        let wanted = &outgoing.route.requirements.token;
        self.renewals.renew(gateway, current, wanted, granted).await
    }
}

/// The answer for the client; the connection may switch protocols.
fn client_response(
    outgoing: &OutgoingRequest<'_>,
    mut answer: UpstreamResponse,
    client: Option<OnUpgrade>,
) -> Response {
    let (gateway, head) = (outgoing.gateway, &outgoing.head);
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let client = client.filter(|_| outgoing.is_websocket && upgrade::is_to_websocket(answer.headers()));
        let Some(client) = client else {
            return HttpError::UpstreamDown.into_response();
        };
        let session = outgoing.authorized.current.as_ref();
        let open = session.map(|current| gateway.sessions.streams.open(&current.session.handle));
        let stopping = gateway.stopping.closed.clone();
        let upstream = hyper::upgrade::on(&mut answer);
        upgrade::join(
            (client, upstream),
            open,
            stopping,
            head.extensions.get::<Share>().cloned(),
        );
        strip(gateway, answer.headers_mut());
        upgrade::write_switch(answer.headers_mut());
        answer.extensions_mut().insert(FromUpstream);
        return answer.map(Body::new);
    }
    if let Err(unreadable) = frame_answer(&mut answer, &head.method, &outgoing.route.name) {
        return unreadable.into_response();
    }
    strip(gateway, answer.headers_mut());
    if outgoing.route.map_addresses {
        outgoing.map_addresses(answer.headers_mut());
    }
    answer.extensions_mut().insert(FromUpstream);
    let has_length = answer.headers().contains_key(header::CONTENT_LENGTH);
    if head.method == Method::HEAD && !has_length {
        // For an empty body the router would send a length of zero, which is wrong for HEAD.
        return answer.map(|_| upstream_body::of_unknown_length());
    }
    upstream_body::bounded(answer)
}

/// Filters an upstream's headers for the browser.
fn strip(gateway: &Gateway, headers: &mut HeaderMap) {
    // Each answer of such an application sets its cookie: one record suffices.
    static LOGGED: Once = Once::new();
    headers::strip_response(headers, gateway.sessions.binds_devices(), |name| {
        let is_ours = gateway.owns_cookie(name);
        if is_ours {
            LOGGED.call_once(|| {
                tracing::warn!(
                    cookie = name,
                    "an upstream sets a cookie with the name of one of the edge's, so browsers do not get it: \
                     rename it there, or set EDGE_COOKIE_NAME"
                );
            });
        }
        is_ours
    });
}
