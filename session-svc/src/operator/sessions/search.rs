//! `sessions search`: finds sessions of all people of a provider, and with `--end` ends them.
//!
//! The user confirms the end on a terminal; elsewhere it needs `--yes`. The service ends by handle, user, provider
//! session or everyone: after a search by another filter, the tool ends each session that it found.

use chassis::settings::Reader;
use clap::{ArgGroup, ArgMatches, Command, value_parser};
use prost_types::Timestamp;
use session_proto::client::{SessionClient, SessionError};
use session_proto::v1::session_filter::By;
use session_proto::v1::{EndFoundSessionsRequest, Operator, SearchSessionsRequest, Session, SessionFilter};

use super::super::failure::CommandFailure;
use super::super::service::ServiceAddress;
use super::list::{self, PAGE};
use super::{
    CommandOutput, SUBJECT_HELP, argument, check_issuer, end, issuer, issuer_argument, switch, text,
    yes_argument,
};

/// Defines the flags that say which sessions: name, value, filter and meaning.
macro_rules! filters {
    ($($id:literal $value:literal $by:ident $help:expr;)*) => {
        const FILTERS: &[(&str, &str, fn(String) -> By, &str)] = &[$(($id, $value, By::$by, $help)),*];
    };
}

filters! {
    "email" "ADDRESS" Email "Finds sessions with this verified e-mail address";
    "name" "NAME" Name "Finds sessions of users with this whole name";
    "subject" "SUBJECT" Subject SUBJECT_HELP;
    "handle" "HANDLE" Handle "Finds the session with this handle";
    "address" "IP" Address "Finds sessions from this address or network (CIDR)";
    "provider-sid" "SID" ProviderSid "Finds the sessions of this provider session (`sid`)";
}

pub(super) struct SearchCommand {
    operator: Operator,
    filter: SessionFilter,
    limit: usize,
    ends: bool,
    yes: bool,
    message: String,
}

pub(super) fn command() -> Command {
    let filters = FILTERS.iter();
    let filters = filters.map(|(id, value, _, help)| argument(id, value, help));
    let names = FILTERS.iter().map(|(id, ..)| *id).chain(["everyone"]);
    let time = |id, help| argument(id, "TIME", help).value_parser(value_parser!(Timestamp));
    let later = "Only sessions that began then or later (RFC 3339)";
    let before = "Only sessions that began before (RFC 3339)";
    Command::new("search")
        .about("Finds sessions of all people of a provider, or ends them")
        .override_usage("session-svc sessions search [OPTIONS] --purpose <TEXT> <FILTER>")
        .args(filters)
        .arg(switch("everyone", "Finds all sessions of the provider"))
        .arg(issuer_argument())
        .arg(time("created-after", later))
        .arg(time("created-before", before))
        .arg(list::limit_argument())
        .arg(argument("purpose", "TEXT", "Why you search, for the audit log").required(true))
        .arg(switch("end", "Ends the sessions"))
        .arg(argument("message", "TEXT", "What the users read at their next sign-in").requires("end"))
        .arg(yes_argument("Ends them without a confirmation").requires("end"))
        .group(ArgGroup::new("filter").args(names).required(true))
}

impl SearchCommand {
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        let mut filters = FILTERS.iter();
        let by = filters.find_map(|(id, _, by, _)| given.get_one::<String>(id).cloned().map(by));
        Self {
            operator: Operator {
                purpose: text(given, "purpose"),
                ..Operator::default()
            },
            filter: SessionFilter {
                issuer: issuer(given, reader),
                by: Some(by.unwrap_or(By::Everyone(true))),
                created_after: given.get_one::<Timestamp>("created-after").copied(),
                created_before: given.get_one::<Timestamp>("created-before").copied(),
            },
            limit: list::limit(given),
            ends: given.get_flag("end"),
            yes: given.get_flag("yes"),
            message: text(given, "message"),
        }
    }

    pub(super) async fn run(
        self,
        client: &SessionClient,
        address: &ServiceAddress,
    ) -> Result<CommandOutput, CommandFailure> {
        check_issuer(&self.filter.issuer)?;
        let failure = |error: SessionError| address.failure(&error);
        if !self.ends {
            let (sessions, complete) = self.fetch(client).await.map_err(failure)?;
            return Ok(list::output(&sessions, complete));
        }
        let count = match &self.filter.by {
            Some(By::Email(_) | By::Name(_) | By::Address(_)) => {
                let (sessions, _) = self.fetch(client).await.map_err(failure)?;
                self.confirm(&format!("the {} sessions found", sessions.len()))?;
                let mut count = 0;
                for session in sessions {
                    let by = Some(By::Handle(session.handle));
                    count += self.end(client, by).await.map_err(failure)?;
                }
                count
            }
            by => {
                self.confirm("all sessions of this filter")?;
                self.end(client, by.clone()).await.map_err(failure)?
            }
        };
        Ok(end::output(count))
    }

    fn confirm(&self, which: &str) -> Result<(), CommandFailure> {
        match self.yes {
            true => Ok(()),
            false => end::confirm(&format!("{which} at {}", self.filter.issuer)),
        }
    }

    /// Ends sessions until none is left; returns their number.
    async fn end(&self, client: &SessionClient, by: Option<By>) -> Result<u32, SessionError> {
        let request = EndFoundSessionsRequest {
            operator: Some(self.operator.clone()),
            filter: Some(SessionFilter {
                by,
                ..self.filter.clone()
            }),
            except_handle: String::new(),
            message_to_person: self.message.clone(),
        };
        let mut count: u32 = 0;
        loop {
            let answer = client.end_found_sessions(request.clone()).await?;
            count = count.saturating_add(answer.ended_count);
            if answer.complete {
                return Ok(count);
            }
        }
    }

    /// The sessions, at most `limit`, and whether these are all.
    async fn fetch(&self, client: &SessionClient) -> Result<(Vec<Session>, bool), SessionError> {
        list::fetch(self.limit, async |page_token| {
            let request = SearchSessionsRequest {
                operator: Some(self.operator.clone()),
                filter: Some(self.filter.clone()),
                claims: Vec::new(),
                page_size: PAGE,
                page_token,
            };
            let page = client.search_sessions(request).await?;
            Ok((page.sessions, page.next_page_token))
        })
        .await
    }
}
