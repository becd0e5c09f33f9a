//! What headers cross the edge, in both directions.
//!
//! Invariants
//! - The upstream sees no identity header but ours, in whatever spelling.
//! - No cookie of ours leaves.
//! - No upstream sets a cookie of ours.
//! - Hop-by-hop headers, also those a client names in `Connection`, are removed before ours are added, so that no client can
//!   have ours removed (RFC 9110, section 7.6.1).
//! - No header of a client's says how long its body is: that follows from the body that is sent (RFC 9112, section 6).

mod addresses;
mod upstream_response;

use std::borrow::Cow;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;

use super::authorized::Authorized;
use crate::http::mapped_body::PolledFrame;
use crate::route_table::upstream_headers::ToldNames;
use crate::sessions::NO_ROLL;
use crate::sessions::device_binding::DeviceStanding;
use crate::values::forwarded::describes_origin;
use crate::values::header_name::{HOP_BY_HOP, folded, members};
use crate::values::proxy_headers;

pub(super) use self::addresses::AddressMap;
use self::upstream_response::OF_BINDINGS;
pub(super) use self::upstream_response::{forbid_caching, strip_response};

/// By these some frameworks take another method than the one the request line names, and by which its guard has judged.
const METHOD_OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// Headers of the edge's own, besides those that describe where a request comes from.
const OWN: [&str; 3] = ["x-request-id", "x-csrf", NO_ROLL];

const X_AUTH_SUBJECT: HeaderName = HeaderName::from_static("x-auth-subject");
const X_AUTH_SESSION: HeaderName = HeaderName::from_static("x-auth-session");
const X_AUTH_ISSUER: HeaderName = HeaderName::from_static("x-auth-issuer");
const X_AUTH_CLIENT: HeaderName = HeaderName::from_static("x-auth-client");
/// `bound` where the request has proved to come from the device its session is bound to.
const X_AUTH_DEVICE: HeaderName = HeaderName::from_static("x-auth-device");
const BOUND: HeaderValue = HeaderValue::from_static("bound");

/// About as many headers of ours a request gets.
const OURS: usize = 8;

/// Identity headers that other proxies use and upstreams may still believe.
const IDENTITY: [&str; 5] = [
    "x-forwarded-user",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-forwarded-access-token",
];

/// Whether a header names another method than the request line, in whatever spelling.
pub(super) fn overrides_method(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| is_method_override(&folded(name.as_str())))
}

/// Whether a folded name is one of these headers.
pub(super) fn is_method_override(folded: &str) -> bool {
    METHOD_OVERRIDES.contains(&folded)
}

/// Whether a header says who somebody is, in whatever spelling.
pub(crate) fn is_identity(name: &HeaderName) -> bool {
    let folded = folded(name.as_str());
    folded.starts_with("x-auth-") || IDENTITY.contains(&folded.as_ref())
}

/// Whether only a proxy may send a header of this name, in whatever spelling. `X-Envoy-…` is for Envoy to judge.
pub(crate) fn is_for_proxies(name: &HeaderName) -> bool {
    let folded = folded(name.as_str());
    !folded.starts_with("x-envoy-") && proxy_headers::is_withheld(&folded, true, false)
}

/// Whether a client may not send a header of this name on, in whatever spelling.
fn is_ours_to_tell(
    name: &HeaderName,
    told: &ToldNames,
    may_override_method: bool,
    is_from_trusted: bool,
) -> bool {
    let folded = folded(name.as_str());
    let is_exact = matches!(folded, Cow::Borrowed(_));
    folded.starts_with("x-auth-")
        || describes_origin(&folded)
        || OWN.contains(&folded.as_ref())
        || proxy_headers::is_withheld(&folded, is_exact, is_from_trusted)
        || told.contain(&folded)
        || (!may_override_method && is_method_override(&folded))
        // Nothing was folded away: it is what it is.
        || (!is_exact && is_alias(&folded, name))
}

/// Whether a name becomes one that frames the message once it is folded.
fn is_alias(folded: &str, name: &HeaderName) -> bool {
    let frames = |framing: &HeaderName| framing.as_str() == folded && framing != name;
    frames(&header::CONTENT_LENGTH) || HOP_BY_HOP.iter().any(frames)
}

/// The headers a message names in `Connection` and has, each once: who names the same ten thousand times makes no work with
/// it.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let names = members(headers, header::CONNECTION).filter_map(|name| HeaderName::from_bytes(name).ok());
    let mut named = Vec::new();
    for name in names {
        if headers.contains_key(&name) && !named.contains(&name) {
            named.push(name);
        }
    }
    named
}

/// Whether a header ends at this hop, where the message names these in `Connection`.
fn ends_here(name: &HeaderName, named: &[HeaderName]) -> bool {
    HOP_BY_HOP.contains(name) || named.contains(name)
}

