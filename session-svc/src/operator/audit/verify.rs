//! `audit verify`: are the chains in these files whole, in order and unchanged?

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::sync::Arc;

use chassis::audit_log::verify::{
    ChainSummary, Expectations, Finding, Place, Position, Verification, Verified,
};
use chassis::audit_log::{self};
use chassis::settings::Reader;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use serde_json::{Value, json};

use super::super::output::{CommandFailure, CommandOutput, Exit};
use super::super::table;

/// Longest line that is read, in bytes: a record is far shorter, and what is no log may have no line end at all.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Findings shown to people; programs get all.
const SHOWN_MAX: usize = 100;

pub(super) struct VerifyCommand {
    files: Vec<String>,
    expected: Expectations,
}

pub(super) fn command() -> Command {
    let flag =
        |id: &'static str, help: &'static str| Arg::new(id).long(id).action(ArgAction::SetTrue).help(help);
    Command::new("verify")
        .about("Verifies the chains of audit records: finds what was removed, changed, put in or put elsewhere")
        .arg(
            Arg::new("files")
                .value_name("FILE")
                .required(true)
                .num_args(1..)
                .value_hint(ValueHint::FilePath)
                .help("Files of records, the older before the newer; - is standard input. Other lines among them are passed over"),
        )
        .arg(flag("collected", "Lines are as a collector delivers them: in any order, some twice"))
        .arg(flag("partial", "The files are a part: chains may begin before them"))
        .arg(
            Arg::new("anchor")
                .long("anchor")
                .value_name("POSITION")
                .action(ArgAction::Append)
                .value_parser(value_parser!(Position))
                .help("A record known from elsewhere that has to be there, or just before: INSTANCE:SEQUENCE:HASH, as this command and the services' logs print it"),
        )
        .after_help(
            "With AUDIT_KEY the chains have to be made with one of its keys. \
             Exit codes: 0 sound, 1 something is missing or changed, or a file cannot be read, 2 used wrongly, 78 wrong settings.",
        )
}

impl VerifyCommand {
    pub(super) fn read(given: &ArgMatches, reader: &mut Reader<'_>) -> Self {
        let all = |name: &str| given.get_many::<String>(name).unwrap_or_default().cloned();
        Self {
            files: all("files").collect(),
            expected: Expectations {
                keys: audit_log::chain_keys(reader),
                is_collected: given.get_flag("collected"),
                is_partial: given.get_flag("partial"),
                anchors: given
                    .get_many::<Position>("anchor")
                    .unwrap_or_default()
                    .cloned()
                    .collect(),
            },
        }
    }

    pub(super) async fn run(self) -> Result<CommandOutput, CommandFailure> {
        let verifying = tokio::task::spawn_blocking(move || {
            let mut verification = Verification::new(self.expected);
            for file in &self.files {
                read(file, &mut verification).map_err(|error| unreadable(file, &error))?;
            }
            Ok(verification.judged())
        });
        match verifying.await {
            Ok(verified) => verified.map(|verified| output(&verified)),
            Err(stopped) => Err(CommandFailure::new("runtime", Exit::Failed, stopped.to_string())),
        }
    }
}

fn unreadable(file: &str, error: &io::Error) -> CommandFailure {
    CommandFailure::new(
        "unreadable",
        Exit::Failed,
        format!("{file} cannot be read: {error}"),
    )
}

fn read(name: &str, verification: &mut Verification) -> io::Result<()> {
    let mut lines: Box<dyn BufRead> = match name {
        STANDARD_INPUT => Box::new(io::stdin().lock()),
        path => Box::new(BufReader::new(File::open(path)?)),
    };
    let mut place = Place {
        file: Arc::from(name),
        line: 0,
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        place.line += 1;
        verification.read(&place, &String::from_utf8_lossy(&line));
    }
}

fn output(verified: &Verified) -> CommandOutput {
    let is_sound = verified.is_sound() && !verified.chains.is_empty();
    CommandOutput {
        text: text(verified, is_sound),
        json: json!({
            "sound": is_sound,
            "records": records(verified),
            "other_lines": verified.others,
            "chains": verified.chains.iter().map(chain).collect::<Vec<_>>(),
            "findings": verified.findings.iter().map(finding).collect::<Vec<_>>(),
        }),
        exit: if is_sound { Exit::Done } else { Exit::Failed },
    }
}

fn records(verified: &Verified) -> u64 {
    verified.chains.iter().map(|chain| chain.records).sum()
}

fn text(verified: &Verified, is_sound: bool) -> String {
    let rows: Vec<Vec<String>> = verified.chains.iter().map(row).collect();
    let mut text = match rows.is_empty() {
        true => String::new(),
        false => table::columns(
            &[
                "SERVICE",
                "RECORDS",
                "FROM",
                "TO",
                "LAST AT",
                "END",
                "LAST POSITION",
            ],
            &rows,
        ),
    };
    for finding in verified.findings.iter().take(SHOWN_MAX) {
        let kind = if finding.problem.is_amiss() {
            "problem"
        } else {
            "note"
        };
        let place = finding.place.as_ref().map(|place| format!("{place}: "));
        let line = format!("{kind}: {}{}", place.unwrap_or_default(), finding.problem);
        text.push_str(&chassis::terminal::shown(&line));
        text.push('\n');
    }
    let more = verified.findings.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        text.push_str(&format!("and {more} more; --json has all\n"));
    }
    let amiss = verified
        .findings
        .iter()
        .filter(|finding| finding.problem.is_amiss())
        .count();
    let (records, chains) = (records(verified), verified.chains.len());
    text.push_str(&match (is_sound, chains) {
        (true, _) => format!("sound: {records} records in {chains} chains\n"),
        (false, 0) => "there are no audit records in these files\n".to_owned(),
        (false, _) => format!("not sound: {amiss} problems in {records} records of {chains} chains\n"),
    });
    text
}

fn row(chain: &ChainSummary) -> Vec<String> {
    vec![
        chain.service.clone(),
        chain.records.to_string(),
        chain.first.to_string(),
        chain.last.sequence.to_string(),
        chain.last_at.clone(),
        if chain.is_closed { "closed" } else { "open" }.to_owned(),
        chain.last.to_string(),
    ]
}

fn chain(chain: &ChainSummary) -> Value {
    json!({
        "service": chain.service,
        "instance": chain.last.instance,
        "records": chain.records,
        "first": chain.first,
        "last": chain.last.sequence,
        "last_at": chain.last_at,
        "closed": chain.is_closed,
        "position": chain.last.to_string(),
    })
}

fn finding(finding: &Finding) -> Value {
    let place = finding.place.as_ref();
    json!({
        "finding": finding.problem.name(),
        "amiss": finding.problem.is_amiss(),
        "file": place.map(|place| place.file.to_string()),
        "line": place.map(|place| place.line),
        "text": finding.problem.to_string(),
    })
}
