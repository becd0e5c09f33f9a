//! `rekey`: seals everything an older key of the ring sealed with the first one, while services go on working.
//!
//! Invariants
//! - Nothing is written over a session that changed or ended since it was read; version and expiry stay, so that no
//!   caller notices.
//! - It ends well only after a walk that found nothing left to do: then the older keys may be removed.
//! - It may be stopped at any time and run again: what is sealed with the first key is passed over.

use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::json;

use super::output::{self, CommandFailure, CommandOutput, Exit, chain};
use super::progress::BulkProgress;
use super::store_access::{OpenedStore, StoreAccess};
use super::{sealed, table};
use crate::store::inspect::{FoundItem, KeySpace, Sealed};
use crate::store::{Replaced, StoreError};
use crate::vault::Vault;

/// Entries read at once.
const PAGE: usize = 256;

/// Writes in flight at a time: enough to hide the round trips, few enough to leave the store to its services.
const AT_ONCE: usize = 16;

/// Walks over everything. The first does the work, the second sees that nothing was left; more are needed only when
/// sessions changed in between, or when a service still seals with an older key.
const WALKS: usize = 4;

/// The command.
pub(super) struct RekeyTool;

impl Tool for RekeyTool {
    fn command(&self) -> Command {
        Command::new("rekey")
            .about("Seals every session with the first key of SESSION_ENCRYPTION_KEY, so that older keys can be removed")
            .arg(output::json_flag())
            .arg(
                Arg::new("dry-run")
                    .long("dry-run")
                    .action(ArgAction::SetTrue)
                    .help("Counts what would be sealed again and writes nothing"),
            )
            .arg(
                Arg::new("rate")
                    .long("rate")
                    .value_name("COUNT")
                    .default_value("2000")
                    .value_parser(value_parser!(u64))
                    .help("How many are sealed a second, at most; 0 for as many as go"),
            )
            .after_help(
                "Give every service the new ring first, the new key in front. Services on Redis go on working meanwhile; \
                 a file has to be free: stop its service first. Stopped or failed, it can be run again and goes on. \
                 Exit codes: 0 everything is sealed with the first key, 1 something is not, 2 used wrongly, \
                 78 wrong settings.",
            )
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let json = output::wants_json(given);
        let rate = given.get_one::<u64>("rate").copied().unwrap_or_default();
        let dry_run = given.get_flag("dry-run");
        let access = StoreAccess::read(&mut reader);
        let (access, warnings) = reader.finish(access)?;
        let work = async move { output::conclude(json, rekeyed(&access, rate, dry_run).await) };
        Ok((Box::pin(work), warnings))
    }
}

/// What one walk found and did.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    examined: u64,
    current: u64,
    rewritten: u64,
    changed: u64,
    gone: u64,
    unreadable: u64,
    foreign: u64,
}

enum Done {
    Current,
    Rewritten,
    Changed,
    Gone,
    Unreadable,
    Foreign,
}

impl Walk {
    fn count(&mut self, done: &Done) {
        self.examined += 1;
        match done {
            Done::Current => self.current += 1,
            Done::Rewritten => self.rewritten += 1,
            Done::Changed => self.changed += 1,
            Done::Gone => self.gone += 1,
            Done::Unreadable => self.unreadable += 1,
            Done::Foreign => self.foreign += 1,
        }
    }

    /// Whether nothing sealed with an older key was met, as far as it can be read.
    fn found_nothing_to_do(&self) -> bool {
        self.rewritten + self.changed == 0
    }
}

async fn rekeyed(access: &StoreAccess, rate: u64, dry_run: bool) -> Result<CommandOutput, CommandFailure> {
    let opened = output::unless_stopped(access.open()).await?;
    let ids = opened.vault.key_ids();
    if ids.iter().enumerate().any(|(at, id)| ids[..at].contains(id)) {
        return Err(CommandFailure::new(
            "ambiguous_keys",
            Exit::Failed,
            "two keys of SESSION_ENCRYPTION_KEY have the same id: is one there twice? If not, make another new key",
        ));
    }
    let mut progress = BulkProgress::begin(rate)
        .map_err(|error| CommandFailure::new("signals", Exit::Failed, error.to_string()))?;
    let mut walks: Vec<Walk> = Vec::new();
    while walks.len() < WALKS && !progress.is_stopped() {
        let before = walks.iter().map(|walk| walk.rewritten).sum();
        let walk = walked(&opened, dry_run, before, &mut progress)
            .await
            .map_err(|error| CommandFailure::new("store_unavailable", Exit::Failed, chain(&error)))?;
        walks.push(walk);
        if dry_run || walk.found_nothing_to_do() {
            break;
        }
    }
    Ok(summed(&walks, dry_run, progress.is_stopped(), &opened))
}

