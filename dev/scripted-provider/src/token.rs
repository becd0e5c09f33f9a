//! The token endpoint: client authentication, the code grant with PKCE and the refresh grant with rotation.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::script::{Claims, patch};
use crate::server::{oauth_error, unauthorized_client};
use crate::signing::encode;
use crate::state::{Login, Memory, State};
use crate::{CLIENT_ID, CLIENT_SECRET, Recorded};

/// The grant of RFC 8693, and its token type.
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
/// The grant of another provider's assertion (RFC 7523).
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Answers a grant.
pub(crate) fn token(state: &State, request: &Recorded) -> Response {
    let mut memory = state.lock();
    let grant = request.param("grant_type").unwrap_or_default().to_owned();
    *memory.grants.entry(grant.clone()).or_default() += 1;
    if !believes(&memory, request) {
        return unauthorized_client();
    }
    match grant.as_str() {
        "authorization_code" => code_grant(state, &mut memory, request),
        "refresh_token" => refresh_grant(state, &mut memory, request),
        EXCHANGE if request.param("requested_token_type") == Some(ID_JAG) => {
            assertion_grant(state, &mut memory, request)
        }
        EXCHANGE => exchange_grant(&mut memory, request),
        JWT_BEARER => jwt_bearer_grant(state, &mut memory, request),
        _ => oauth_error("unsupported_grant_type"),
    }
}

fn code_grant(state: &State, memory: &mut Memory, request: &Recorded) -> Response {
    let code = request.param("code").unwrap_or_default();
    let Some(login) = memory.codes.remove(code) else {
        return oauth_error("invalid_grant");
    };
    let verifier = request.param("code_verifier").unwrap_or_default();
    let challenge =
        encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes()).as_ref());
    if login.challenge.as_deref() != Some(&challenge)
        || request.param("redirect_uri") != Some(&login.redirect_uri)
    {
        return oauth_error("invalid_grant");
    }
    let nonce = login.nonce.clone();
    let body = issue(state, memory, &login, nonce.as_deref(), true, None);
    respond(body, &memory.script.token)
}

fn refresh_grant(state: &State, memory: &mut Memory, request: &Recorded) -> Response {
    if let Some(error) = memory.script.refresh_error.clone() {
        return oauth_error(&error);
    }
    if request.param("resource").is_some_and(|resource| {
        memory
            .script
            .unknown_resources
            .iter()
            .any(|unknown| unknown == resource)
    }) {
        return oauth_error("invalid_target");
    }
    let token = request.param("refresh_token").unwrap_or_default();
    if let Some(login) = memory.used_refresh_tokens.get(token).cloned() {
        memory.reuses += 1;
        memory.refresh_tokens.retain(|_, other| other.sid != login.sid);
        return oauth_error("invalid_grant");
    }
    let Some(login) = memory.refresh_tokens.get(token).cloned() else {
        return oauth_error("invalid_grant");
    };
    let mut kept = Some(token.to_owned());
    if memory.script.rotate_refresh_tokens {
        memory.rotations += 1;
        memory.refresh_tokens.remove(token);
        memory.used_refresh_tokens.insert(token.to_owned(), login.clone());
        kept = None;
    }
    let with_id_token = memory.script.refresh_id_token;
    let mut body = issue(state, memory, &login, None, with_id_token, kept);
    if let (Some(_), Some(scope)) = (request.param("resource"), request.param("scope")) {
        // The scope at that resource (RFC 8707, section 2.2).
        body.insert("scope".to_owned(), json!(scope));
    }
    respond(body, &memory.script.refresh)
}

/// A token exchange (RFC 8693) issues one access token of the same person, with the requested scope.
fn exchange_grant(memory: &mut Memory, request: &Recorded) -> Response {
    if let Some(error) = memory.script.exchange_error.clone() {
        return oauth_error(&error);
    }
    let typed = |name| request.param(name) == Some(ACCESS_TOKEN);
    let subject = request.param("subject_token").unwrap_or_default();
    let Some(mut login) = memory.access_tokens.get(subject).cloned() else {
        return oauth_error("invalid_request");
    };
    if !typed("subject_token_type") || !typed("requested_token_type") {
        return oauth_error("invalid_request");
    }
    login.scope = request.param("scope").unwrap_or_default().to_owned();
    let access_token = memory.fresh("api");
    memory.access_tokens.insert(access_token.clone(), login.clone());
    let token_type = if memory.script.dpop { "DPoP" } else { "Bearer" };
    let body = json!({
        "access_token": access_token, "issued_token_type": ACCESS_TOKEN, "token_type": token_type, "expires_in": 3600,
    });
    respond(
        body.as_object().cloned().unwrap_or_default(),
        &memory.script.exchange,
    )
}

/// A token exchange that issues an assertion for another server
/// (draft-ietf-oauth-identity-assertion-authz-grant). It is for the same client there.
fn assertion_grant(state: &State, memory: &mut Memory, request: &Recorded) -> Response {
    if let Some(error) = memory.script.exchange_error.clone() {
        return oauth_error(&error);
    }
    let now = memory.now();
    let subject = claims(request.param("subject_token").unwrap_or_default());
    let is_ours = subject.get("iss") == Some(&json!(state.issuer));
    let is_valid = subject
        .get("exp")
        .and_then(Value::as_u64)
        .is_some_and(|exp| now < exp);
    if request.param("subject_token_type") != Some(ID_TOKEN) || !is_ours || !is_valid {
        return oauth_error("invalid_request");
    }
    let mut assertion = json!({
        "iss": state.issuer, "sub": subject.get("sub"), "aud": request.param("audience"), "client_id": CLIENT_ID,
        "jti": memory.fresh("assertion"), "iat": now, "exp": now + 300,
    });
    for name in ["resource", "scope"] {
        if let Some(value) = request.param(name) {
            assertion[name] = json!(value);
        }
    }
    let mut header = memory.header("oauth-id-jag+jwt");
    let script = &memory.script;
    for (value, change) in [
        (&mut header, &script.id_jag_header),
        (&mut assertion, &script.id_jag),
    ] {
        if let Value::Object(members) = value {
            patch(members, change);
        }
    }
    let body = json!({
        "access_token": memory.keys.sign(&header, &assertion), "issued_token_type": ID_JAG, "token_type": "N_A",
        "expires_in": 300,
    });
    respond(
        body.as_object().cloned().unwrap_or_default(),
        &memory.script.exchange,
    )
}

