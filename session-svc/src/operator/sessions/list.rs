//! `sessions list`: a table for people, a document for programs.

use chassis::settings::Reader;
use chassis::terminal::escape_controls;
use clap::{Arg, ArgMatches, Command, value_parser};
use prost_types::Timestamp;
use serde_json::{Value, json};
use session_proto::client::{SessionClient, SessionError};
use session_proto::timestamp::{from_ms, to_ms};
use session_proto::v1::session::State;
use session_proto::v1::{Device, ListSessionsRequest, Session};

use super::super::failure::{CommandFailure, Exit};
use super::super::service::ServiceAddress;
use super::{CommandOutput, check_issuer, issuer, issuer_argument, subject_argument, text};

/// Sessions per request: the service's largest page.
pub(super) const PAGE: i32 = 200;

/// Most characters of a browser's name in a table.
const BROWSER: usize = 60;

/// The columns of the table.
const HEAD: [&str; 6] = ["HANDLE", "STATE", "CREATED", "LAST SEEN", "EXPIRES", "BROWSER"];

pub(super) struct ListCommand {
    issuer: String,
    subject: String,
    limit: usize,
}

pub(super) fn command() -> Command {
    Command::new("list")
        .about("Lists the sessions of a user, the newest first")
        .arg(subject_argument().required(true))
        .arg(issuer_argument())
        .arg(limit_argument())
}

pub(super) fn limit_argument() -> Arg {
    super::argument("limit", "COUNT", "The largest number of sessions to list")
        .default_value("1000")
        .value_parser(value_parser!(u32))
}

pub(super) fn limit(given: &ArgMatches) -> usize {
    let limit = given.get_one::<u32>("limit").copied().unwrap_or_default();
    usize::try_from(limit).unwrap_or(usize::MAX)
}

impl ListCommand {
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        Self {
            issuer: issuer(given, reader),
            subject: text(given, "subject"),
            limit: limit(given),
        }
    }

    pub(super) async fn run(
        self,
        client: &SessionClient,
        address: &ServiceAddress,
    ) -> Result<CommandOutput, CommandFailure> {
        check_issuer(&self.issuer)?;
        let page = async |page_token| {
            let request = ListSessionsRequest {
                issuer: self.issuer.clone(),
                subject: self.subject.clone(),
                page_size: PAGE,
                page_token,
            };
            let page = client.list_sessions(request).await?;
            Ok((page.sessions, page.next_page_token))
        };
        let found = fetch(self.limit, page).await;
        let (sessions, complete) = found.map_err(|error| address.failure(&error))?;
        Ok(output(&sessions, complete))
    }
}

/// The sessions of all pages, at most `limit`, and whether these are all.
pub(super) async fn fetch(
    limit: usize,
    page: impl AsyncFn(String) -> Result<(Vec<Session>, String), SessionError>,
) -> Result<(Vec<Session>, bool), SessionError> {
    let (mut sessions, mut page_token) = (Vec::new(), String::new());
    loop {
        let (found, next) = page(page_token).await?;
        sessions.extend(found);
        page_token = next;
        if page_token.is_empty() || sessions.len() >= limit {
            let complete = page_token.is_empty() && sessions.len() <= limit;
            sessions.truncate(limit);
            return Ok((sessions, complete));
        }
    }
}

pub(super) fn output(sessions: &[Session], complete: bool) -> CommandOutput {
    let mut text = match sessions {
        [] => "no sessions\n".to_owned(),
        some => table(some.iter().map(row)),
    };
    if !complete {
        text.push_str("there are more: raise --limit to see them\n");
    }
    let sessions: Vec<Value> = sessions.iter().map(document).collect();
    CommandOutput {
        text,
        json: json!({ "sessions": sessions, "complete": complete }),
        exit: Exit::Done,
    }
}

/// The session as JSON, without claims and attributes.
fn document(session: &Session) -> Value {
    json!({
        "handle": session.handle,
        "issuer": session.issuer,
        "subject": session.subject,
        "state": state(session),
        "provider_sid": non_empty(&session.provider_sid),
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

fn device(device: &Device) -> Value {
    json!({
        "user_agent": device.user_agent,
        "address": non_empty(&device.address),
        "at": at(device.at.as_ref()),
    })
}

fn row(session: &Session) -> [String; 6] {
    let seen = session.last_seen_on.clone().unwrap_or_default();
    let browser = format!("{} {}", seen.address, seen.user_agent);
    [
        session.handle.clone(),
        state(session).to_owned(),
        to_the_second(session.created_at.as_ref()),
        to_the_second(seen.at.as_ref()),
        to_the_second(session.expires_at.as_ref()),
        browser.trim().chars().take(BROWSER).collect(),
    ]
}

/// Lines of aligned columns. Control and direction characters become `·`, to protect the terminal.
fn table(rows: impl Iterator<Item = [String; 6]>) -> String {
    let rows: Vec<[String; 6]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(rows)
        .map(|row| row.map(|cell| escape_controls(&cell)))
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells.map(|(cell, &width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn state(session: &Session) -> &'static str {
    match session.state() {
        State::Active => "active",
        State::NeedsSignIn => "needs_sign_in",
        State::Unreadable => "unreadable",
        State::Unspecified => "unknown",
    }
}

fn non_empty(text: &str) -> Option<&str> {
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

    #[test]
    fn columns_are_aligned_by_characters_and_a_text_cannot_steer_the_terminal() {
        let session = Session {
            handle: "ü".to_owned(),
            last_seen_on: Some(Device {
                user_agent: "a\x1b[2Jb\u{202e}c\nd".to_owned(),
                ..Device::default()
            }),
            ..Session::default()
        };
        let text = table([row(&session)].into_iter());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[1].ends_with("a·[2Jb·c·d"), "{text}");
        let column = |line: &str, text: &str| line[..line.find(text).unwrap()].chars().count();
        assert_eq!(column(lines[0], "STATE"), column(lines[1], "unknown"), "{text}");
    }
}
