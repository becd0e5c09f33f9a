//! Why a request of a receiver fails, and the status of it: the one place that knows (SSF 1.0, section 8.1).

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::keeper::KeeperError;
use crate::store::StoreError;

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// There is no token, or nobody's.
    #[error("a token of a receiver is required")]
    Unauthorized,
    /// The request is not as it has to be.
    #[error("{0}")]
    Invalid(&'static str),
    /// There is no such stream for this receiver.
    #[error("there is no such stream")]
    NoStream,
    /// The receiver has its stream already.
    #[error("the receiver has a stream already")]
    Exists,
    /// It is too early for another verification.
    #[error("min_verification_interval has not passed")]
    TooOften {
        /// How long to wait, in seconds.
        retry_after_secs: u64,
    },
    /// Ours.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
}

impl ApiError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::NoStream => StatusCode::NOT_FOUND,
            Self::Exists => StatusCode::CONFLICT,
            Self::TooOften { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Keeper(KeeperError::Store(StoreError::Unavailable(_) | StoreError::Full))
            | Self::Keeper(KeeperError::StaleVersion) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Keeper(
                KeeperError::Store(StoreError::Corrupt)
                | KeeperError::Missing
                | KeeperError::TooLarge { .. }
                | KeeperError::Seal(_),
            ) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The code of the error (RFC 8935, section 2.4, to which RFC 8936, section 2.6, refers).
    fn code(&self) -> Option<&'static str> {
        match self {
            Self::Unauthorized => Some("authentication_failed"),
            Self::Invalid(_) => Some("invalid_request"),
            Self::NoStream | Self::Exists | Self::TooOften { .. } | Self::Keeper(_) => None,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let description = match &self {
            Self::Keeper(error) => {
                let error = error as &dyn std::error::Error;
                tracing::warn!(error, "a request of a receiver failed");
                "the request cannot be answered now".to_owned()
            }
            other => other.to_string(),
        };
        let mut body = json!({"description": description});
        if let Some(code) = self.code() {
            body["err"] = json!(code);
        }
        let always = [
            (header::CACHE_CONTROL, "no-store"),
            (header::CONTENT_LANGUAGE, "en"),
        ];
        let mut response = (status, always, Json(body)).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Unauthorized => {
                headers.insert(
                    header::WWW_AUTHENTICATE,
                    header::HeaderValue::from_static("Bearer"),
                );
            }
            Self::TooOften { retry_after_secs } => {
                headers.insert(header::RETRY_AFTER, retry_after_secs.into());
            }
            _ => {}
        }
        response
    }
}
