//! `sessions end`: one by its handle, or all of a person or of a session of the provider.
//!
//! Ending more than one has to be confirmed on a terminal, and by `--yes` elsewhere.

use std::io::{IsTerminal as _, Write as _};

use chassis::settings::Reader;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use serde_json::json;
use session_proto::client::SessionClient;
use session_proto::v1::{Cause, EndSessionRequest, EndSessionsRequest, end_session_request::By};

use super::super::output::{CommandFailure, CommandOutput, Exit};
use super::super::service::ServiceAddress;
use super::{argument, handle_argument, issuer, issuer_argument, list, needed, subject_argument, text};

/// Sessions counted before the confirmation: beyond it the question says "more than".
const COUNTED: usize = 1_000;

pub(super) struct EndCommand {
    which: Which,
    cause: Cause,
    yes: bool,
}

enum Which {
    One {
        handle: String,
    },
    All {
        issuer: Option<String>,
        subject: Option<String>,
        provider_sid: Option<String>,
        except_handle: Option<String>,
    },
}

pub(super) fn command() -> Command {
    Command::new("end")
        .about("Ends a session, or all of a person or of a session of the provider")
        .arg(
            handle_argument("Ends the session of this public name").conflicts_with_all([
                "subject",
                "issuer",
                "provider-sid",
                "except-handle",
            ]),
        )
        .arg(subject_argument())
        .arg(issuer_argument())
        .arg(argument(
            "provider-sid",
            "SID",
            "Ends the sessions that belong to this session of the provider (`sid`)",
        ))
        .arg(argument("except-handle", "HANDLE", "Leaves this session alone"))
        .arg(
            argument("cause", "CAUSE", "Why, for the audit log and for watchers")
                .value_parser(PossibleValuesParser::new(causes().map(|(name, _)| name)))
                .default_value("operator"),
        )
        .arg(
            Arg::new("yes")
                .long("yes")
                .short('y')
                .action(ArgAction::SetTrue)
                .help("Ends more than one session without asking"),
        )
        .group(
            ArgGroup::new("which")
                .args(["handle", "subject", "provider-sid"])
                .required(true)
                .multiple(true),
        )
}

impl EndCommand {
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        let which = match text(given, "handle") {
            Some(handle) => Which::One { handle },
            None => Which::All {
                issuer: issuer(given, reader),
                subject: text(given, "subject"),
                provider_sid: text(given, "provider-sid"),
                except_handle: text(given, "except-handle"),
            },
        };
        Self {
            which,
            cause: text(given, "cause").map_or(Cause::Operator, |given| cause(&given)),
            yes: given.get_flag("yes"),
        }
    }

    pub(super) async fn run(
        self,
        client: &SessionClient,
        address: &ServiceAddress,
    ) -> Result<CommandOutput, CommandFailure> {
        match self.which {
            Which::One { handle } => {
                let request = EndSessionRequest {
                    by: Some(By::Handle(handle)),
                    cause: self.cause.into(),
                    ..EndSessionRequest::default()
                };
                let response = client
                    .end_session(request)
                    .await
                    .map_err(|error| address.failure(&error))?;
                Ok(ended(u32::from(response.ended)))
            }
            Which::All {
                issuer,
                subject,
                provider_sid,
                except_handle,
            } => {
                let request = EndSessionsRequest {
                    issuer: needed(issuer)?,
                    subject: subject.unwrap_or_default(),
                    provider_sid: provider_sid.unwrap_or_default(),
                    except_handle: except_handle.unwrap_or_default(),
                    cause: self.cause.into(),
                    ..EndSessionsRequest::default()
                };
                if !self.yes {
                    consented(client, &request).await?;
                }
                let response = client
                    .end_sessions(request)
                    .await
                    .map_err(|error| address.failure(&error))?;
                Ok(ended(response.ended_count))
            }
        }
    }
}

/// The causes there are, by the names the audit log has for them.
fn causes() -> impl Iterator<Item = (String, Cause)> {
    let said = (1..).map_while(|number| Cause::try_from(number).ok());
    said.map(|cause| {
        let name = cause.as_str_name();
        let word = name.strip_prefix("CAUSE_").unwrap_or(name);
        (word.to_ascii_lowercase(), cause)
    })
}

fn cause(given: &str) -> Cause {
    causes()
        .find(|(name, _)| name == given)
        .map_or(Cause::Other, |(_, cause)| cause)
}

fn ended(count: u32) -> CommandOutput {
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

/// Asks, where more than one session may end.
async fn consented(client: &SessionClient, request: &EndSessionsRequest) -> Result<(), CommandFailure> {
    let count = match counted(client, request).await {
        Some(count) if count <= 1 => return Ok(()),
        Some(count) if count > COUNTED => format!("more than {COUNTED} sessions"),
        Some(count) => format!("{count} sessions"),
        None => "an unknown number of sessions".to_owned(),
    };
    let whose = match (request.subject.as_str(), request.provider_sid.as_str()) {
        (subject, "") => format!("of {subject} at {}", request.issuer),
        ("", sid) => format!("of the provider session {sid} at {}", request.issuer),
        (subject, sid) => format!("of {subject} in the provider session {sid} at {}", request.issuer),
    };
    let what = chassis::terminal::shown(&format!("{count} {whose}"));
    if !std::io::stdin().is_terminal() {
        return Err(CommandFailure::usage(format!(
            "this would end {what}: add --yes to do it without being asked"
        )));
    }
    let mut err = std::io::stderr();
    let _ = write!(err, "End {what}? [y/N] ").and_then(|()| err.flush());
    let mut reply = String::new();
    let read = std::io::stdin().read_line(&mut reply);
    match (read, reply.trim().to_ascii_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        _ => Err(CommandFailure::new(
            "not_confirmed",
            Exit::Failed,
            "nothing was ended",
        )),
    }
}

/// How many sessions would end; `None` if that cannot be counted beforehand.
async fn counted(client: &SessionClient, request: &EndSessionsRequest) -> Option<usize> {
    if request.subject.is_empty() {
        return None;
    }
    let (sessions, more) = list::listed(client, &request.issuer, &request.subject, COUNTED)
        .await
        .ok()?;
    let concerned = sessions.iter().filter(|session| {
        session.handle != request.except_handle
            && (request.provider_sid.is_empty() || session.provider_sid == request.provider_sid)
    });
    let count = concerned.count();
    Some(if more { count.max(COUNTED + 1) } else { count })
}
