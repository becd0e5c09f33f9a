//! A session as the tool shows it.

use prost_types::Timestamp;
use serde_json::{Value, json};
use session_proto::timestamp::{from_ms, to_ms};
use session_proto::v1::session::State;
use session_proto::v1::{Device, Session};

use crate::operator::table;

/// Characters of a browser's name in a table.
const BROWSER: usize = 60;

/// The columns of a list.
pub(super) const HEAD: [&str; 6] = ["HANDLE", "STATE", "CREATED", "LAST SEEN", "EXPIRES", "BROWSER"];

/// A session without what the provider or others say about the person.
pub(super) fn summary(session: &Session) -> Value {
    json!({
        "handle": session.handle,
        "issuer": session.issuer,
        "subject": session.subject,
        "state": state(session),
        "provider_sid": said(&session.provider_sid),
        "scope": session.scope,
        "access_token_expires_at": at(session.access_token_expires_at.as_ref()),
        "has_refresh_token": session.has_refresh_token,
        "authenticated_at": at(session.authenticated_at.as_ref()),
        "created_at": at(session.created_at.as_ref()),
        "rolled_at": at(session.rolled_at.as_ref()),
        "expires_at": at(session.expires_at.as_ref()),
        "absolute_expires_at": at(session.absolute_expires_at.as_ref()),
        "created_on": session.created_on.as_ref().map(device),
        "last_seen_on": session.last_seen_on.as_ref().map(device),
        "version": session.version,
    })
}

/// A session with everything but tokens.
pub(super) fn whole(session: &Session) -> Value {
    let mut whole = summary(session);
    whole["user"] = read(&session.user);
    whole["attributes"] = read(&session.attributes);
    whole
}

/// A line of a list.
pub(super) fn row(session: &Session) -> Vec<String> {
    let seen = session.last_seen_on.clone().unwrap_or_default();
    let browser = [seen.address.as_str(), seen.user_agent.as_str()];
    let browser = browser
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    vec![
        session.handle.clone(),
        state(session).to_owned(),
        to_the_second(session.created_at.as_ref()),
        to_the_second(seen.at.as_ref()),
        to_the_second(session.expires_at.as_ref()),
        table::shortened(&browser, BROWSER),
    ]
}

/// All about a session, a line each.
pub(super) fn lines(session: &Session) -> String {
    let seen = |device: Option<&Device>| {
        let device = device.cloned().unwrap_or_default();
        let parts = [
            to_the_second(device.at.as_ref()),
            device.address,
            device.user_agent,
        ];
        parts.join(" ").trim_end().to_owned()
    };
    let refresh = if session.has_refresh_token { "yes" } else { "no" };
    table::facts(&[
        ("handle", session.handle.clone()),
        ("state", state(session).to_owned()),
        ("issuer", session.issuer.clone()),
        ("subject", session.subject.clone()),
        ("provider sid", session.provider_sid.clone()),
        ("authenticated", to_the_second(session.authenticated_at.as_ref())),
        ("created", seen(session.created_on.as_ref())),
        ("last seen", seen(session.last_seen_on.as_ref())),
        ("rolled", to_the_second(session.rolled_at.as_ref())),
        ("expires unused", to_the_second(session.expires_at.as_ref())),
        (
            "expires at last",
            to_the_second(session.absolute_expires_at.as_ref()),
        ),
        ("scope", session.scope.clone()),
        (
            "token expires",
            to_the_second(session.access_token_expires_at.as_ref()),
        ),
        ("refresh token", refresh.to_owned()),
        ("version", session.version.to_string()),
        ("user", session.user.clone()),
        ("attributes", session.attributes.clone()),
    ])
}

/// Claims as JSON; none of a session that cannot be read.
fn read(claims: &str) -> Value {
    serde_json::from_str(claims).unwrap_or_default()
}

fn device(device: &Device) -> Value {
    json!({
        "user_agent": device.user_agent,
        "address": said(&device.address),
        "at": at(device.at.as_ref()),
    })
}

fn state(session: &Session) -> &'static str {
    match session.state() {
        State::Active => "active",
        State::NeedsSignIn => "needs_sign_in",
        State::Unreadable => "unreadable",
        State::Unspecified => "unknown",
    }
}

fn said(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// RFC 3339 to the millisecond, for programs.
fn at(time: Option<&Timestamp>) -> Option<String> {
    time.map(ToString::to_string)
}

/// RFC 3339 to the second, for people.
fn to_the_second(time: Option<&Timestamp>) -> String {
    time.map(|time| from_ms(to_ms(time) / 1_000 * 1_000).to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        let time = from_ms(1_700_000_000_123);
        assert_eq!(at(Some(&time)).unwrap(), "2023-11-14T22:13:20.123Z");
        assert_eq!(to_the_second(Some(&time)), "2023-11-14T22:13:20Z");
        assert_eq!(at(None), None);
    }
}
