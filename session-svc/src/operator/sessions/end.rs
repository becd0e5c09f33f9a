//! `sessions end`: ends one session by its handle, or all sessions of a user or of a provider session.
//!
//! The user confirms the end of all sessions on a terminal; elsewhere it needs `--yes`.

use std::io::{IsTerminal as _, Write as _};

use chassis::settings::Reader;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, ArgMatches, Command};
use serde_json::json;
use session_proto::client::SessionClient;
use session_proto::v1::{Cause, EndSessionRequest, EndSessionsRequest, end_session_request::By};

use super::super::failure::{CommandFailure, Exit};
use super::super::service::ServiceAddress;
use super::{
    CommandOutput, argument, check_issuer, issuer, issuer_argument, subject_argument, text, yes_argument,
};

pub(super) struct EndCommand {
    /// Empty to end all sessions that `all` names.
    handle: String,
    all: EndSessionsRequest,
    yes: bool,
}

pub(super) fn command() -> Command {
    let which = ArgGroup::new("which").args(["handle", "subject", "provider-sid"]);
    let of_several = ["subject", "issuer", "provider-sid", "except-handle"];
    Command::new("end")
        .about("Ends one session, or all sessions of a user or of a provider session")
        .override_usage("session-svc sessions end [OPTIONS] <--handle|--subject|--provider-sid>")
        .arg(argument("handle", "HANDLE", "Ends the session with this handle").conflicts_with_all(of_several))
        .arg(subject_argument())
        .arg(issuer_argument())
        .arg(argument(
            "provider-sid",
            "SID",
            "Ends the sessions of this provider session (`sid`)",
        ))
        .arg(argument("except-handle", "HANDLE", "Does not end this session"))
        .arg(
            argument("cause", "CAUSE", "Reason, for the audit log and watchers")
                .value_parser(PossibleValuesParser::new(causes().map(|(name, _)| name)))
                .default_value("operator"),
        )
        .arg(yes_argument("Ends all without a confirmation"))
        .group(which.required(true).multiple(true))
}

impl EndCommand {
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        let cause = text(given, "cause");
        let cause = causes().find(|(name, _)| *name == cause);
        Self {
            handle: text(given, "handle"),
            all: EndSessionsRequest {
                issuer: issuer(given, reader),
                subject: text(given, "subject"),
                provider_sid: text(given, "provider-sid"),
                except_handle: text(given, "except-handle"),
                cause: cause.map_or(Cause::Operator, |(_, cause)| cause).into(),
                ..EndSessionsRequest::default()
            },
            yes: given.get_flag("yes"),
        }
    }

    pub(super) async fn run(
        self,
        client: &SessionClient,
        address: &ServiceAddress,
    ) -> Result<CommandOutput, CommandFailure> {
        let count = if self.handle.is_empty() {
            check_issuer(&self.all.issuer)?;
            if !self.yes {
                confirm(&description(&self.all))?;
            }
            client
                .end_sessions(self.all)
                .await
                .map(|response| response.ended_count)
        } else {
            let request = EndSessionRequest {
                by: Some(By::Handle(self.handle)),
                cause: self.all.cause,
                ..EndSessionRequest::default()
            };
            client
                .end_session(request)
                .await
                .map(|response| u32::from(response.ended))
        };
        let count = count.map_err(|error| address.failure(&error))?;
        Ok(output(count))
    }
}

/// The answer after this number of endings.
pub(super) fn output(count: u32) -> CommandOutput {
    let (text, exit) = match count {
        0 => ("there was no such session to end\n".to_owned(), Exit::NotFound),
        1 => ("ended 1 session\n".to_owned(), Exit::Done),
        count => (format!("ended {count} sessions\n"), Exit::Done),
    };
    CommandOutput {
        text,
        json: json!({ "ended_count": count }),
        exit,
    }
}

/// The causes, by their names in the audit log.
fn causes() -> impl Iterator<Item = (String, Cause)> {
    let all = (1..).map_while(|number| Cause::try_from(number).ok());
    all.map(|cause| {
        let name = cause.as_str_name();
        let word = name.strip_prefix("CAUSE_").unwrap_or(name);
        (word.to_ascii_lowercase(), cause)
    })
}

/// All sessions that the flags name, in words.
fn description(all: &EndSessionsRequest) -> String {
    let which = match (all.subject.as_str(), all.provider_sid.as_str()) {
        (subject, "") => format!("of {subject} at {}", all.issuer),
        ("", sid) => format!("of the provider session {sid} at {}", all.issuer),
        (subject, sid) => format!("of {subject} in the provider session {sid} at {}", all.issuer),
    };
    format!("all sessions {which}")
}

/// Asks for confirmation to end these sessions.
pub(super) fn confirm(what: &str) -> Result<(), CommandFailure> {
    let what = chassis::terminal::escape_controls(what);
    if !std::io::stdin().is_terminal() {
        return Err(CommandFailure::usage(format!(
            "this would end {what}: add --yes to confirm"
        )));
    }
    let mut err = std::io::stderr();
    let _ = write!(err, "End {what}? [y/N] ").and_then(|()| err.flush());
    let mut reply = String::new();
    let read = std::io::stdin().read_line(&mut reply);
    match (read, reply.trim().to_ascii_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        _ => Err(CommandFailure {
            reason: "not_confirmed".to_owned(),
            text: "no session was ended".to_owned(),
            exit: Exit::Failed,
        }),
    }
}
