//! Proofs for upstreams that the sender of a bound access token holds its key (RFC 9449, section 7).
//!
//! Invariants
//! - Each attempt has its own proof, for the upstream's own address.
//! - A client's proof is never sent with our token.
//!
//! An upstream that requests its nonce has processed nothing, so a request may be repeated if it can still be
//! sent.

use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use oidc::RelyingParty;
use url::Url;

use super::clients::UpstreamResponse;
use super::outgoing::OutgoingRequest;
use crate::gateway::bearer::PROOF;
use crate::http::errors::HttpError;

const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Whether this request's access token is unusable without a proof.
pub(super) fn is_needed(outgoing: &OutgoingRequest<'_>) -> bool {
    outgoing
        .authorized
        .access_token
        .as_ref()
        .is_some_and(|granted| granted.is_bound())
}

/// Adds the proof for the request's token.
pub(super) fn prove(head: &mut Parts, outgoing: &OutgoingRequest<'_>) -> Result<(), HttpError> {
    if !is_needed(outgoing) {
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
    let now = outgoing.gateway.clock.now_ms() / 1000;
    let proof = party(outgoing).map_or(Ok(None), |party| {
        party.dpop_proof(head.method.as_str(), &url, token, now)
    });
    match proof.map(|proof| proof.and_then(|proof| HeaderValue::try_from(proof).ok())) {
        Ok(Some(proof)) => {
            head.headers.insert(PROOF, proof);
            Ok(())
        }
        Ok(None) => {
            tracing::error!("the edge has no key for the session's bound access token");
            Err(HttpError::Internal)
        }
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a proof cannot be made");
            Err(HttpError::Internal)
        }
    }
}

/// Stores the upstream's nonce. Returns whether the upstream rejected the request for a missing nonce.
pub(super) fn wants_nonce(outgoing: &OutgoingRequest<'_>, answer: &UpstreamResponse) -> bool {
    if !is_needed(outgoing) {
        return false;
    }
    let headers = answer.headers();
    let nonce = headers.get(NONCE).and_then(|value| value.to_str().ok());
    let learned = nonce
        .zip(address(&outgoing.head.uri))
        .is_some_and(|(nonce, url)| party(outgoing).is_some_and(|party| party.learn_dpop_nonce(&url, nonce)));
    let mut challenges = headers.get_all(header::WWW_AUTHENTICATE).iter();
    learned
        && answer.status() == StatusCode::UNAUTHORIZED
        && challenges.any(|value| value.to_str().is_ok_and(|text| text.contains("use_dpop_nonce")))
}

/// The holder of the key: the relying party of the provider that bound the token.
fn party<'a>(outgoing: &'a OutgoingRequest<'_>) -> Option<&'a RelyingParty> {
    let current = outgoing.authorized.current.as_ref()?;
    let provider = outgoing.gateway.providers.of_session(&current.session.issuer)?;
    Some(&provider.relying_party)
}

fn address(uri: &Uri) -> Option<Url> {
    Url::parse(&uri.to_string()).ok()
}
