//! Strict parsing of request fields: each is a value of the field's own type or a named error.

use std::net::IpAddr;

use prost_types::{Duration, Timestamp};
use session_proto::{timestamp, v1};

use crate::session::cookie_generation::{FIRST, GenerationId, ID_BYTES};
use crate::session::{ApiTarget, Cause, Claims, Device, DeviceKey, Handle, ReceivedGeneration, SessionId};
use crate::sessions::SessionsError;

/// The most bytes of an issuer: more than any URL of a provider.
const MAX_ISSUER_BYTES: usize = 2_048;

/// The most bytes of a subject or provider session: twice the subject limit of OpenID Connect Core, section 2.
const MAX_NAME_BYTES: usize = 512;

/// Bytes of a request ID: a UUID, with or without hyphens, and room for other schemes.
const REQUEST_ID_BYTES: std::ops::RangeInclusive<usize> = 16..=64;

/// The most scopes that a call may require, and the most bytes of one.
const MAX_SCOPES: usize = 100;
const MAX_SCOPE_BYTES: usize = 256;

/// The most bytes of a page or resume token.
const MAX_TOKEN_BYTES: usize = 1_024;

/// How long a replaced generation of a cookie may stay valid, in milliseconds.
const GRACE_MS: std::ops::RangeInclusive<u64> = 1_000..=600_000;

/// The page size of a request without one, and the largest page.
const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: usize = 200;

/// The largest nanosecond of a second.
const MAX_NANOS: i32 = 999_999_999;

/// The most seconds of a `google.protobuf.Duration`: 10,000 years.
const MAX_DURATION_SECONDS: i64 = 315_576_000_000;

type Read<T> = Result<T, SessionsError>;

pub(super) fn wrong<T>(field: &'static str, problem: &'static str) -> Read<T> {
    Err(SessionsError::Invalid { field, problem })
}

pub(super) fn session_id(field: &'static str, text: &str) -> Read<SessionId> {
    SessionId::parse(text).or_else(|_| wrong(field, "not 32 lower-case hexadecimal digits"))
}

pub(super) fn handle(field: &'static str, text: &str) -> Read<Handle> {
    Handle::parse(text).or_else(|_| wrong(field, "not 32 lower-case hexadecimal digits"))
}

pub(super) fn issuer(text: &str) -> Read<&str> {
    match text.len() {
        0 => wrong("issuer", "is required"),
        1..=MAX_ISSUER_BYTES if !text.chars().any(char::is_control) => Ok(text),
        _ => wrong("issuer", "is longer than 2048 bytes or holds control characters"),
    }
}

pub(super) fn name<'a>(field: &'static str, text: &'a str) -> Read<Option<&'a str>> {
    match text.len() {
        0 => Ok(None),
        1..=MAX_NAME_BYTES if !text.chars().any(char::is_control) => Ok(Some(text)),
        _ => wrong(field, "is longer than 512 bytes or holds control characters"),
    }
}

/// The name of a value that is valid once; `None` if empty.
pub(super) fn once_id(text: &str) -> Read<Option<&str>> {
    match text.len() {
        0 => Ok(None),
        1..=MAX_NAME_BYTES => Ok(Some(text)),
        _ => wrong("once_id", "is longer than 512 bytes"),
    }
}

pub(super) fn required_name<'a>(field: &'static str, text: &'a str) -> Read<&'a str> {
    match name(field, text)? {
        Some(text) => Ok(text),
        None => wrong(field, "is required"),
    }
}

/// The cause of an ending. An unknown value comes from a later release: the session ends as well.
pub(super) fn cause(number: i32, default: Cause) -> Cause {
    match u32::try_from(number) {
        Ok(0) => default,
        Ok(number) => Cause::of_number(number),
        Err(_) => Cause::Other,
    }
}

/// Claims about a user or of a caller; an empty text means no claims.
pub(super) fn claims(field: &'static str, text: &str) -> Read<Claims> {
    if text.is_empty() {
        return Ok(Claims::default());
    }
    Claims::parse(text.to_owned())
        .or_else(|_| wrong(field, "is not a JSON object in which no name stands twice"))
}

/// The public key of a device.
pub(super) fn device_key(field: &'static str, text: &str) -> Read<DeviceKey> {
    DeviceKey::parse(text).or_else(|problem| wrong(field, problem))
}

/// The generation of a cookie that a browser presented.
pub(super) fn received_generation_of(request: &v1::RotateCookieRequest) -> Read<ReceivedGeneration> {
    Ok(ReceivedGeneration {
        id: generation_id("id", &request.id)?,
        parent: generation_id("parent", &request.parent)?,
    })
}

