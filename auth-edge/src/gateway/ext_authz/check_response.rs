//! Translates the forward-auth route's answer for Envoy.

use axum::body::to_bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use tonic::Code;

use super::api::check_response::HttpResponse;
use super::api::core::header_value_option::HeaderAppendAction;
use super::api::core::{HeaderValue as Header, HeaderValueOption};
use super::api::{CheckResponse, DeniedHttpResponse, OkHttpResponse, rpc, types};
use crate::gateway::bearer::PROOF;
use crate::gateway::check::ApplicationHeaders;
use crate::gateway::headers::{is_for_proxies, is_identity, other_cookies};
use crate::values::header_name::folded;

/// The longest body that is forwarded; the edge's own pages are a few KiB.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Translates an answer to a client that sent these headers.
pub(super) async fn of(
    answered: Response,
    client_headers: &HeaderMap,
    is_ours: impl Fn(&str) -> bool,
) -> CheckResponse {
    if answered.status() == StatusCode::OK {
        return CheckResponse {
            status: Some(status(Code::Ok)),
            http_response: Some(HttpResponse::OkResponse(allow(
                &answered,
                client_headers,
                is_ours,
            ))),
        };
    }
    let (head, body) = answered.into_parts();
    let code = match head.status {
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
        _ => Code::Unauthenticated,
    };
    let body = to_bytes(body, MAX_BODY_BYTES).await.unwrap_or_default();
    let headers = head
        .headers
        .iter()
        .filter(|(name, _)| *name != header::CONTENT_LENGTH)
        .filter_map(|(name, value)| set(name, value, HeaderAppendAction::AppendIfExistsOrAdd))
        .collect();
    let denied = DeniedHttpResponse {
        status: Some(types::HttpStatus {
            code: i32::from(head.status.as_u16()),
        }),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    CheckResponse {
        status: Some(status(code)),
        http_response: Some(HttpResponse::DeniedResponse(denied)),
    }
}

fn allow(response: &Response, client_headers: &HeaderMap, is_ours: impl Fn(&str) -> bool) -> OkHttpResponse {
    let replace = HeaderAppendAction::OverwriteIfExistsOrAdd;
    let answered = response.headers();
    let own = ApplicationHeaders::default();
    let application = response.extensions().get::<ApplicationHeaders>().unwrap_or(&own);
    let is_for_upstream = |name: &HeaderName| {
        is_identity(name) || *name == header::AUTHORIZATION || application.headers.contains(name)
    };
    let mut headers: Vec<HeaderValueOption> = answered
        .iter()
        .filter(|(name, _)| is_for_upstream(name))
        .filter_map(|(name, value)| set(name, value, replace))
        .collect();
    let mut headers_to_remove: Vec<String> = client_headers
        .keys()
        .filter(|name| {
            let is_token = **name == header::AUTHORIZATION || **name == PROOF;
            is_identity(name)
                || is_for_proxies(name)
                || application.names.contain(&folded(name.as_str()))
                || (is_token && application.hides_client_token)
        })
        // Envoy removes headers after it sets them. A header that is not set is removed.
        .filter(|name| {
            let mut set = headers.iter().filter_map(|option| option.header.as_ref());
            !set.any(|header| header.key == name.as_str())
        })
        .map(|name| name.as_str().to_owned())
        .collect();
    if client_headers.contains_key(header::COOKIE) {
        match other_cookies(client_headers, is_ours).and_then(|kept| set(&header::COOKIE, &kept, replace)) {
            Some(kept) => headers.push(kept),
            None => headers_to_remove.push(header::COOKIE.as_str().to_owned()),
        }
    }
    let add = HeaderAppendAction::AppendIfExistsOrAdd;
    let rolled = answered.get_all(header::SET_COOKIE).iter();
    OkHttpResponse {
        headers,
        headers_to_remove,
        response_headers_to_add: rolled
            .filter_map(|cookie| set(&header::SET_COOKIE, cookie, add))
            .collect(),
    }
}

fn set(name: &HeaderName, value: &HeaderValue, action: HeaderAppendAction) -> Option<HeaderValueOption> {
    Some(HeaderValueOption {
        header: Some(Header {
            key: name.as_str().to_owned(),
            value: std::str::from_utf8(value.as_bytes()).ok()?.to_owned(),
        }),
        // Deprecated; if it is present, Envoy obeys it instead and joins cookies with commas.
        append: None,
        append_action: action.into(),
    })
}

fn status(code: Code) -> rpc::Status {
    rpc::Status {
        code: code.into(),
        message: String::new(),
    }
}
