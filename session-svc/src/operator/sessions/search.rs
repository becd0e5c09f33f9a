//! `sessions search`: finds sessions of all people of a provider, and with `--end` ends them.
//!
//! The user confirms the end on a terminal; elsewhere it needs `--yes`. The service ends by handle, user, provider
//! session or everyone: after a search by another filter, the tool ends each session that it found.

use chassis::settings::Reader;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use prost_types::Timestamp;
use session_proto::client::{SessionClient, SessionError};
use session_proto::v1::session_filter::By;
use session_proto::v1::{EndFoundSessionsRequest, Operator, SearchSessionsRequest, Session, SessionFilter};

use super::super::failure::CommandFailure;
use super::super::service::ServiceAddress;
use super::list::{self, PAGE};
use super::{CommandOutput, argument, check_issuer, end, issuer, issuer_argument, subject_argument, text};

/// The flags that say which sessions.
const FILTERS: [&str; 7] = [
    "email",
    "name",
    "subject",
    "handle",
    "address",
    "provider-sid",
    "everyone",
];

pub(super) struct SearchCommand {
    operator: Operator,
    filter: SessionFilter,
    limit: usize,
    ends: bool,
    yes: bool,
    message: String,
}

pub(super) fn command() -> Command {
    let switch =
        |id: &'static str, help: &'static str| Arg::new(id).long(id).action(ArgAction::SetTrue).help(help);
    let time = |id: &'static str, help: &'static str| {
        argument(id, "TIME", help).value_parser(value_parser!(Timestamp))
    };
    Command::new("search")
        .about("Finds sessions of all people of a provider, or ends them")
        .override_usage("session-svc sessions search [OPTIONS] --purpose <TEXT> <FILTER>")
        .arg(argument(
            "email",
            "ADDRESS",
            "Finds sessions with this verified e-mail address",
        ))
        .arg(argument(
            "name",
            "NAME",
            "Finds sessions of users with this whole name",
        ))
        .arg(subject_argument())
        .arg(argument("handle", "HANDLE", "Finds the session with this handle"))
        .arg(argument(
            "address",
            "IP",
            "Finds sessions from this address or network (CIDR)",
        ))
        .arg(argument(
            "provider-sid",
            "SID",
            "Finds the sessions of this provider session (`sid`)",
        ))
        .arg(switch("everyone", "Finds all sessions of the provider"))
        .arg(issuer_argument())
        .arg(time(
            "created-after",
            "Only sessions that began then or later (RFC 3339)",
        ))
        .arg(time(
            "created-before",
            "Only sessions that began before (RFC 3339)",
        ))
        .arg(list::limit_argument())
        .arg(argument("purpose", "TEXT", "Why you search, for the audit log").required(true))
        .arg(switch("end", "Ends the sessions"))
        .arg(argument("message", "TEXT", "What the users read at their next sign-in").requires("end"))
        .arg(
            switch("yes", "Ends them without a confirmation")
                .short('y')
                .requires("end"),
        )
        .group(ArgGroup::new("filter").args(FILTERS).required(true))
}

impl SearchCommand {
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        let of = |id: &str| given.get_one::<String>(id).cloned();
        let by = [
            of("email").map(By::Email),
            of("name").map(By::Name),
            of("subject").map(By::Subject),
            of("handle").map(By::Handle),
            of("address").map(By::Address),
            of("provider-sid").map(By::ProviderSid),
        ];
        let by = by.into_iter().flatten().next();
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
