//! Envoy's external authorization over gRPC: the forward-auth route for a proxy that asks by RPC.
//!
//! Each check becomes a request to `/api/auth/check` inside this process. So both protocols share decisions,
//! limits, metrics and messages.
//!
//! Invariants
//! - A header that the edge sets replaces the client's header of that name. The edge removes every other
//!   identity header, and its own cookies.
//! - Host, scheme, path, method and client address come only from Envoy's attributes, never from a header of
//!   the client. They choose the rule (`[[check]]`), the site of the session, and the return address.

mod check_response;
#[expect(
    missing_docs,
    clippy::all,
    clippy::allow_attributes,
    unreachable_pub,
    reason = "generated from proto/"
)]
#[path = "gen/mod.rs"]
mod generated;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};
use chassis::serve::PeerAddress;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tower::ServiceExt as _;
use url::form_urlencoded;

use self::generated::envoy::config::core::v3::address;
use crate::gateway::Gateway;
use crate::values::forwarded::{self, OriginalRequest, describes_origin};
use crate::values::header_name::folded;

/// Envoy's API, for clients in tests.
pub mod api {
    pub use super::generated::envoy::config::core::v3 as core;
    pub use super::generated::envoy::service::auth::v3::*;
    pub(crate) use super::generated::envoy::r#type::v3 as types;
    pub(crate) use super::generated::google::rpc;
}

use self::api::authorization_server::{Authorization, AuthorizationServer};
use self::api::{AttributeContext, CheckRequest, CheckResponse};

/// The largest check in bytes, after decompression: 64 KiB of headers, and Envoy's additions.
const MAX_QUESTION_BYTES: usize = 256 * 1024;

/// The allowed `context_extensions` of a route: a redirect to the login, and the requested access token.
const PARAMETERS: [&str; 4] = ["redirect", "audience", "resource", "scope"];

/// The service, on top of the edge's own router.
pub(crate) fn routes(gateway: Arc<Gateway>, router: Router) -> Router {
    let service = AuthorizationServer::new(ExtAuthz { gateway, router })
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MAX_QUESTION_BYTES);
    Routes::new(service).into_axum_router()
}

struct ExtAuthz {
    gateway: Arc<Gateway>,
    router: Router,
}

#[tonic::async_trait]
impl Authorization for ExtAuthz {
    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let attributes = request.into_inner().attributes.unwrap_or_default();
        let (question, headers) = question(attributes)
            .ok_or_else(|| Status::invalid_argument("the attributes hold no readable HTTP request"))?;
        let answered = match self.router.clone().oneshot(question).await {
            Ok(answered) => answered,
            Err(impossible) => match impossible {},
        };
        let is_ours = |name: &str| self.gateway.owns_cookie(name);
        Ok(Response::new(
            check_response::of(answered, &headers, is_ours).await,
        ))
    }
}

/// The request to the forward-auth route, and the client's headers.
fn question(attributes: AttributeContext) -> Option<(HttpRequest, HeaderMap)> {
    let http = attributes.request?.http?;
    let mut headers = HeaderMap::new();
    for (name, value) in &http.headers {
        // Envoy also lists HTTP/2 pseudo-headers.
        if name.starts_with(':') {
            continue;
        }
        headers.append(
            HeaderName::try_from(name).ok()?,
            HeaderValue::try_from(value).ok()?,
        );
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    for name in PARAMETERS {
        if let Some(value) = attributes.context_extensions.get(name) {
            query.append_pair(name, value);
        }
    }
    let target = format!("/api/auth/check?{}", query.finish());
    let mut request = HttpRequest::new(Body::empty());
    *request.uri_mut() = Uri::try_from(target).ok()?;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = without_origin(&headers);
    if let Ok(host) = HeaderValue::try_from(&http.host)
        && !host.is_empty()
    {
        request.headers_mut().insert(header::HOST, host);
    }
    let address = attributes
        .source
        .and_then(|source| source.address)
        .and_then(|address| address.address);
    let peer = match address {
        Some(address::Address::SocketAddress(socket)) => socket.address.parse().ok(),
        None => None,
    };
    let peer: IpAddr = peer.unwrap_or(forwarded::UNKNOWN);
    request
        .extensions_mut()
        .insert(PeerAddress(SocketAddr::new(peer, 0)));
    request.extensions_mut().insert(OriginalRequest {
        // An ambiguous address gives `None`: it matches no rule and is no return address.
        url: forwarded::absolute(&http.scheme, &http.host, &http.path),
        method: Method::try_from(http.method.as_str()).ok(),
    });
    Some((request, headers))
}

/// A client's headers, without body framing and without headers that Envoy's attributes replace.
fn without_origin(headers: &HeaderMap) -> HeaderMap {
    let is_left_out = |name: &HeaderName| {
        [
            header::HOST,
            header::CONTENT_LENGTH,
            header::TRANSFER_ENCODING,
            header::EXPECT,
        ]
        .contains(name)
            || describes_origin(&folded(name.as_str()))
    };
    let kept = headers.iter().filter(|(name, _)| !is_left_out(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}