fn remove(headers: &mut HeaderMap, doomed: impl Fn(&HeaderName) -> bool) {
    let doomed: Vec<HeaderName> = headers.keys().filter(|name| doomed(name)).cloned().collect();
    for name in doomed {
        headers.remove(name);
    }
}

/// Removes hop-by-hop headers and those named in `Connection`.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named = named_by_connection(headers);
    remove(headers, |name| ends_here(name, &named));
}

/// What an upstream gets of a client's headers, with room for some of ours: nothing of this hop, of ours, or of somebody's
/// identity is among them, none that is `also` to stay here, and what only proxies may tell if a trusted one sent it. Its host the upstream has from us, and the length of the
/// body from the body.
pub(super) fn for_upstream(
    headers: &HeaderMap,
    also: &[HeaderName],
    told: &ToldNames,
    may_override_method: bool,
    is_from_trusted: bool,
    is_our_cookie: impl Fn(&str) -> bool,
) -> HeaderMap {
    let named = named_by_connection(headers);
    let mut kept_headers = HeaderMap::with_capacity(headers.len() + OURS);
    let stays = |name| {
        [header::HOST, header::COOKIE, header::CONTENT_LENGTH].contains(name)
            || also.contains(name)
            || ends_here(name, &named)
    };
    for (name, value) in headers {
        if !stays(name) && !is_ours_to_tell(name, told, may_override_method, is_from_trusted) {
            kept_headers.append(name.clone(), value.clone());
        }
    }
    if let Some(kept) = other_cookies(headers, is_our_cookie).filter(|_| !named.contains(&header::COOKIE)) {
        kept_headers.insert(header::COOKIE, kept);
    }
    kept_headers
}

/// Headers that mean something to whoever reads a message, and may not come after its body (RFC 9110, section 6.5.1).
const NEVER_TRAILERS: [HeaderName; 6] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::SET_COOKIE,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
];

/// Makes trailers of either direction fit: they may not say what headers may not.
fn strip_trailers(trailers: &mut HeaderMap, told: &ToldNames) {
    strip_hop_by_hop(trailers);
    remove(trailers, |name| {
        is_ours_to_tell(name, told, false, false)
            || NEVER_TRAILERS.contains(name)
            || OF_BINDINGS.contains(name)
    });
}

/// What a body gives; if it is the trailers, as [`strip_trailers`] leaves them.
pub(super) fn fit_frame<E>(polled: PolledFrame<E>, told: &ToldNames) -> PolledFrame<E> {
    polled.map_ok(|frame| match frame.into_trailers() {
        Ok(mut trailers) => {
            strip_trailers(&mut trailers, told);
            Frame::trailers(trailers)
        }
        Err(data) => data,
    })
}

/// All cookies but ours, in one line.
pub(crate) fn other_cookies(
    headers: &HeaderMap,
    is_our_cookie: impl Fn(&str) -> bool,
) -> Option<HeaderValue> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let kept = pairs.map(<[u8]>::trim_ascii);
    let kept = kept.filter(|pair| !pair.is_empty() && !is_our_cookie(&cookie_name(pair)));
    let mut value = list(kept, b"; ")?;
    value.set_sensitive(true);
    Some(value)
}

/// The value that lists these; none where nothing is left.
fn list<'a>(members: impl Iterator<Item = &'a [u8]>, separator: &[u8]) -> Option<HeaderValue> {
    let members: Vec<&[u8]> = members.collect();
    let value = HeaderValue::from_bytes(&members.join(separator)).ok();
    value.filter(|value| !value.is_empty())
}

/// The name of a pair as a browser would send it back: a cookie without a name is sent as its bare value, which may
/// look like a pair.
fn cookie_name(pair: &[u8]) -> String {
    let pair = pair.trim_ascii();
    let pair = pair.strip_prefix(b"=").unwrap_or(pair).trim_ascii_start();
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii()).into_owned()
}

/// Adds the identity headers for an upstream, or for a proxy that uses forward auth. A subject is a person only together
/// with its issuer (OpenID Connect Core 1.0,
/// section 5.7), also where a second provider is added later.
pub(super) fn add_identity(headers: &mut HeaderMap, authorized: &Authorized) {
    let Some(who) = authorized.principal() else {
        return;
    };
    let pairs = [
        (X_AUTH_SUBJECT, who.subject),
        (X_AUTH_SESSION, who.handle),
        (X_AUTH_ISSUER, Some(who.issuer)),
        (X_AUTH_CLIENT, who.client_id),
    ];
    for (name, text) in pairs {
        // What cannot be a header value is left out rather than bent.
        if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    let current = authorized.current.as_ref();
    if current.is_some_and(|current| current.device == DeviceStanding::Proven) {
        headers.insert(X_AUTH_DEVICE, BOUND);
    }
}

/// Whether a request speaks gRPC, whose answers end with trailers.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests;
