//! What the provider, or an attacker in its name, sends: token responses, ID tokens, userinfo, logout tokens.

use http::{HeaderMap, HeaderValue, header};
use scripted_provider::{Answer as Scripted, CLIENT_ID, Endpoint, IdTokenShape, Script};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::Outcome;
use super::browser::signed_in;
use super::login::Login;
use super::world::{Edge, World, put, query};

/// How much clocks may differ, in seconds.
const TOLERANCE: u64 = 60;

/// Finishes a sign-in while the provider follows a script.
fn finish(world: &World, edge: &Edge, login: &Login, script: impl FnOnce(&mut Script)) -> Outcome {
    world.provider.script(script);
    let issuer = world.provider.issuer();
    let body = query(&login.put_into(b"state=STATE&code=CODE&iss=ISSUER", issuer));
    let callback = format!("{}/api/auth/callback", edge.base);
    let mut headers = login.headers();
    let answer = if std::ptr::eq(edge, &world.posted) {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        world.post(&callback, headers, body.into())
    } else {
        world.get(&format!("{callback}?{body}"), headers)
    };
    world.provider.reset();
    login.after(edge, &answer);
    signed_in(edge, &answer)
}

/// An input as a whole answer, and whether its status and content type are valid.
pub(super) fn answer(input: &[u8]) -> (Scripted, bool, String) {
    let (first, body) = input.split_first().unwrap_or((&0, &[]));
    let (status, kind) = match first % 16 {
        10 => (200, "text/html"),
        11 => (200, "application/jwt"),
        12 => (201, "application/json"),
        13 => (302, "application/json"),
        14 => (400, "application/json"),
        15 => (500, "application/json"),
        _ => (200, "application/json; charset=utf-8"),
    };
    let body = String::from_utf8_lossy(body).into_owned();
    (Scripted::text(status, kind, body.clone()), first % 16 < 10, body)
}

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

fn now() -> u64 {
    use chassis::clock::{Clock as _, SystemClock};
    SystemClock.now_ms() / 1000
}

/// The claims of a good ID token of this sign-in.
fn claims(world: &World, login: &Login) -> Map<String, Value> {
    let claims = json!({
        "iss": world.provider.issuer(), "sub": "alice", "aud": CLIENT_ID, "iat": now(), "exp": now() + 600, "nonce": login.nonce,
    });
    claims.as_object().cloned().unwrap()
}

pub(super) fn token_response(world: &World, input: &[u8]) -> Outcome {
    let login = Login::at(world, &world.plain);
    let genuine = world.provider.sign(claims(world, &login).into());
    let (scripted, good, body) = answer(&put(input, "ID-TOKEN", &genuine));
    let outcome = finish(world, &world.plain, &login, |script| {
        script.answers.insert(Endpoint::Token, scripted);
    });
    if outcome == Outcome::Accepted {
        let said = object(&body);
        let text = |name: &str| said.get(name).and_then(Value::as_str).unwrap_or_default();
        assert!(good && text("id_token") == genuine && !text("access_token").is_empty());
        let kind = said.get("token_type").filter(|kind| !kind.is_null());
        assert!(kind.is_none_or(|_| text("token_type").eq_ignore_ascii_case("bearer")));
    }
    outcome
}

pub(super) fn id_token(world: &World, input: &[u8]) -> Outcome {
    let login = Login::at(world, &world.plain);
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let good = claims(world, &login);
    match first % 3 {
        0 => {
            let genuine = world.provider.sign(good.into());
            let text = String::from_utf8_lossy(&put(rest, "ID-TOKEN", &genuine)).into_owned();
            let right = text == genuine;
            let outcome = finish(world, &world.plain, &login, |script| {
                script.id_token = IdTokenShape::Raw(text);
            });
            assert_eq!(outcome == Outcome::Accepted, right, "only what was signed");
            outcome
        }
        1 => {
            let patch = object(&String::from_utf8_lossy(rest));
            let said = patched(&good, &patch);
            let outcome = finish(world, &world.plain, &login, |script| script.claims = patch);
            if outcome == Outcome::Accepted {
                assert_eq!(said["nonce"], login.nonce);
                assert_for_us(world, &said);
                assert!(
                    said["sub"]
                        .as_str()
                        .is_some_and(|sub| !sub.is_empty() && sub.len() <= 255)
                );
            }
            outcome
        }
        _ => {
            let header = object(&String::from_utf8_lossy(rest));
            let said = patched(&json!({"alg": "RS256"}).as_object().cloned().unwrap(), &header);
            let outcome = finish(world, &world.plain, &login, |script| script.header = header);
            if outcome == Outcome::Accepted {
                assert!(said["alg"] == "RS256" && !said.contains_key("crit"));
            }
            outcome
        }
    }
}

