//! Filters the headers that cross the edge, in both directions.
//!
//! Invariants
//! - The upstream receives only the edge's identity headers, in any spelling.
//! - Our cookies never reach an upstream.
//! - No upstream sets one of our cookies.
//! - Hop-by-hop headers, including names in the client's `Connection`, are removed before ours are added. So
//!   no client can remove ours (RFC 9110, section 7.6.1).
//! - The body length never comes from a client's header, only from the body that is sent (RFC 9112, section
//!   6).

mod addresses;
mod upstream_response;

use std::borrow::Cow;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;

use super::authorized::RequestCredentials;
use crate::http::mapped_body::PolledFrame;
use crate::route_table::upstream_headers::IdentityHeaderNames;
use crate::sessions::NO_ROLL;
use crate::sessions::device_binding::DeviceStanding;
use crate::values::forwarded::describes_origin;
use crate::values::header_name::{HOP_BY_HOP, folded, members};
use crate::values::proxy_headers;

pub(super) use self::addresses::AddressMap;
use self::upstream_response::OF_BINDINGS;
pub(super) use self::upstream_response::{forbid_caching, strip_response};

/// Some frameworks take the method from these headers, not from the request line that the guard has checked.
const METHOD_OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// The edge's own headers, besides those that describe the origin of a request.
const OWN: [&str; 3] = ["x-request-id", "x-csrf", NO_ROLL];

const X_AUTH_SUBJECT: HeaderName = HeaderName::from_static("x-auth-subject");
const X_AUTH_SESSION: HeaderName = HeaderName::from_static("x-auth-session");
const X_AUTH_ISSUER: HeaderName = HeaderName::from_static("x-auth-issuer");
const X_AUTH_CLIENT: HeaderName = HeaderName::from_static("x-auth-client");
/// `bound` if the request has proved that it comes from the session's device.
const X_AUTH_DEVICE: HeaderName = HeaderName::from_static("x-auth-device");
const BOUND: HeaderValue = HeaderValue::from_static("bound");

/// About how many headers the edge adds to a request.
const OURS: usize = 8;

/// Identity headers of other proxies that upstreams may still trust.
const IDENTITY: [&str; 5] = [
    "x-forwarded-user",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-forwarded-access-token",
];

/// Whether a header names another method than the request line, in any spelling.
pub(super) fn overrides_method(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| is_method_override(&folded(name.as_str())))
}

/// Whether a folded name is one of these headers.
pub(super) fn is_method_override(folded: &str) -> bool {
    METHOD_OVERRIDES.contains(&folded)
}

/// Whether a header names a user's identity, in any spelling.
pub(crate) fn is_identity(name: &HeaderName) -> bool {
    let folded = folded(name.as_str());
    folded.starts_with("x-auth-") || IDENTITY.contains(&folded.as_ref())
}

/// Whether only a proxy may send a header of this name, in any spelling. Envoy itself checks `X-Envoy-…`.
pub(crate) fn is_for_proxies(name: &HeaderName) -> bool {
    let folded = folded(name.as_str());
    !folded.starts_with("x-envoy-") && proxy_headers::is_withheld(&folded, true, false)
}

/// Whether a client's header of this name is removed, in any spelling.
fn is_removed_header(
    name: &HeaderName,
    identity_names: &IdentityHeaderNames,
    may_override_method: bool,
    is_from_trusted: bool,
) -> bool {
    let folded = folded(name.as_str());
    let is_exact = matches!(folded, Cow::Borrowed(_));
    folded.starts_with("x-auth-")
        || describes_origin(&folded)
        || OWN.contains(&folded.as_ref())
        || proxy_headers::is_withheld(&folded, is_exact, is_from_trusted)
        || identity_names.contain(&folded)
        || (!may_override_method && is_method_override(&folded))
        // A name that folding leaves unchanged is no alias.
        || (!is_exact && is_alias(&folded, name))
}

/// Whether folding turns a name into a framing header.
fn is_alias(folded: &str, name: &HeaderName) -> bool {
    let frames = |framing: &HeaderName| framing.as_str() == folded && framing != name;
    frames(&header::CONTENT_LENGTH) || HOP_BY_HOP.iter().any(frames)
}