/// A token for an assertion of another provider, which counts once. The script decides whether it is trusted.
fn jwt_bearer_grant(state: &State, memory: &mut Memory, request: &Recorded) -> Response {
    if let Some(error) = memory.script.jwt_bearer_error.clone() {
        return oauth_error(&error);
    }
    let assertion = claims(request.param("assertion").unwrap_or_default());
    let jti = assertion.get("jti").and_then(Value::as_str).unwrap_or_default();
    let is_for_us = [json!(state.issuer), json!([state.issuer])]
        .iter()
        .any(|us| assertion.get("aud") == Some(us));
    if !is_for_us || !memory.proofs.insert(format!("assertion {jti}")) {
        return oauth_error("invalid_grant");
    }
    let token_type = if memory.script.dpop { "DPoP" } else { "Bearer" };
    let body = json!({ "access_token": memory.fresh("cross"), "token_type": token_type, "expires_in": 3600 });
    respond(
        body.as_object().cloned().unwrap_or_default(),
        &memory.script.jwt_bearer,
    )
}

/// The claims of a JWT, unverified; empty for another text.
fn claims(jwt: &str) -> Claims {
    let part = jwt
        .split('.')
        .nth(1)
        .and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    part.and_then(|part| serde_json::from_slice(&part).ok())
        .unwrap_or_default()
}

/// The tokens of a person who has just signed in, without a browser.
pub(crate) fn sign_in(state: &State, scope: &str) -> Claims {
    let mut memory = state.lock();
    let login = Login {
        redirect_uri: String::new(),
        nonce: None,
        challenge: None,
        scope: scope.to_owned(),
        sub: memory.script.sub.clone(),
        sid: memory.fresh("sid"),
        user: memory.script.user.clone(),
        auth_time: memory.now(),
    };
    let mut tokens = issue(state, &mut memory, &login, None, true, None);
    tokens.insert("sid".to_owned(), json!(login.sid));
    tokens
}

fn issue(
    state: &State,
    memory: &mut Memory,
    login: &Login,
    nonce: Option<&str>,
    with_id_token: bool,
    kept_refresh_token: Option<String>,
) -> Claims {
    let access_token = memory.fresh("access");
    let refresh_token = kept_refresh_token.unwrap_or_else(|| memory.fresh("refresh"));
    memory.access_tokens.insert(access_token.clone(), login.clone());
    memory.refresh_tokens.insert(refresh_token.clone(), login.clone());
    let mut body = Claims::new();
    if with_id_token {
        body.insert(
            "id_token".to_owned(),
            json!(memory.id_token(&state.issuer, login, nonce, &access_token)),
        );
    }
    body.insert("access_token".to_owned(), json!(access_token));
    body.insert("refresh_token".to_owned(), json!(refresh_token));
    let token_type = if memory.script.dpop { "DPoP" } else { "Bearer" };
    body.insert("token_type".to_owned(), json!(token_type));
    body.insert("expires_in".to_owned(), json!(3600));
    body.insert("scope".to_owned(), json!(login.scope));
    body
}

fn respond(mut body: Claims, script: &Claims) -> Response {
    patch(&mut body, script);
    ([("cache-control", "no-store")], Json(Value::Object(body))).into_response()
}

/// Whether the client authenticated, by a method that the metadata lists.
pub(crate) fn believes(memory: &Memory, request: &Recorded) -> bool {
    let methods = memory
        .script
        .metadata
        .get("token_endpoint_auth_methods_supported");
    let methods = methods.and_then(Value::as_array);
    let takes_basic =
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"));
    (takes_basic || request.header("authorization").is_none())
        && is_our_client(request)
        && is_as_scripted(&memory.script.assertion, request.param("client_assertion"))
}

/// Whether an assertion's header and claims have the wanted values.
fn is_as_scripted(wanted: &Claims, assertion: Option<&str>) -> bool {
    let Some(assertion) = assertion else {
        return true;
    };
    let parts = assertion.split('.').take(2);
    let parts: Vec<Claims> = parts
        .filter_map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok())
        .collect();
    wanted
        .iter()
        .all(|(name, value)| parts.iter().any(|part| part.get(name) == Some(value)))
}

/// Accepts Basic or post with the secret, an assertion, or a public client. Tests check an assertion's claims.
pub(crate) fn is_our_client(request: &Recorded) -> bool {
    if let Some(basic) = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Basic "))
    {
        let Some(text) = STANDARD
            .decode(basic)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            return false;
        };
        let Some((id, secret)) = text.split_once(':') else {
            return false;
        };
        return decode(id) == CLIENT_ID && decode(secret) == CLIENT_SECRET;
    }
    request.param("client_id") == Some(CLIENT_ID)
        && request
            .param("client_secret")
            .is_none_or(|secret| secret == CLIENT_SECRET)
}

fn decode(text: &str) -> String {
    let pair = format!("k={text}");
    form_urlencoded::parse(pair.as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}
