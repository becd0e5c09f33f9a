//! `receivers`: prints the documents that receivers need to verify our events, for the operator to publish.
//!
//! Invariant: no private key is in the output.

use std::io::Write as _;
use std::process::ExitCode;

use chassis::settings::{Reader, SettingNotice, SettingsError};
use chassis::tool::{Tool, Work};
use clap::{ArgMatches, Command};

use crate::settings::signals;

const KEYS: &str = "keys";
const METADATA: &str = "metadata";

/// The command.
pub(super) struct ReceiversTool;

impl Tool for ReceiversTool {
    fn command(&self) -> Command {
        let metadata = Command::new(METADATA)
            .about("Prints the metadata, to publish at /.well-known/ssf-configuration on the issuer's host");
        let keys =
            Command::new(KEYS).about("Prints the public keys, to publish at jwks.json below the issuer");
        Command::new("receivers")
            .about("Prints the documents that receivers need to verify events")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands([metadata, keys].map(|command| {
                command.after_help(
                    "Reads SESSION_SIGNALS and the signing keys it names. Exit codes: 0 done, 2 wrong usage, 78 wrong settings.",
                )
            }))
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<SettingNotice>), SettingsError> {
        let receivers = signals::read(&mut reader).and_then(|signals| signals.receivers);
        if receivers.is_none() && !reader.is_wrong(signals::SIGNALS) {
            reader.wrong(
                signals::SIGNALS,
                "is required, with a [[receiver]] table: it names the signing keys",
            );
        }
        let (receivers, warnings) = reader.finish(receivers)?;
        let document = receivers.map(|receivers| match given.subcommand_name() {
            Some(KEYS) => receivers.signer.public_jwks(),
            _ => receivers.metadata(),
        });
        let text = format!("{:#}\n", document.unwrap_or_default());
        let work = async move {
            // A closed standard output is not an error.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        };
        Ok((Box::pin(work), warnings))
    }
}
