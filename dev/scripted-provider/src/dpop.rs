//! Sender-constrained tokens (RFC 9449), if the script enables them. The provider verifies proofs strictly.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::signing::encode;
use crate::state::State;
use crate::{Endpoint, Recorded};

/// How old a proof may be, in seconds.
const MAX_AGE_SECS: u64 = 60;

/// The error for the request's proof; `None` if the proof is good, or if the script requires none.
pub(crate) fn refusal(state: &State, endpoint: Endpoint, request: &Recorded) -> Option<Response> {
    let resource = endpoint == Endpoint::Userinfo;
    let mut memory = state.lock();
    if !memory.script.dpop || !(resource || endpoint == Endpoint::Token) {
        return None;
    }
    let wanted = memory.script.dpop_nonce.clone();
    let now = memory.now();
    let verified = claims(request).and_then(|claims| {
        let text = |name: &str| claims[name].as_str().unwrap_or_default();
        let age = now.abs_diff(claims["iat"].as_u64()?);
        let ath = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("DPoP "))
            .map(|token| {
                encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, token.as_bytes()).as_ref())
            });
        let fresh = !text("jti").is_empty() && memory.proofs.insert(text("jti").to_owned());
        let fits = text("htm") == request.method
            && text("htu") == format!("{}{}", state.issuer, endpoint.path())
            && (!resource || ath.is_some() && claims["ath"].as_str() == ath.as_deref());
        (fresh && fits && age <= MAX_AGE_SECS).then(|| text("nonce").to_owned())
    });
    match (verified, wanted) {
        (None, _) => Some(refused(resource, "invalid_dpop_proof", None)),
        (Some(nonce), Some(wanted)) if nonce != wanted => {
            Some(refused(resource, "use_dpop_nonce", Some(&wanted)))
        }
        (Some(_), _) => None,
    }
}

fn refused(resource: bool, error: &str, nonce: Option<&str>) -> Response {
    let mut response = if resource {
        let challenge = format!("DPoP error=\"{error}\", algs=\"ES256\"");
        (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response()
    } else {
        (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
    };
    if let Some(nonce) = nonce.and_then(|nonce| nonce.parse().ok()) {
        response.headers_mut().insert("dpop-nonce", nonce);
    }
    response
}

/// The claims of the proof, if its own key verifies its signature.
fn claims(request: &Recorded) -> Option<Value> {
    let proof = request.header("dpop")?;
    let (signed, signature) = proof.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
    let jwk = &header["jwk"];
    let right = header["typ"] == "dpop+jwt" && header["alg"] == "ES256" && jwk.get("d").is_none();
    let mut point = vec![4];
    point.extend(decode(jwk["x"].as_str()?)?);
    point.extend(decode(jwk["y"].as_str()?)?);
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &decode(signature)?)
        .ok()?;
    serde_json::from_slice(&decode(claims)?).ok().filter(|_| right)
}