/// The headers that a message names in `Connection` and has, each once: a name repeated ten thousand times
/// costs no more work.
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

/// Whether a header is hop-by-hop, given the names in `Connection`.
fn is_hop_by_hop(name: &HeaderName, named: &[HeaderName]) -> bool {
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
    remove(headers, |name| is_hop_by_hop(name, &named));
}

/// The client's headers for an upstream, with room for some of ours. Leaves out hop-by-hop, own and identity headers,
/// and those in `also`. Keeps proxy headers only from a trusted proxy. The edge sets `Host`. The sent body determines
/// its length.
pub(super) fn for_upstream(
    headers: &HeaderMap,
    also: &[HeaderName],
    identity_names: &IdentityHeaderNames,
    may_override_method: bool,
    is_from_trusted: bool,
    is_our_cookie: impl Fn(&str) -> bool,
) -> HeaderMap {
    let named = named_by_connection(headers);
    let mut kept_headers = HeaderMap::with_capacity(headers.len() + OURS);
    let is_dropped = |name| {
        [header::HOST, header::COOKIE, header::CONTENT_LENGTH].contains(name)
            || also.contains(name)
            || is_hop_by_hop(name, &named)
    };
    for (name, value) in headers {
        if !is_dropped(name) && !is_removed_header(name, identity_names, may_override_method, is_from_trusted)
        {
            kept_headers.append(name.clone(), value.clone());
        }
    }
    if let Some(kept) = other_cookies(headers, is_our_cookie).filter(|_| !named.contains(&header::COOKIE)) {
        kept_headers.insert(header::COOKIE, kept);
    }
    kept_headers
}

/// Headers that affect how a message is read: they must not be trailers (RFC 9110, section 6.5.1).
const NEVER_TRAILERS: [HeaderName; 6] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::SET_COOKIE,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
];

/// Removes forbidden trailers in either direction: the rules for headers apply.
fn strip_trailers(trailers: &mut HeaderMap, identity_names: &IdentityHeaderNames) {
    strip_hop_by_hop(trailers);
    remove(trailers, |name| {
        is_removed_header(name, identity_names, false, false)
            || NEVER_TRAILERS.contains(name)
            || OF_BINDINGS.contains(name)
    });
}

/// A frame of a body; trailers pass through [`strip_trailers`].
pub(super) fn fit_frame<E>(polled: PolledFrame<E>, identity_names: &IdentityHeaderNames) -> PolledFrame<E> {
    polled.map_ok(|frame| match frame.into_trailers() {
        Ok(mut trailers) => {
            strip_trailers(&mut trailers, identity_names);
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

/// The value that lists these members; `None` if the list is empty.
fn list<'a>(members: impl Iterator<Item = &'a [u8]>, separator: &[u8]) -> Option<HeaderValue> {
    let members: Vec<&[u8]> = members.collect();
    let value = HeaderValue::from_bytes(&members.join(separator)).ok();
    value.filter(|value| !value.is_empty())
}

/// The cookie name as a browser would send it back: a nameless cookie is sent as its bare value, which may
/// look like a pair.
fn cookie_name(pair: &[u8]) -> String {
    let pair = pair.trim_ascii();
    let pair = pair.strip_prefix(b"=").unwrap_or(pair).trim_ascii_start();
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii()).into_owned()
}

/// Adds the identity headers for an upstream, or for a forward-auth proxy. The issuer is one of them: a subject is
/// unique only within its issuer (OpenID Connect Core, section 5.7).
pub(super) fn add_identity(headers: &mut HeaderMap, authorized: &RequestCredentials) {
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
        // A value that no header can hold is left out, not altered.
        if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    let current = authorized.current.as_ref();
    if current.is_some_and(|current| current.device == DeviceStanding::Proven) {
        headers.insert(X_AUTH_DEVICE, BOUND);
    }
}

/// Whether a request uses gRPC, so that its answer ends with trailers.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests;
