//! Requests that name no host, or two: programs behind and before the edge could disagree on whose they are.
//!
//! RFC 9112, section 3.2: such a request is answered with 400. Deliberately absent: any look at the name; no rule of the
//! edge depends on it.

use axum::extract::Request;
use axum::http::{Version, header};

use crate::http::errors::Failure;

/// Whether a request names one host, as it has to.
///
/// # Errors
/// It names none, or two.
pub fn named(request: &Request) -> Result<(), Failure> {
    let named = request.headers().get_all(header::HOST).iter().count();
    let least = usize::from(request.version() == Version::HTTP_11);
    if named > 1 || named < least {
        return Err(Failure::BadRequest("The request has to name one host."));
    }
    Ok(())
}
