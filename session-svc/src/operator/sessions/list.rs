//! `sessions list`.

use chassis::settings::Reader;
use clap::{ArgMatches, Command, value_parser};
use serde_json::json;
use session_proto::client::SessionClient;
use session_proto::v1::{ListSessionsRequest, Session};

use super::super::output::{CommandFailure, CommandOutput, Exit};
use super::super::service::ServiceAddress;
use super::super::table;
use super::{issuer, issuer_argument, needed, resource, subject_argument, text};

/// Sessions of one request: the service's largest page.
const PAGE: i32 = 200;

pub(super) struct ListCommand {
    issuer: Option<String>,
    subject: String,
    limit: usize,
}

pub(super) fn command() -> Command {
    Command::new("list")
        .about("Lists the sessions of a person, the newest first")
        .arg(subject_argument().required(true))
        .arg(issuer_argument())
        .arg(
            super::argument("limit", "COUNT", "How many at most")
                .default_value("1000")
                .value_parser(value_parser!(u32)),
        )
}

impl ListCommand {
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        let limit = given.get_one::<u32>("limit").copied().unwrap_or_default();
        Self {
            issuer: issuer(given, reader),
            subject: text(given, "subject").unwrap_or_default(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        }
    }

    pub(super) async fn run(
        self,
        client: &SessionClient,
        address: &ServiceAddress,
    ) -> Result<CommandOutput, CommandFailure> {
        let issuer = needed(self.issuer)?;
        let (mut sessions, more) = listed(client, &issuer, &self.subject, self.limit)
            .await
            .map_err(|error| address.failure(&error))?;
        let complete = !more && sessions.len() <= self.limit;
        sessions.truncate(self.limit);
        let mut lines = match sessions.as_slice() {
            [] => "no sessions\n".to_owned(),
            some => table::columns(
                &resource::HEAD,
                &some.iter().map(resource::row).collect::<Vec<_>>(),
            ),
        };
        if !complete {
            lines.push_str("there are more: raise --limit to see them\n");
        }
        Ok(CommandOutput {
            text: lines,
            json: json!({
                "sessions": sessions.iter().map(resource::summary).collect::<Vec<_>>(),
                "complete": complete,
            }),
            exit: Exit::Done,
        })
    }
}

/// Sessions of a person, at least `limit` if there are as many, and whether there are more.
pub(super) async fn listed(
    client: &SessionClient,
    issuer: &str,
    subject: &str,
    limit: usize,
) -> Result<(Vec<Session>, bool), session_proto::client::SessionError> {
    let (mut sessions, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = client
            .list_sessions(ListSessionsRequest {
                issuer: issuer.to_owned(),
                subject: subject.to_owned(),
                page_size: PAGE,
                page_token,
            })
            .await?;
        sessions.extend(page.sessions);
        page_token = page.next_page_token;
        if page_token.is_empty() || sessions.len() >= limit {
            return Ok((sessions, !page_token.is_empty()));
        }
    }
}
