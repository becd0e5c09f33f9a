//! `audit subject`: how a person's subject stands in audit records, to search for it.

use chassis::audit::SubjectForm;
use chassis::audit_log;
use chassis::settings::Reader;
use clap::{Arg, ArgMatches, Command};
use serde_json::json;

use super::super::output::{CommandOutput, Exit};

pub(super) struct SubjectCommand {
    issuer: String,
    subject: String,
    form: SubjectForm,
}

pub(super) fn command() -> Command {
    Command::new("subject")
        .about(
            "Prints how a person's subject stands in audit records, by AUDIT_SUBJECT and AUDIT_SUBJECT_KEY",
        )
        .arg(
            Arg::new("subject")
                .value_name("SUBJECT")
                .required(true)
                .help("The person, as the provider names them"),
        )
        .arg(
            Arg::new("issuer")
                .long("issuer")
                .value_name("ISSUER")
                .help("Issuer identifier of their provider [default: OIDC_ISSUER_URL]"),
        )
        .after_help("Exit codes: 0 done, 2 used wrongly, 78 wrong settings.")
}

impl SubjectCommand {
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        let text = |name: &str| given.get_one::<String>(name).cloned();
        Self {
            issuer: text("issuer").unwrap_or_else(|| reader.required_text("OIDC_ISSUER_URL")),
            subject: text("subject").unwrap_or_default(),
            form: audit_log::subject_form(reader),
        }
    }

    pub(super) fn run(self) -> CommandOutput {
        let shown = self.form.shown(&self.issuer, &self.subject);
        CommandOutput {
            text: format!("{shown}\n"),
            json: json!({ "actor.issuer": self.issuer, "actor.subject": shown }),
            exit: Exit::Done,
        }
    }
}
