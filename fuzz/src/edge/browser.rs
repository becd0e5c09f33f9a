//! What browsers send: queries, forms, cookies.

use http::{HeaderMap, HeaderValue, header};
use scripted_provider::{CLIENT_ID, Endpoint};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::Outcome;
use super::login::Login;
use super::world::{Answer, Edge, LINE_MAX, World, put, query};

/// The only code of rejected callbacks.
pub(super) const CALLBACK: [&str; 1] = ["ERR_CALLBACK_HANDLER_FAILURE"];

const FORM: &str = "application/x-www-form-urlencoded";

pub(super) fn callback_query(world: &World, input: &[u8]) -> Outcome {
    let login = Login::at(world, &world.plain);
    let query = query(&login.put_into(input, world.provider.issuer()));
    let url = format!("{}/api/auth/callback?{query}", world.plain.base);
    let whole = Message::read(query.as_bytes());
    checked(world, &world.plain, &login, &whole, || {
        world.get(&url, login.headers())
    })
}

pub(super) fn callback_form(world: &World, input: &[u8]) -> Outcome {
    let login = Login::at(world, &world.posted);
    let (first, form) = input.split_first().unwrap_or((&0, &[]));
    let kind = match first % 16 {
        13 => "text/plain",
        14 => "application/json",
        15 => "multipart/form-data; boundary=a",
        12 => "Application/X-WWW-Form-Urlencoded; charset=UTF-8",
        _ => FORM,
    };
    let body = login.put_into(form, world.provider.issuer());
    let readable =
        matches!(first % 16, 0..=12) && std::str::from_utf8(&body).is_ok() && body.len() <= 64 * 1024;
    let whole = if readable {
        Message::read(&body)
    } else {
        Message::default()
    };
    let url = format!("{}/api/auth/callback", world.posted.base);
    checked(world, &world.posted, &login, &whole, || {
        let mut headers = login.headers();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        world.post(&url, headers, body.clone())
    })
}

/// The content of a provider's answer, by an independent reader.
#[derive(Default)]
struct Message {
    states: Vec<String>,
    codes: Vec<String>,
    issuers: Vec<String>,
    errors: Vec<String>,
}

impl Message {
    fn read(encoded: &[u8]) -> Self {
        let pairs: Vec<_> = form_urlencoded::parse(encoded).collect();
        // A list (`code[]`) counts as several values, even with one element.
        let values = |name: &str| {
            let named = pairs
                .iter()
                .filter(|(key, _)| key.split('[').next() == Some(name));
            let times = |key: &str| if key == name { 1 } else { 2 };
            named
                .flat_map(|(key, value)| std::iter::repeat_n(value.to_string(), times(key)))
                .collect()
        };
        Self {
            states: values("state"),
            codes: values("code"),
            issuers: values("iss"),
            errors: values("error"),
        }
    }

    /// Whether it is the whole answer to this sign-in, so that a code may be redeemed.
    fn is_whole(&self, login: &Login, issuer: &str) -> bool {
        self.states == [login.state.as_str()]
            && self.issuers == [issuer]
            && self.errors.is_empty()
            && self.codes.len() == 1
            && !self.codes[0].is_empty()
    }
}

fn checked(
    world: &World,
    edge: &Edge,
    login: &Login,
    message: &Message,
    send: impl Fn() -> Answer,
) -> Outcome {
    let whole = message.is_whole(login, world.provider.issuer());
    let calls = world.provider.calls(Endpoint::Token);
    let answer = send();
    login.after(edge, &answer);
    let called = world.provider.calls(Endpoint::Token) - calls;
    assert!(
        called <= usize::from(whole),
        "the token endpoint was called {called} times"
    );
    let outcome = signed_in(edge, &answer);
    let right = whole && message.codes == [login.code.as_str()];
    assert_eq!(
        outcome == Outcome::Accepted,
        right,
        "only the right answer makes a session"
    );
    outcome
}

/// Whether the answer to a callback creates a session; otherwise it must be the edge's own refusal.
pub(super) fn signed_in(edge: &Edge, answer: &Answer) -> Outcome {
    let session = answer.sets("session").is_some();
    if matches!(answer.status, 302 | 303) {
        assert!(session && answer.location() == format!("{}/", edge.base));
        return Outcome::Accepted;
    }
    assert!(!session && answer.status != 429);
    answer.refused(&CALLBACK)
}

pub(super) fn transaction_cookie(world: &World, input: &[u8]) -> Outcome {
    let edge = &world.plain;
    let login = Login::at(world, edge);
    let (cookies, lines) = cookies(&login.put_into(input, world.provider.issuer()));
    let named = values_of(&lines, &login.cookie.0);
    let query = query(&login.put_into(b"state=STATE&code=CODE&iss=ISSUER", world.provider.issuer()));
    let calls = world.provider.calls(Endpoint::Token);
    let answer = world.get(&format!("{}/api/auth/callback?{query}", edge.base), cookies);
    login.after(edge, &answer);
    let outcome = signed_in(edge, &answer);
    let right = named == [login.cookie.1.as_str()];
    assert_eq!(
        outcome == Outcome::Accepted,
        right,
        "only the very cookie that was set"
    );
    assert_eq!(world.provider.calls(Endpoint::Token) - calls, usize::from(right));
    outcome
}

