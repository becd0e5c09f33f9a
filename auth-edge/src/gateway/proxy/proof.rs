//! Proofs for upstreams that a bound access token comes from whoever holds its key (RFC 9449, section 7).
//!
//! Invariants
//! - A proof is made for each sending, for the upstream's own address.
//! - A client's proof never stands beside our token.
//!
//! An upstream that only wants its nonce repeated has done nothing yet, so that any request it can still be given may be
//! repeated.

use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use oidc::RelyingParty;
use url::Url;

use super::clients::UpstreamResponse;
use super::context::ProxyContext;
use crate::http::errors::HttpError;

/// The header of a proof.
pub(super) const HEADER: HeaderName = HeaderName::from_static("dpop");
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Whether this request's access token is worth nothing without a proof.
pub(super) fn is_needed(context: &ProxyContext<'_>) -> bool {
    context
        .authorized
        .access_token
        .as_ref()
        .is_some_and(|granted| granted.is_bound())
}

/// Adds the proof for the token the request carries.
pub(super) fn prove(head: &mut Parts, context: &ProxyContext<'_>) -> Result<(), HttpError> {
    if !is_needed(context) {
        return Ok(());
    }
    let token = head
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("DPoP "));
    let (Some(token), Some(url)) = (token, address(&head.uri)) else {
        return Ok(());
    };
    let now = context.gateway.clock.now_ms() / 1000;
    let proof = party(context).map_or(Ok(None), |party| {
        party.dpop_proof(head.method.as_str(), &url, token, now)
    });
    match proof.map(|proof| proof.and_then(|proof| HeaderValue::try_from(proof).ok())) {
        Ok(Some(proof)) => {
            head.headers.insert(HEADER, proof);
            Ok(())
        }
        Ok(None) => {
            tracing::error!("a session holds a bound access token, and there is no key for it");
            Err(HttpError::Internal)
        }
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a proof cannot be made");
            Err(HttpError::Internal)
        }
    }
}

/// Keeps the nonce an upstream gave; tells whether it refused the request for the lack of it.
pub(super) fn wants_nonce(context: &ProxyContext<'_>, uri: &Uri, answer: &UpstreamResponse) -> bool {
    if !is_needed(context) {
        return false;
    }
    let headers = answer.headers();
    let nonce = headers.get(NONCE).and_then(|value| value.to_str().ok());
    let learned = nonce
        .zip(address(uri))
        .is_some_and(|(nonce, url)| party(context).is_some_and(|party| party.learn_dpop_nonce(&url, nonce)));
    let mut challenges = headers.get_all(header::WWW_AUTHENTICATE).iter();
    learned
        && answer.status() == StatusCode::UNAUTHORIZED
        && challenges.any(|value| value.to_str().is_ok_and(|text| text.contains("use_dpop_nonce")))
}

/// Who holds the key: the relying party of the provider that bound the token.
fn party<'a>(context: &'a ProxyContext<'_>) -> Option<&'a RelyingParty> {
    let current = context.authorized.current.as_ref()?;
    let provider = context.gateway.providers.of_session(&current.session.issuer)?;
    Some(&provider.relying_party)
}

fn address(uri: &Uri) -> Option<Url> {
    Url::parse(&uri.to_string()).ok()
}
