//! Where the page of a failure leads, as far as only the handler knows it.

use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::HttpError;
use crate::http::pages;

/// Response extension of a failure: what its page offers. JSON stays as it is.
#[derive(Clone, Debug)]
pub(crate) enum NextStep {
    /// To sign in at this URL.
    SignIn(String),
    /// To sign in at this URL in the whole window: the page is loaded into a frame of this origin.
    SignInOutOfFrame(String),
    /// To sign in again at this URL.
    TryAgain(String),
    /// To request the first URL again, or to sign in at the second.
    RetryOrSignIn(String, String),
    /// To request this URL again, which the page does by itself after `Retry-After`.
    Retry(String),
}

impl NextStep {
    /// The answer whose page offers it.
    #[must_use]
    pub(crate) fn of(self, mut failure: Response) -> Response {
        failure.extensions_mut().insert(self);
        failure
    }

    /// As the pages have it.
    pub(super) fn on_page(&self) -> pages::NextStep<'_> {
        match self {
            Self::SignIn(url) => pages::NextStep::SignIn(url),
            Self::RetryOrSignIn(url, login) => pages::NextStep::RetryOrSignIn(url, login),
            Self::SignInOutOfFrame(url) => pages::NextStep::SignInOutOfFrame(url),
            Self::TryAgain(url) | Self::Retry(url) => pages::NextStep::TryAgain(url),
        }
    }

    /// The header by which the page requests its address again.
    pub(super) fn refresh(&self, failure: &HttpError) -> Option<HeaderValue> {
        match (self, failure) {
            (Self::Retry(url), HttpError::RateLimited { retry_after_secs, .. }) => {
                HeaderValue::try_from(format!("{retry_after_secs}; url={url}")).ok()
            }
            _ => None,
        }
    }
}

/// Puts the refresh of a page into its head.
pub(super) fn put_refresh(response: &mut Response, step: Option<&NextStep>, failure: &HttpError) {
    if let Some(refresh) = step.and_then(|step| step.refresh(failure)) {
        response.headers_mut().insert(header::REFRESH, refresh);
    }
}
