//! Serves the files of a folder: the unchanged build of a single-page app.
//!
//! Invariants
//! - The caller has normalised the path.
//! - Browsers cache a file with a hash in its name permanently, and revalidate every other file.
//! - For a missing asset, the edge answers 404, never the app's page.
//! - If `If-Range` names another version of a file, the edge sends the whole file.
//!
//! Compressed files next to the original (`.br`, `.gz`) are served to browsers that accept them. Symbolic
//! links never lead out of the folder.

mod folder_backend;
mod ranges;

use std::path::Path;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

use self::folder_backend::FolderBackend;
use crate::http::errors::HttpError;
use crate::values::path::RequestPath;

/// The content of a file with a hash in its name never changes (RFC 8246).
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Browsers revalidate every other file each time.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// The folder where the build puts files with a hash in their name.
const HASHED: &str = "assets";

/// The minimum length of a hash in a file name.
const HASH_CHARS: usize = 8;

/// Bytes that the edge reads from a file at once. An answer to a slow client holds twice as many in memory.
const PIECE: usize = 16 * 1024;

/// Answers a request from a folder.
pub(super) async fn serve(folder: &Path, path: &RequestPath, strip: usize, mut head: Parts) -> Response {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return HttpError::MethodNotAllowed("GET, HEAD".into()).into_response();
    }
    // Hidden files (keys, histories, version control) get into folders by accident; `.well-known` is public.
    if path
        .segments()
        .iter()
        .any(|segment| segment.starts_with('.') && segment != ".well-known")
    {
        return HttpError::NotFound.into_response();
    }
    let names_file = path.last().contains('.');
    let hashed = path.segments().get(strip).is_some_and(|first| first == HASHED) && carries_hash(path.last());
    let named = if names_file {
        path.to_encoded(strip)
    } else {
        "/index.html".to_owned()
    };
    ranges::normalize(&mut head);
    let mut response = file(folder, &named, head.clone()).await;
    let answer = (response.status(), response.headers());
    if let Some(range) = head.headers.get(header::RANGE)
        && ranges::wants_whole(answer, range, head.headers.get(header::IF_RANGE))
    {
        head.headers.remove(header::RANGE);
        response = file(folder, &named, head).await;
    }
    match response.status() {
        StatusCode::NOT_FOUND => return HttpError::NotFound.into_response(),
        status if status.is_server_error() => return HttpError::Internal.into_response(),
        _ => {}
    }
    let kept = if hashed && names_file {
        IMMUTABLE
    } else {
        REVALIDATE
    };
    response.headers_mut().insert(header::CACHE_CONTROL, kept);
    response
}

/// Whether a file name is `name-HASH.ext`. HASH: at least eight characters, with a digit or a capital letter.
fn carries_hash(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    // The hash itself may hold a hyphen.
    stem.match_indices('-')
        .map(|(at, _)| &stem[at + 1..])
        .any(|hash| {
            hash.len() >= HASH_CHARS
                && hash
                    .bytes()
                    .any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        })
}

async fn file(folder: &Path, path: &str, mut parts: Parts) -> Response {
    match Uri::try_from(path) {
        Ok(uri) => parts.uri = uri,
        Err(_) => return StatusCode::NOT_FOUND.into_response(),
    }
    let files = ServeDir::with_backend(folder, FolderBackend::of(folder))
        .append_index_html_on_directories(false)
        .with_buf_chunk_size(PIECE)
        .precompressed_br()
        .precompressed_gzip();
    match files.oneshot(Request::from_parts(parts, Body::empty())).await {
        Ok(response) => response.map(Body::new),
        Err(impossible) => match impossible {},
    }
}

#[cfg(test)]
mod tests {
    use super::carries_hash;

    #[test]
    fn only_names_with_a_hash_are_kept_for_good() {
        for name in [
            "index-DiwrgTda.js",
            "index-B2cV4x_9.css",
            "a-b-C-1-2-3-4-.woff2",
            "app-0123456789abcdef.js.map",
        ] {
            assert!(carries_hash(name), "{name}");
        }
        for name in ["logo.svg", "my-homepage.svg", "index-abc.js", "robots.txt"] {
            assert!(!carries_hash(name), "{name}");
        }
    }
}