pub(super) fn session_cookie(world: &World, input: &[u8]) -> Outcome {
    let value = {
        let mut session = world.session.lock().unwrap();
        session.get_or_insert_with(|| signed_in_session(world)).clone()
    };
    let (cookies, lines) = cookies(&put(input, "SESSION-VALUE", &value));
    let named = values_of(&lines, "session");
    let answer = world.get(&format!("{}/api/auth/me", world.plain.base), cookies);
    let right = named == [value.as_str()];
    if answer.status == 200 {
        let user: Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(
            right && user["sub"] == "alice",
            "only the very cookie that was set"
        );
        return Outcome::Accepted;
    }
    assert!(!right, "the session is there: {}", answer.status);
    if answer.status == 204 {
        return Outcome::Refused(204);
    }
    answer.refused(&[])
}

/// A separate session: the value of its cookie.
fn signed_in_session(world: &World) -> String {
    let login = Login::at(world, &world.plain);
    let query = query(&login.put_into(b"state=STATE&code=CODE&iss=ISSUER", world.provider.issuer()));
    let url = format!("{}/api/auth/callback?{query}", world.plain.base);
    let answer = world.get(&url, login.headers());
    login.after(&world.plain, &answer);
    answer.sets("session").unwrap().to_owned()
}

/// Each line as a `Cookie` header, if valid, and the lines that were sent.
fn cookies(input: &[u8]) -> (HeaderMap, Vec<Vec<u8>>) {
    let mut headers = HeaderMap::new();
    let mut lines = Vec::new();
    for line in input[..input.len().min(LINE_MAX)]
        .split(|byte| *byte == b'\n')
        .take(20)
    {
        let line: Vec<u8> = line
            .iter()
            .copied()
            .filter(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f))
            .collect();
        headers.append(header::COOKIE, HeaderValue::from_bytes(&line).unwrap());
        lines.push(line);
    }
    (headers, lines)
}

/// The values of a cookie in all lines, by an independent reader.
fn values_of<'a>(lines: &'a [Vec<u8>], name: &str) -> Vec<&'a str> {
    let pairs = lines.iter().flat_map(|line| line.split(|byte| *byte == b';'));
    let texts = pairs.filter_map(|pair| std::str::from_utf8(pair).ok());
    let named = texts.filter_map(|pair| pair.trim_matches([' ', '\t']).split_once('='));
    named
        .filter(|(known, _)| *known == name)
        .map(|(_, value)| value)
        .collect()
}

pub(super) fn login_query(world: &World, input: &[u8]) -> Outcome {
    let query = query(&put(input, "ISSUER", world.provider.issuer()));
    let edge = &world.plain;
    let url = format!("{}/api/auth/login?{query}", edge.base);
    let answer = world.get(&url, HeaderMap::new());
    if answer.status != 302 {
        assert!(answer.headers.get(header::SET_COOKIE).is_none());
        return answer.refused(&["bad_request"]);
    }
    let target = Url::parse(answer.location()).unwrap();
    assert!(
        target
            .as_str()
            .starts_with(&world.provider.url(Endpoint::Authorize))
    );
    let redirect_uri = format!("{}/api/auth/callback", edge.base);
    for (name, expected) in [
        ("client_id", Some(CLIENT_ID)),
        ("response_type", Some("code")),
        ("redirect_uri", Some(redirect_uri.as_str())),
        ("scope", Some("openid profile email")),
        ("code_challenge_method", Some("S256")),
        ("state", None),
        ("nonce", None),
        ("code_challenge", None),
    ] {
        let values: Vec<_> = target.query_pairs().filter(|(key, _)| key == name).collect();
        assert_eq!(values.len(), 1, "{name} stands once");
        assert!(expected.is_none_or(|expected| values[0].1 == expected), "{name}");
    }
    for name in [
        "request",
        "request_uri",
        "response_mode",
        "client_secret",
        "resource",
    ] {
        assert!(
            !target.query_pairs().any(|(key, _)| key == name),
            "{name} was let through"
        );
    }
    // A script receives the URL of the redirect.
    let script = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
    let answer = world.get(&url, script);
    assert_eq!(answer.refused(&["login_required"]), Outcome::Refused(401));
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    let login_url = Url::parse(document["login_url"].as_str().unwrap()).unwrap();
    for (name, value) in login_url.query_pairs() {
        assert_eq!(name, "returnTo");
        assert_own(edge, &value);
    }
    Outcome::Accepted
}

pub(super) fn logout_query(world: &World, input: &[u8]) -> Outcome {
    let url = format!("{}/api/auth/logout?{}", world.plain.base, query(input));
    let answer = world.get(&url, HeaderMap::new());
    if answer.status != 302 {
        return answer.refused(&[]);
    }
    assert_own(&world.plain, answer.location());
    if answer.location() == format!("{}/", world.plain.base) {
        Outcome::Refused(302)
    } else {
        Outcome::Accepted
    }
}

/// The address is on our own origin, without credentials.
fn assert_own(edge: &Edge, address: &str) {
    let (own, url) = (Url::parse(&edge.base).unwrap(), Url::parse(address).unwrap());
    let parts = |url: &Url| {
        (
            url.scheme().to_owned(),
            url.host_str().map(str::to_owned),
            url.port(),
        )
    };
    assert_eq!(parts(&url), parts(&own), "{address}");
    assert!(url.username().is_empty() && url.password().is_none(), "{address}");
}
