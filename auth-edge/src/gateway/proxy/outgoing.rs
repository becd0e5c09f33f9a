//! Turns a client's request into the upstream's request.
//!
//! Invariants
//! - Hop-by-hop headers end here (RFC 9110, section 7.6.1), and so do all length headers. The length is that
//!   of the sent body.
//! - Identity and origin headers come only from the edge.
//! - The request goes to the configured address, regardless of the client's headers.

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use chassis::audit::RequestId;
use http_body::Body as HttpBody;

use super::{trace, upgrade};
use crate::gateway::Gateway;
use crate::gateway::assertion::MAX_CLAIMS_BYTES;
use crate::gateway::authorized::RequestCredentials;
use crate::gateway::bearer::PROOF;
use crate::gateway::headers::{self, AddressMap};
use crate::gateway::identity_headers::{add_assertion, add_claim_headers};
use crate::http::errors::HttpError;
use crate::http::request;
use crate::route_table::{Csrf, Route, Server};
use crate::sessions::CachedToken;
use crate::values::forwarded::X_FORWARDED_FOR;
use crate::values::path::RequestPath;

/// The headers of an access token and of its proof of possession.
const TOKENS: [HeaderName; 2] = [header::AUTHORIZATION, PROOF];

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// A client's request to an upstream: each attempt builds a new head.
pub(in crate::gateway) struct OutgoingRequest<'a> {
    /// The gateway's state.
    pub(in crate::gateway) gateway: &'a Gateway,
    /// The upstream.
    pub(in crate::gateway) server: &'a Server,
    /// The rule of the route.
    pub(in crate::gateway) route: &'a Route,
    /// The parsed path.
    pub(in crate::gateway) path: &'a RequestPath,
    /// The guard's result.
    pub(in crate::gateway) authorized: &'a RequestCredentials,
    /// Whether the request is a WebSocket handshake.
    pub(in crate::gateway) is_websocket: bool,
    /// The client's head.
    pub(in crate::gateway) head: Parts,
}

