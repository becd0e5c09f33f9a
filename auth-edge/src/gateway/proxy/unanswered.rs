//! Why an upstream gave no answer, and the client's answer in that case.

use http_body_util::LengthLimitError;

use super::context::ProxyContext;
use super::upload;
use crate::http::errors::HttpError;
use crate::http::protect::slow_client;

/// Why there is no answer.
pub(super) enum Unanswered {
    /// The upstream took too long.
    TooLate,
    /// The connection could not be made or broke.
    Broken(hyper_util::client::legacy::Error),
    /// The fault is ours.
    Ours(HttpError),
}

impl Unanswered {
    /// Whether the upstream did not process the request. h2 reports the upstream's GOAWAY to streams above the last one that it
    /// names, and a broken pipe to the others.
    pub(super) fn is_unprocessed(&self) -> bool {
        let Self::Broken(error) = self else {
            return false;
        };
        let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
        causes.any(|cause| {
            let refuses = |error: &h2::Error| {
                error.is_remote()
                    && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
            };
            cause.downcast_ref().is_some_and(refuses)
                || cause.downcast_ref().is_some_and(hyper::Error::is_canceled)
        })
    }

    pub(super) fn into_http_error(self, context: &ProxyContext<'_>) -> HttpError {
        let error = match self {
            Self::TooLate => return HttpError::UpstreamSlow,
            Self::Ours(failure) => return failure,
            Self::Broken(error) => error,
        };
        let cause = &error as &(dyn std::error::Error + 'static);
        if slow_client::caused(cause) {
            return HttpError::TooSlow;
        }
        if is_caused_by::<LengthLimitError>(cause) {
            return HttpError::TooLarge;
        }
        if is_caused_by::<upload::Unreadable>(cause) {
            return HttpError::BadRequest("The request's body could not be read.");
        }
        tracing::warn!(
            error = cause,
            http.route = &*context.route.name,
            "an upstream cannot be reached, or its answer is not HTTP"
        );
        let timed_out = std::iter::successors(Some(cause), |error| error.source()).any(|error| {
            error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
        });
        if timed_out {
            HttpError::UpstreamSlow
        } else {
            HttpError::UpstreamDown
        }
    }
}

fn is_caused_by<E: std::error::Error + 'static>(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<E>())
}
