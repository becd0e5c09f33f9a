//! `check-store`: can the store be reached, may the service do there what it needs, are the servers set up to keep sessions?

use chassis::clock::{Clock as _, SystemClock};
use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgMatches, Command};

use super::memory_size;
use super::output::{self, CommandFailure, CommandOutput};
use super::store_access::{self, StoreAccess};
use super::store_report::{Check, answered};
use crate::store::SessionStore;
use crate::store::fact::Assessment;

/// A clock this far from the store's is worth a look: replicas may be as far apart from each other.
const CLOCK_WARNING_MS: u64 = 1_000;

/// The command.
pub(super) struct CheckStoreTool;

impl Tool for CheckStoreTool {
    fn command(&self) -> Command {
        Command::new("check-store")
            .about("Checks the store: that it can be reached, that its rights are enough, and how its servers are set up")
            .arg(output::json_flag())
            .arg(
                Arg::new("server-memory")
                    .long("server-memory")
                    .env("OPERATOR_SERVER_MEMORY")
                    .hide_env_values(true)
                    .value_name("MEMORY")
                    .value_parser(memory_size::parse)
                    .help("How much each server of the store may take, if that is less than its machine has: the memory limit of its container (512Mi, or bytes), which it does not tell"),
            )
            .after_help(
                "Writes a record of its own and removes it. A file has to be free: stop its service first. \
                 Exit codes: 0 healthy, 1 there is a problem, 2 used wrongly, 78 wrong settings.",
            )
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let json = output::wants_json(given);
        let server_memory = given.get_one::<u64>("server-memory").copied();
        let access = StoreAccess::read(&mut reader);
        let (access, warnings) = reader.finish(access)?;
        let work = async move {
            let checked = checked(&access, server_memory);
            output::conclude(json, output::unless_stopped(checked).await)
        };
        Ok((Box::pin(work), warnings))
    }
}

async fn checked(access: &StoreAccess, server_memory: Option<u64>) -> Result<CommandOutput, CommandFailure> {
    let store = access.open().await?;
    let rights = store_access::try_rights(&*store).await;
    let acknowledged = store.confirm_removed(&[]).await;
    let mut checks = vec![
        Check::new("reachable", access.kind(), Assessment::Fine),
        tried(
            "rights",
            rights.err(),
            "the service cannot work with a store that refuses this",
        ),
        tried(
            "acknowledge",
            acknowledged.err().map(|error| output::chain(&error)),
            "sign-outs fail: SESSION_ENDING_REPLICAS needs the right +wait and as many replicas near their master",
        ),
        clock(&*store),
    ];
    checks.extend(engine_checks(&*store, server_memory).await);
    Ok(answered(access.kind(), &checks))
}

fn tried(name: &'static str, failed: Option<String>, advice: &'static str) -> Check {
    match failed {
        None => Check::new(name, "works", Assessment::Fine),
        Some(why) => Check::new(name, why, Assessment::Problem(advice)),
    }
}

fn clock(store: &dyn SessionStore) -> Check {
    let (ours, stores) = (SystemClock.now_ms(), store.now_ms());
    let standing = if ours.abs_diff(stores) > CLOCK_WARNING_MS {
        Assessment::Warning("this machine's clock is off the store's, which decides: check NTP")
    } else {
        Assessment::Fine
    };
    let sign = if stores < ours { "-" } else { "" };
    Check::new(
        "clock_offset",
        format!("{sign}{} ms", ours.abs_diff(stores)),
        standing,
    )
}

async fn engine_checks(store: &dyn SessionStore, server_memory: Option<u64>) -> Vec<Check> {
    match store.facts(server_memory).await {
        Ok(facts) => facts
            .into_iter()
            .map(|fact| Check::new(fact.name, fact.value, fact.standing))
            .collect(),
        Err(error) => vec![Check::new(
            "engine",
            output::chain(&error),
            Assessment::Warning(
                "how the servers are set up, and what a restart of them would lose, could not be asked: allow +info, +config|get, +acl|dryrun, +cluster|info and +cluster|slots",
            ),
        )],
    }
}