pub(super) fn userinfo(world: &World, input: &[u8]) -> Outcome {
    let login = Login::at(world, &world.posted);
    let (scripted, good, body) = answer(input);
    let outcome = finish(world, &world.posted, &login, |script| {
        script.answers.insert(Endpoint::Userinfo, scripted);
    });
    if outcome == Outcome::Accepted {
        assert!(good && object(&body)["sub"] == "alice");
    }
    outcome
}

pub(super) fn logout_token(world: &World, input: &[u8]) -> Outcome {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let issuer = world.provider.issuer();
    let own_claims = (first % 2 == 1).then(|| object(&String::from_utf8_lossy(&put(rest, "ISSUER", issuer))));
    let token = match &own_claims {
        Some(claims) => world.provider.logout_token(claims.clone().into()),
        None => world.provider.logout_token(json!({"sub": "nobody"})),
    };
    let form = match &own_claims {
        Some(_) => format!("logout_token={token}").into_bytes(),
        None => put(rest, "LOGOUT-TOKEN", &token),
    };
    let right = std::str::from_utf8(&form).is_ok() && form.len() <= 64 * 1024 && {
        let pairs = form_urlencoded::parse(&form).filter(|(name, _)| name == "logout_token");
        pairs.map(|(_, value)| value).collect::<Vec<_>>() == [token.as_str()]
    };
    let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, form_type)]);
    let answer = world.post(
        &format!("{}/api/auth/backchannel-logout", world.plain.base),
        headers,
        form,
    );
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    if answer.status != 200 {
        assert!(
            !right || own_claims.is_some(),
            "a good token was refused: {}",
            answer.status
        );
        return answer.refused(&["invalid_request", "bad_request", "too_large"]);
    }
    assert!(right, "only what was signed");
    let said = decoded(&token);
    assert_for_us(world, &said);
    let text = |name: &str| {
        said.get(name)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    assert!(text("jti") && (text("sub") || text("sid")) && !said.contains_key("nonce"));
    assert!(said["events"]["http://schemas.openid.net/event/backchannel-logout"].is_object());
    Outcome::Accepted
}

fn patched(good: &Map<String, Value>, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut said = good.clone();
    said.extend(patch.clone());
    said.retain(|_, value| !value.is_null());
    said
}

/// Issued by our provider, only for this client, and current.
fn assert_for_us(world: &World, said: &Map<String, Value>) {
    assert_eq!(said["iss"], world.provider.issuer());
    assert!(
        said["aud"] == CLIENT_ID || said["aud"] == json!([CLIENT_ID]),
        "{}",
        said["aud"]
    );
    let at = |name: &str| said.get(name).map(|value| value.as_f64().unwrap());
    let (now, tolerance) = (now() as f64, TOLERANCE as f64 + 1.0);
    assert!(at("exp").unwrap() > now - tolerance);
    assert!(at("iat").unwrap() <= now + tolerance && at("iat").unwrap() >= now - 86_400.0 - tolerance);
    assert!(at("nbf").is_none_or(|nbf| nbf <= now + tolerance));
    assert!(said.get("azp").is_none_or(|azp| azp == CLIENT_ID));
}

/// The claims of a token the provider has just issued.
fn decoded(token: &str) -> Map<String, Value> {
    use base64::Engine as _;
    let part = token.split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part);
    serde_json::from_slice(&claims.unwrap()).unwrap()
}