impl OutgoingRequest<'_> {
    /// The URL at the server: the parsed path without the stripped prefix; `None` if the URL is invalid.
    pub(super) fn target(&self) -> Option<Uri> {
        target(
            self.server,
            self.path,
            self.route.stripped(),
            self.head.uri.query(),
        )
    }

    /// Whether HTTP/2 may be used: a preserved `Host` that differs from the address needs HTTP/1.1.
    pub(super) fn takes_streams(&self) -> bool {
        self.server.takes_streams() && !self.route.preserve_host
    }

    /// Our path of the upstream.
    fn prefix(&self) -> String {
        let peer = request::peer(&self.head.extensions);
        let ours = self.gateway.trusted_proxies.prefix(peer, &self.head.headers);
        format!("{ours}{}", self.path.leading(self.route.stripped()))
    }

    /// Maps the upstream's addresses in its answer to ours.
    pub(super) fn map_addresses(&self, answer: &mut HeaderMap) {
        let addresses = AddressMap {
            site: self.gateway.sites.of(&self.head.headers),
            upstream: &self.server.url,
            prefix: &self.prefix(),
        };
        addresses.map_headers(answer);
    }

    /// The head for the upstream: without hop-by-hop and forged headers, with identity and origin added.
    pub(super) fn upstream_head(&self, access_token: Option<&CachedToken>) -> Parts {
        let (gateway, client) = (self.gateway, &self.head.headers);
        let peer = request::peer(&self.head.extensions);
        let (mut head, ()) = Request::new(()).into_parts();
        head.method = self.head.method.clone();
        head.uri = self.head.uri.clone();
        // If the upstream gets only the edge's token, or none, the client's headers of these names end here.
        let ends_here = match (&self.authorized.bearer, &self.route.bearer) {
            (Some(_), Some(rule)) => !rule.pass_authorization,
            _ => self.route.requirements.access_token,
        };
        let ours: &[HeaderName] = if ends_here { &TOKENS } else { &[] };
        // A preflight passes guards, so its headers must not turn it into another request.
        let table = &self.route.table;
        let may_override_method =
            self.route.csrf == Csrf::None && head.method != Method::OPTIONS && !table.by_method;
        let is_from_trusted = gateway.trusted_proxies.trusts(peer);
        head.headers = headers::for_upstream(
            client,
            ours,
            &table.identity_names,
            may_override_method,
            is_from_trusted,
            |name| gateway.owns_cookie(name),
        );
        headers::add_identity(&mut head.headers, self.authorized);
        add_claim_headers(&mut head.headers, gateway, &self.route.headers, self.authorized);
        trace::continue_trace(
            &mut head.headers,
            self.head.extensions.get::<RequestId>().copied(),
        );
        let address = gateway.trusted_proxies.client_address(peer, client);
        let scheme = if gateway.https { "https" } else { "http" };
        let host = gateway.sites.of(client).authority();
        let prefix = Some(self.prefix()).filter(|prefix| !prefix.is_empty());
        let authorization = access_token.and_then(|token| token.authorization.clone());
        let added = [
            (header::AUTHORIZATION, authorization),
            (X_FORWARDED_FOR, HeaderValue::try_from(address.to_string()).ok()),
            (X_FORWARDED_PROTO, Some(HeaderValue::from_static(scheme))),
            (X_FORWARDED_HOST, host.clone()),
            // The public host, regardless of the client's headers: applications build links with it.
            (header::HOST, host.filter(|_| self.route.preserve_host)),
            (
                X_FORWARDED_PREFIX,
                prefix.and_then(|prefix| HeaderValue::try_from(prefix).ok()),
            ),
        ];
        for (name, value) in added {
            if let Some(value) = value {
                head.headers.insert(name, value);
            }
        }
        if self.takes_streams() && headers::is_grpc(client) {
            // gRPC requires this header on each hop.
            head.headers
                .insert(header::TE, HeaderValue::from_static("trailers"));
        }
        if self.is_websocket {
            upgrade::write_switch(&mut head.headers);
        }
        head
    }

    /// Adds the signed assertion if the rule requires it. Without it the request is not sent.
    pub(super) fn sign(&self, head: &mut Parts) -> Result<(), HttpError> {
        let (Some(who), Some(claims)) = (self.authorized.principal(), &self.route.upstream_jwt) else {
            return Ok(());
        };
        let (audience, claims) = (self.server.origin(), (&**claims, MAX_CLAIMS_BYTES));
        add_assertion(&mut head.headers, self.gateway, who, &audience, claims)
    }
}

/// Adds the body length if the HTTP client would not. An empty body gets zero if the method expects a body (RFC 9110,
/// section 8.6). A body of unknown length that the method does not expect is chunked.
pub(super) fn frame(head: &mut Parts, body: &impl HttpBody) {
    let expects_body = matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
    if body.is_end_stream() {
        if expects_body {
            head.headers
                .insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    } else if matches!(head.method, Method::GET | Method::HEAD) && body.size_hint().exact().is_none() {
        head.headers
            .insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

fn target(server: &Server, path: &RequestPath, strip: usize, query: Option<&str>) -> Option<Uri> {
    let mut target = path.to_encoded(strip);
    if let Some(query) = query {
        // An upstream that parses the request line loosely could take such a byte for a delimiter.
        if query.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return None;
        }
        target.push('?');
        target.push_str(query);
    }
    let target = PathAndQuery::from_maybe_shared(Bytes::from(target)).ok()?;
    server.at(target)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    // conformance: B-038
    #[test]
    fn the_target_is_the_normalised_path_at_the_configured_server() {
        let server = Server {
            url: Url::parse("http://orders:8080").unwrap(),
            prior_knowledge: false,
        };
        let path = RequestPath::parse("/api/./orders/a%20b").unwrap();
        let uri = target(&server, &path, 0, Some("q=http://evil.example/")).unwrap();
        assert_eq!(
            uri.to_string(),
            "http://orders:8080/api/orders/a%20b?q=http://evil.example/"
        );
        assert_eq!(
            target(&server, &path, 2, None).unwrap().to_string(),
            "http://orders:8080/a%20b"
        );
    }
}