async fn walked(
    opened: &OpenedStore,
    dry_run: bool,
    before: u64,
    progress: &mut BulkProgress,
) -> Result<Walk, StoreError> {
    let mut walk = Walk::default();
    for key_space in [KeySpace::Records, KeySpace::Remembered] {
        let mut after = None;
        loop {
            let page = opened.store.walk(key_space, after.as_deref(), PAGE).await?;
            let work = page
                .found
                .into_iter()
                .map(|found| resealed(opened, found, dry_run));
            let done: Vec<Done> = stream::iter(work).buffered(AT_ONCE).try_collect().await?;
            done.iter().for_each(|done| walk.count(done));
            after = page.next;
            progress
                .made(before + if dry_run { 0 } else { walk.rewritten }, || {
                    format!("examined {}, rewritten {}", walk.examined, walk.rewritten)
                })
                .await;
            if after.is_none() || progress.is_stopped() {
                break;
            }
        }
    }
    Ok(walk)
}

async fn resealed(opened: &OpenedStore, found: FoundItem, dry_run: bool) -> Result<Done, StoreError> {
    let was = match found {
        FoundItem::Sealed(was) => was,
        FoundItem::Foreign => return Ok(Done::Foreign),
        FoundItem::Unreadable { .. } | FoundItem::Index { .. } => return Ok(Done::Unreadable),
    };
    if sealed::is_bare(&was) || is_current(&opened.vault, &was) {
        return Ok(Done::Current);
    }
    let Ok(now) = sealed::resealed(&opened.vault, &was) else {
        return Ok(Done::Unreadable);
    };
    if dry_run {
        return Ok(Done::Rewritten);
    }
    Ok(match opened.store.exchange(&was, now).await? {
        Replaced::Done => Done::Rewritten,
        Replaced::Stale => Done::Changed,
        Replaced::Missing => Done::Gone,
    })
}

fn is_current(vault: &Vault, sealed: &Sealed) -> bool {
    let key = Vault::key_id_of(sealed.bytes());
    key.is_some() && key == vault.key_ids().first().copied()
}

fn summed(walks: &[Walk], dry_run: bool, stopped: bool, opened: &OpenedStore) -> CommandOutput {
    let first = walks.first().copied().unwrap_or_default();
    let last = walks.last().copied().unwrap_or_default();
    let rewritten: u64 = walks.iter().map(|walk| walk.rewritten).sum();
    let gone: u64 = walks.iter().map(|walk| walk.gone).sum();
    let settled = last.found_nothing_to_do();
    let complete = !stopped && (dry_run || settled) && last.unreadable + last.foreign == 0;
    let sealing = opened.vault.key_ids().first().map(ToString::to_string);
    let sealing = sealing.unwrap_or_default();
    let advice = match (stopped, dry_run, settled) {
        (true, _, _) => "stopped: run it again to go on",
        (false, true, _) => "nothing was written",
        (false, false, false) => {
            "sessions are still being sealed with an older key: give every service the new ring, then run it again"
        }
        _ if last.unreadable + last.foreign > 0 => {
            "some cannot be read or belong to another program, and were left alone: `session-svc check-store` says why"
        }
        _ => "everything is sealed with the first key: the others can be removed",
    };
    let rewritten_name = if dry_run { "would rewrite" } else { "rewritten" };
    let text = table::facts(&[
        ("examined", first.examined.to_string()),
        (rewritten_name, rewritten.to_string()),
        ("already current", first.current.to_string()),
        ("gone meanwhile", gone.to_string()),
        ("unreadable", last.unreadable.to_string()),
        ("foreign", last.foreign.to_string()),
        ("sealing key", sealing.clone()),
    ]);
    CommandOutput {
        text: format!("{text}{advice}\n"),
        json: json!({
            "complete": complete,
            "dry_run": dry_run,
            "stopped": stopped,
            "examined": first.examined,
            "rewritten": rewritten,
            "already_current": first.current,
            "gone_meanwhile": gone,
            "unreadable": last.unreadable,
            "foreign": last.foreign,
            "walks": walks.len(),
            "sealing_key": sealing,
            "advice": advice,
        }),
        exit: if complete { Exit::Done } else { Exit::Failed },
    }
}
