//! `check-store`: is the store fit to keep sessions, and can everything in it be read?

use chassis::clock::{Clock as _, SystemClock};
use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgMatches, Command, value_parser};

use super::census::{self, Census};
use super::memory_size;
use super::output::{self, CommandFailure, CommandOutput};
use super::round_trip;
use super::store_access::{self, OpenedStore, StoreAccess};
use super::store_report::{Check, answered};
use crate::store::inspect::{Assessment, Fact};
use crate::store::redis::lacks_right;

/// A clock this far from the store's is worth a look: replicas may be as far apart from each other.
const CLOCK_WARNING_MS: u64 = 1_000;

/// The command.
pub(super) struct CheckStoreTool;

impl Tool for CheckStoreTool {
    fn command(&self) -> Command {
        Command::new("check-store")
            .about("Checks the store: that it works, how it is set up, and that all it holds can be read")
            .arg(output::json_flag())
            .arg(
                Arg::new("limit")
                    .long("limit")
                    .value_name("COUNT")
                    .default_value("1000000")
                    .value_parser(value_parser!(u64))
                    .help("How many records are looked at, at most; 0 for all"),
            )
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
        let limit = given.get_one::<u64>("limit").copied().unwrap_or_default();
        let server_memory = given.get_one::<u64>("server-memory").copied();
        let access = StoreAccess::read(&mut reader);
        let (access, warnings) = reader.finish(access)?;
        let work = async move {
            let checked = checked(&access, limit, server_memory);
            output::conclude(json, output::unless_stopped(checked).await)
        };
        Ok((Box::pin(work), warnings))
    }
}

async fn checked(
    access: &StoreAccess,
    limit: u64,
    server_memory: Option<u64>,
) -> Result<CommandOutput, CommandFailure> {
    let opened = access.open().await?;
    let mut checks = vec![Check::new("reachable", access.kind(), Assessment::Fine)];
    checks.extend(round_trip::made(&opened).await.into_iter().map(stepped));
    checks.push(clock(&opened));
    checks.extend(engine_checks(&opened, server_memory).await);
    let census = match census::count_entries(&opened, limit).await {
        Ok(census) => {
            checks.extend(counted(&census, &opened));
            census
        }
        // What was found of the servers is worth more than nothing.
        Err(error) if lacks_right(&error) => {
            let advice =
                "what is stored was not looked at: allow +scan and +zscore besides what the service may";
            checks.push(Check::new(
                "records",
                output::chain(&error),
                Assessment::Unknown(advice),
            ));
            Census::default()
        }
        Err(error) => return Err(store_access::unavailable(&error)),
    };
    Ok(answered(access.kind(), &checks, &census, &opened))
}

fn stepped(step: round_trip::Step) -> Check {
    let took = format!("{:.1} ms", step.took.as_secs_f64() * 1_000.0);
    match step.failed {
        None => Check::new(step.name, took, Assessment::Fine),
        Some(why) => {
            let advice = match step.name {
                round_trip::ACKNOWLEDGE => {
                    "sign-outs fail: SESSION_ENDING_REPLICAS needs the right +wait and as many replicas near their master"
                }
                _ => "the service cannot work with a store that refuses this",
            };
            Check::new(step.name, why, Assessment::Problem(advice))
        }
    }
}

fn clock(opened: &OpenedStore) -> Check {
    let (ours, stores) = (SystemClock.now_ms(), opened.store.now_ms());
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

async fn engine_checks(opened: &OpenedStore, server_memory: Option<u64>) -> Vec<Check> {
    match opened.store.facts(server_memory).await {
        Ok(facts) => facts
            .into_iter()
            .map(
                |Fact {
                     name,
                     value,
                     standing,
                 }| Check::new(name, value, standing),
            )
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

fn counted(census: &Census, opened: &OpenedStore) -> Vec<Check> {
    let judged = |count: u64, standing: Assessment| if count == 0 { Assessment::Fine } else { standing };
    let older = opened.vault.key_ids().into_iter().skip(1);
    let older: u64 = older.filter_map(|key| census.sealed_by.get(&key)).sum();
    let mut checks = vec![
        Check::new("sealed_by_older_keys", older.to_string(), Assessment::Fine),
        Check::new(
            "unreadable_unknown_key",
            census.unknown_key.to_string(),
            judged(
                census.unknown_key,
                Assessment::Problem(
                    "put the key that sealed them back into SESSION_ENCRYPTION_KEY; it was removed too early",
                ),
            ),
        ),
        Check::new(
            "unreadable_newer_format",
            census.newer_format.to_string(),
            judged(
                census.newer_format,
                Assessment::Problem("a newer release wrote them: check with that release"),
            ),
        ),
        Check::new(
            "unreadable_corrupt",
            census.corrupt.to_string(),
            judged(
                census.corrupt,
                Assessment::Problem("they were changed or cut; they go away when they expire"),
            ),
        ),
        Check::new(
            "foreign",
            census.foreign.to_string(),
            judged(
                census.foreign,
                Assessment::Problem(
                    "another program writes where sessions are kept: give it, or SESSION_STORE, a prefix of its own",
                ),
            ),
        ),
        Check::new(
            "index_entries_without_record",
            census.without_record.to_string(),
            judged(
                census.without_record,
                Assessment::Warning(
                    "records went without their entries, as by eviction or by hand; nothing is listed by them",
                ),
            ),
        ),
    ];
    if !census.complete {
        let seen = format!("the first {}", census.examined());
        checks.push(Check::new(
            "sampled",
            seen,
            Assessment::Warning("not everything was looked at: raise --limit, 0 is no limit"),
        ));
    }
    checks
}
