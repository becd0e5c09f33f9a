//! Why an upstream sent no answer, and the client's answer in that case.

use std::error::Error;

use http_body_util::LengthLimitError;

use super::upload;
use crate::http::errors::HttpError;
use crate::http::protect::slow_client;

/// Why no answer arrived.
pub(super) enum UpstreamFailure {
    /// The upstream took too long.
    TooLate,
    /// The connection failed or broke.
    Broken(hyper_util::client::legacy::Error),
    /// The edge itself failed.
    Ours(HttpError),
}

impl UpstreamFailure {
    /// Whether the upstream did not process the request. After a GOAWAY, h2 fails the streams above the last named
    /// one with the GOAWAY, and all others with a broken pipe.
    pub(super) fn is_unprocessed(&self) -> bool {
        let Self::Broken(error) = self else {
            return false;
        };
        causes(error).any(|cause| {
            let refuses = |error: &h2::Error| {
                error.is_remote()
                    && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
            };
            cause.downcast_ref().is_some_and(refuses)
                || cause.downcast_ref().is_some_and(hyper::Error::is_canceled)
        })
    }

    pub(super) fn into_http_error(self, route: &str) -> HttpError {
        let error = match self {
            Self::TooLate => return HttpError::UpstreamSlow,
            Self::Ours(failure) => return failure,
            Self::Broken(error) => error,
        };
        let cause = &error as &(dyn Error + 'static);
        if slow_client::caused(cause) {
            return HttpError::TooSlow;
        }
        if causes(cause).any(|error| error.is::<LengthLimitError>()) {
            return HttpError::TooLarge;
        }
        if causes(cause).any(|error| error.is::<upload::UploadReadError>()) {
            return HttpError::BadRequest("The request's body could not be read.");
        }
        tracing::warn!(
            error = cause,
            http.route = route,
            "an upstream cannot be reached, or its answer is not HTTP"
        );
        let timed_out = causes(cause).any(|error| {
            let error = error.downcast_ref::<std::io::Error>();
            error.is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
        });
        if timed_out {
            HttpError::UpstreamSlow
        } else {
            HttpError::UpstreamDown
        }
    }
}

/// An error and its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
