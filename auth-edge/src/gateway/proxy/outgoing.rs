//! A client's request made the upstream's.
//!
//! Invariants
//! - Hop-by-hop headers end here (RFC 9110, section 7.6.1), and so does all that says how long a body is: the length is that
//!   of the body that is sent.
//! - Who somebody is, and where they come from, the upstream learns from us alone.
//! - The request goes to the configured address, whatever the client says.

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use chassis::audit::RequestId;
use http_body::Body as HttpBody;

use super::{trace, upgrade};
use crate::gateway::Gateway;
use crate::gateway::assertion::MAX_CLAIMS_BYTES;
use crate::gateway::authorized::Authorized;
use crate::gateway::bearer::PROOF;
use crate::gateway::headers::{self, AddressMap};
use crate::gateway::told::{add_assertion, add_told};
use crate::http::errors::HttpError;
use crate::http::request;
use crate::route_table::{Csrf, Route, Server};
use crate::sessions::CachedToken;
use crate::values::forwarded::X_FORWARDED_FOR;
use crate::values::path::RequestPath;

/// What carries an access token, and the proof that it is presented by its owner.
const TOKENS: [HeaderName; 2] = [header::AUTHORIZATION, PROOF];

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// A client's request to an upstream: its head is made anew for each sending.
pub(in crate::gateway) struct OutgoingRequest<'a> {
    /// What the gateway is made of.
    pub(in crate::gateway) gateway: &'a Gateway,
    /// The upstream.
    pub(in crate::gateway) server: &'a Server,
    /// The rule that leads there.
    pub(in crate::gateway) route: &'a Route,
    /// The path as it was read.
    pub(in crate::gateway) path: &'a RequestPath,
    /// What the guard authorized it with.
    pub(in crate::gateway) authorized: &'a Authorized,
    /// Whether it is a WebSocket handshake.
    pub(in crate::gateway) is_websocket: bool,
    /// The client's head.
    pub(in crate::gateway) head: Parts,
}

impl OutgoingRequest<'_> {
    /// Where it goes: the path, as it was read and without what the rule strips, at the server; nothing if that is no address.
    pub(super) fn target(&self) -> Option<Uri> {
        target(
            self.server,
            self.path,
            self.route.stripped(),
            self.head.uri.query(),
        )
    }

    /// Whether it may be spoken to by HTTP/2: over HTTP/1.1 goes where another host is named than that of the address.
    pub(super) fn takes_streams(&self) -> bool {
        self.server.takes_streams() && !self.route.preserve_host
    }

    /// The path of ours below which the upstream lies.
    fn prefix(&self) -> String {
        let peer = request::peer(&self.head.extensions);
        let ours = self.gateway.trusted_proxies.prefix(peer, &self.head.headers);
        format!("{ours}{}", self.path.leading(self.route.stripped()))
    }

    /// Makes addresses of the upstream ours in its answer.
    pub(super) fn map_addresses(&self, answer: &mut HeaderMap) {
        let addresses = AddressMap {
            site: self.gateway.sites.of(&self.head.headers),
            upstream: &self.server.url,
            prefix: &self.prefix(),
        };
        addresses.map_headers(answer);
    }

    /// The head as the upstream gets it: nothing of this hop and no forged header is left; identity and origin are added.
    pub(super) fn upstream_head(&self, access_token: Option<&CachedToken>) -> Parts {
        let (gateway, client) = (self.gateway, &self.head.headers);
        let peer = request::peer(&self.head.extensions);
        let (mut head, ()) = Request::new(()).into_parts();
        head.method = self.head.method.clone();
        head.uri = self.head.uri.clone();
        // Whatever a client sent under these names is not the token this upstream trusts.
        let ends_here = match (&self.authorized.bearer, &self.route.bearer) {
            (Some(_), Some(rule)) => !rule.pass_authorization,
            _ => self.route.requirements.access_token,
        };
        let ours: &[HeaderName] = if ends_here { &TOKENS } else { &[] };
        // A preflight passes guards: what it carries must not turn it into something else.
        let table = &self.route.table;
        let may_override_method =
            self.route.csrf == Csrf::None && head.method != Method::OPTIONS && !table.by_method;
        let is_from_trusted = gateway.trusted_proxies.trusts(peer);
        head.headers = headers::for_upstream(
            client,
            ours,
            &table.told,
            may_override_method,
            is_from_trusted,
            |name| gateway.owns_cookie(name),
        );
        headers::add_identity(&mut head.headers, self.authorized);
        add_told(&mut head.headers, gateway, self.route, self.authorized);
        trace::continue_trace(
            &mut head.headers,
            self.head.extensions.get::<RequestId>().copied(),
        );
        let address = gateway.trusted_proxies.client_address(peer, client);
        let scheme = if gateway.https { "https" } else { "http" };
        let host = gateway.sites.of(client).authority();
        let prefix = Some(self.prefix()).filter(|prefix| !prefix.is_empty());
        let authorization = access_token.and_then(|token| token.authorization.clone());
        let told = [
            (header::AUTHORIZATION, authorization),
            (X_FORWARDED_FOR, HeaderValue::try_from(address.to_string()).ok()),
            (X_FORWARDED_PROTO, Some(HeaderValue::from_static(scheme))),
            (X_FORWARDED_HOST, host.clone()),
            // The host that browsers know, whatever the client says: applications make links of it.
            (header::HOST, host.filter(|_| self.route.preserve_host)),
            (
                X_FORWARDED_PREFIX,
                prefix.and_then(|prefix| HeaderValue::try_from(prefix).ok()),
            ),
        ];
        for (name, value) in told {
            if let Some(value) = value {
                head.headers.insert(name, value);
            }
        }
        if self.takes_streams() && headers::is_grpc(client) {
            // gRPC needs it to be said, hop by hop.
            head.headers
                .insert(header::TE, HeaderValue::from_static("trailers"));
        }
        if self.is_websocket {
            upgrade::write_switch(&mut head.headers);
        }
        head
    }

    /// Adds the signed assertion where the rule requires it. Without it the request does not go out.
    pub(super) fn sign(&self, head: &mut Parts) -> Result<(), HttpError> {
        let (Some(who), Some(claims)) = (self.authorized.principal(), &self.route.upstream_jwt) else {
            return Ok(());
        };
        let (audience, claims) = (self.server.origin(), (&**claims, MAX_CLAIMS_BYTES));
        add_assertion(&mut head.headers, self.gateway, who, &audience, claims)
    }
}

/// Says how long a body is where the HTTP client would not: that there is none where one is expected (RFC 9110, section
/// 8.6), and that one of unknown length comes where none is expected, which it would leave out.
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
        // No delimiter to us, but to somebody who reads the request line loosely.
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