fn generation_id(field: &'static str, bytes: &[u8]) -> Read<GenerationId> {
    match bytes.len() {
        0 | ID_BYTES if bytes.iter().all(|byte| *byte == 0) => Ok(FIRST),
        ID_BYTES => Ok(bytes.to_vec()),
        _ => wrong(field, "has to be six bytes"),
    }
}

/// How long a replaced generation of a cookie stays valid, in milliseconds.
pub(super) fn grace_ms(given: Option<&Duration>) -> Read<u64> {
    let given = duration("grace", given)?.unwrap_or_default();
    let millis = u64::try_from(given.as_millis()).unwrap_or(u64::MAX);
    if !GRACE_MS.contains(&millis) {
        return wrong("grace", "has to be from one second to ten minutes");
    }
    Ok(millis)
}

/// The holder of a sign-in's claim; `None` if empty.
pub(super) fn holder(text: &str) -> Read<Option<&str>> {
    request_id(text).or_else(|_| wrong("holder", "is not a UUID"))
}

pub(super) fn request_id(text: &str) -> Read<Option<&str>> {
    if text.is_empty() {
        return Ok(None);
    }
    let legal = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if legal && REQUEST_ID_BYTES.contains(&text.len()) {
        Ok(Some(text))
    } else {
        wrong("request_id", "is not a UUID")
    }
}

/// Scope names (RFC 6749, section 3.3).
pub(super) fn scopes(names: &[String]) -> Read<&[String]> {
    let legal = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    let is_scope =
        |name: &String| !name.is_empty() && name.len() <= MAX_SCOPE_BYTES && name.bytes().all(legal);
    if names.len() <= MAX_SCOPES && names.iter().all(is_scope) {
        return Ok(names);
    }
    wrong(
        "scopes",
        "are more than 100, or one is no scope name of at most 256 characters",
    )
}

/// The API that a token is for; `None` for the session's own token.
pub(super) fn api_target(request: &v1::GetAccessTokenRequest) -> Read<Option<ApiTarget>> {
    let (audience, resource) = (request.audience.as_str(), request.resource.as_str());
    let scopes = scopes(&request.scopes)?;
    if audience.is_empty() && resource.is_empty() {
        return Ok(None);
    }
    name("audience", audience)?;
    if !resource.is_empty() && !oidc::is_resource(resource) {
        return wrong(
            "resource",
            "is no absolute URI without a fragment of at most 2048 bytes",
        );
    }
    Ok(Some(ApiTarget::new(audience, resource, scopes)))
}

/// A non-negative duration in the range of `google.protobuf.Duration`.
pub(super) fn duration(
    field: &'static str,
    duration: Option<&Duration>,
) -> Read<Option<std::time::Duration>> {
    let Some(duration) = duration else {
        return Ok(None);
    };
    if !(0..=MAX_DURATION_SECONDS).contains(&duration.seconds) || !(0..=MAX_NANOS).contains(&duration.nanos) {
        return wrong(
            field,
            "is negative, longer than 10,000 years or no length of time",
        );
    }
    std::time::Duration::try_from(*duration)
        .map(Some)
        .or_else(|_| wrong(field, "is no length of time"))
}

/// An instant in the range of `google.protobuf.Timestamp`, from 1970 on, in milliseconds since then.
pub(super) fn time_ms(field: &'static str, time: Option<&Timestamp>) -> Read<Option<u64>> {
    let Some(time) = time else {
        return Ok(None);
    };
    if !(0..=timestamp::LAST_SECOND).contains(&time.seconds) || !(0..=MAX_NANOS).contains(&time.nanos) {
        return wrong(field, "is no instant from the year 1970 to 9999");
    }
    Ok(Some(timestamp::to_ms(time)))
}

/// The caller's data about the browser, if any.
pub(super) fn device(device: Option<&v1::Device>) -> Read<Option<Device>> {
    let Some(device) = device else {
        return Ok(None);
    };
    // The store's clock sets the time when the browser was seen.
    time_ms("device.at", device.at.as_ref())?;
    let address = match device.address.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) if device.address.is_empty() => String::new(),
        Err(_) => return wrong("device.address", "is neither an IPv4 nor an IPv6 address"),
    };
    Ok(Some(Device {
        user_agent: Device::shorten_user_agent(&device.user_agent),
        address,
        at_ms: 0,
    }))
}

pub(super) fn page_size(size: i32) -> Read<usize> {
    match usize::try_from(size) {
        Err(_) => wrong("page_size", "is negative"),
        Ok(0) => Ok(DEFAULT_PAGE),
        Ok(size) => Ok(size.min(MAX_PAGE)),
    }
}

pub(super) fn token<'a>(field: &'static str, text: &'a str) -> Read<&'a str> {
    if text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text);
    }
    wrong(field, "is not a token of this service")
}
