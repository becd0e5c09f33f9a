//! Frames an upstream's answer for the client: by the body that was read, never by the upstream's headers.
//!
//! RFC 9112, section 6.3, lists the cases. hyper checks answers without a length. This module checks the rest:
//! - a length next to `Transfer-Encoding`, or without a body, is wrong (RFC 9110, section 8.6);
//! - a transfer coding other than `chunked` was not requested and cannot be decoded;
//! - the version is the one of this hop (section 2.3).

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use http_body::Body as _;

use super::clients::UpstreamResponse;
use crate::http::errors::HttpError;
use crate::values::header_name::members;

/// Sets version and length of an answer to a request of this method.
///
/// # Errors
/// 502 if its body cannot be read.
pub(super) fn frame_answer(
    answer: &mut UpstreamResponse,
    method: &Method,
    route: &str,
) -> Result<(), HttpError> {
    *answer.version_mut() = Version::HTTP_11;
    let status = answer.status();
    if *method == Method::HEAD {
        // The length of the body that a GET would receive.
        let length = stated_length(answer.headers());
        set_length(answer.headers_mut(), length);
        return Ok(());
    }
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) || status.is_informational() {
        answer.headers_mut().remove(header::CONTENT_LENGTH);
        return Ok(());
    }
    let codings: Vec<&[u8]> = members(answer.headers(), header::TRANSFER_ENCODING).collect();
    let is_read = match codings[..] {
        [] => true,
        [coding] => coding.eq_ignore_ascii_case(b"chunked"),
        _ => false,
    };
    if !is_read {
        tracing::warn!(
            http.route = route,
            "an upstream's answer cannot be read: its Transfer-Encoding is not chunked alone"
        );
        return Err(HttpError::UpstreamDown);
    }
    let length = answer.body().size_hint().exact();
    let length = length.filter(|_| answer.headers().contains_key(header::CONTENT_LENGTH));
    set_length(answer.headers_mut(), length);
    Ok(())
}

/// The one length that an answer without a body names, possibly repeated.
fn stated_length(headers: &HeaderMap) -> Option<u64> {
    let mut lengths = members(headers, header::CONTENT_LENGTH);
    let first = lengths.next()?;
    let is_number = first.iter().all(u8::is_ascii_digit) && lengths.all(|other| other == first);
    std::str::from_utf8(first)
        .ok()?
        .parse()
        .ok()
        .filter(|_| is_number)
}

fn set_length(headers: &mut HeaderMap, length: Option<u64>) {
    headers.remove(header::CONTENT_LENGTH);
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
}
