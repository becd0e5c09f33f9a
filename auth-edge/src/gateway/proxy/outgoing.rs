//! A client's request made the upstream's.
//!
//! Invariants
//! - Hop-by-hop headers end here (RFC 9110, section 7.6.1), and so does all that says how long a body is: the length is that
//!   of the body that is sent.
//! - Who somebody is, and where they come from, the upstream learns from us alone.
//! - The request goes to the configured address, whatever the client says.

use std::net::IpAddr;

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use chassis::audit::RequestId;
use http_body::Body as HttpBody;

use super::context::ProxyContext;
use super::upgrade;
use super::{proof, trace};
use crate::gateway::assertion::MAX_CLAIMS_BYTES;
use crate::gateway::headers::{self, AddressMap};
use crate::gateway::told::{add_assertion, add_told};
use crate::http::errors::HttpError;
use crate::route_table::{Csrf, Server};
use crate::sessions::CachedToken;
use crate::values::forwarded::X_FORWARDED_FOR;
use crate::values::path::RequestPath;

/// What carries an access token, and the proof that it is presented by its owner.
const TOKENS: [HeaderName; 2] = [header::AUTHORIZATION, proof::HEADER];

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// A client's request to an upstream: its head is made anew for each sending.
pub(super) struct OutgoingRequest<'a> {
    /// How it goes on.
    pub(super) context: &'a ProxyContext<'a>,
    /// The client's head.
    pub(super) head: &'a Parts,
    /// Where it goes.
    pub(super) uri: Uri,
    peer: IpAddr,
    /// The path of ours below which the upstream lies.
    prefix: String,
}

impl<'a> OutgoingRequest<'a> {
    /// The client's head, for this address of the upstream's.
    pub(super) fn new(context: &'a ProxyContext<'a>, head: &'a Parts, uri: Uri, peer: IpAddr) -> Self {
        let stripped = context.path.leading(context.route.stripped());
        let prefix = context.gateway.trusted_proxies.prefix(peer, &head.headers);
        Self {
            context,
            head,
            uri,
            peer,
            prefix: format!("{prefix}{stripped}"),
        }
    }

    /// How addresses of the upstream become ours in its answer.
    pub(super) fn addresses(&self) -> AddressMap<'_> {
        AddressMap {
            site: self.context.gateway.sites.of(&self.head.headers),
            upstream: &self.context.server.url,
            prefix: &self.prefix,
        }
    }

    /// The head as the upstream gets it: nothing of this hop and no forged header is left; identity and origin are added.
    pub(super) fn upstream_head(&self, access_token: Option<&CachedToken>) -> Parts {
        let (context, gateway, client) = (self.context, self.context.gateway, &self.head.headers);
        let (mut head, ()) = Request::new(()).into_parts();
        head.method = self.head.method.clone();
        // Whatever a client sent under these names is not the token this upstream trusts.
        let ends_here = match (&context.authorized.bearer, &context.route.bearer) {
            (Some(_), Some(rule)) => !rule.pass_authorization,
            _ => context.route.requirements.access_token,
        };
        let ours: &[HeaderName] = if ends_here { &TOKENS } else { &[] };
        // A preflight passes guards: what it carries must not turn it into something else.
        let table = &context.route.table;
        let may_override_method =
            context.route.csrf == Csrf::None && head.method != Method::OPTIONS && !table.by_method;
        let is_from_trusted = gateway.trusted_proxies.trusts(self.peer);
        head.headers = headers::for_upstream(
            client,
            ours,
            &table.told,
            may_override_method,
            is_from_trusted,
            |name| gateway.owns_cookie(name),
        );
        headers::add_identity(&mut head.headers, context.authorized);
        add_told(&mut head.headers, gateway, context.route, context.authorized);
        trace::continue_trace(
            &mut head.headers,
            self.head.extensions.get::<RequestId>().copied(),
        );
        let authorization = access_token.and_then(|token| token.authorization.clone());
        set(&mut head.headers, header::AUTHORIZATION, authorization);
        let address = gateway.trusted_proxies.client_address(self.peer, client);
        let scheme = if gateway.https { "https" } else { "http" };
        set(
            &mut head.headers,
            X_FORWARDED_FOR,
            HeaderValue::try_from(address.to_string()).ok(),
        );
        set(
            &mut head.headers,
            X_FORWARDED_PROTO,
            Some(HeaderValue::from_static(scheme)),
        );
        let host = gateway.sites.of(client).authority();
        if context.route.preserve_host {
            // The host that browsers know, whatever the client says: applications make links of it.
            set(&mut head.headers, header::HOST, host.clone());
        }
        set(&mut head.headers, X_FORWARDED_HOST, host);
        if !self.prefix.is_empty() {
            set(
                &mut head.headers,
                X_FORWARDED_PREFIX,
                HeaderValue::try_from(&self.prefix).ok(),
            );
        }
        let may_speak_http2 = context.server.takes_streams() && !context.route.preserve_host;
        if may_speak_http2 && headers::is_grpc(client) {
            // gRPC needs it to be said, hop by hop.
            head.headers
                .insert(header::TE, HeaderValue::from_static("trailers"));
        }
        if context.is_websocket {
            upgrade::write_switch(&mut head.headers);
        }
        head.uri = self.uri.clone();
        head
    }
}

/// Adds what is made for one sending: the proof of a bound token, and the signed assertion where the rule requires it.
/// Without them the request does not go out.
pub(super) fn sign(head: &mut Parts, context: &ProxyContext<'_>) -> Result<(), HttpError> {
    proof::prove(head, context)?;
    let (Some(who), Some(claims)) = (context.authorized.principal(), &context.route.upstream_jwt) else {
        return Ok(());
    };
    let (audience, claims) = (context.server.origin(), (&**claims, MAX_CLAIMS_BYTES));
    add_assertion(&mut head.headers, context.gateway, who, &audience, claims)
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

/// Where a request goes: the path, as it was read and without its first `strip` segments, at the server; nothing if that is
/// no address.
pub(super) fn target(server: &Server, path: &RequestPath, strip: usize, query: Option<&str>) -> Option<Uri> {
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

fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(name, value);
    }
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
