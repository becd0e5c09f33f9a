//! The store: can it be reached, may we do there what serving needs, does it keep what it is given?

use std::time::Duration;

use chassis::clock::{Clock as _, SystemClock};
use chassis::findings::{Check, Finding, chain};
use tokio::time::timeout;

use super::super::output::CommandFailure;
use super::super::store_access::{StoreAccess, try_rights};
use crate::settings::Settings;
use crate::store::SessionStore;
use crate::store::fact::{Assessment, Fact};
use crate::store::url::StoreSettings;

/// How long each check may take: several connections, each with a deadline of its own.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// A clock this far from the store's is worth a look: replicas may be as far apart from each other.
const CLOCK_NOTICE_MS: u64 = 1_000;

/// What was found of it.
pub(super) async fn examined(settings: &Settings, access: &StoreAccess) -> Vec<Check> {
    let mut checks = vec![("encryption_key", keys(settings))];
    if matches!(settings.store, StoreSettings::Memory) {
        let memory = Finding::warning(
            "sessions are gone when the process ends, and other replicas do not see them",
            "SESSION_STORE: write file:PATH for one machine, or redis://… for several replicas",
        );
        checks.push(("store", memory));
        return checks;
    }
    match timeout(CHECK_TIMEOUT, access.open()).await {
        Err(_elapsed) => checks.push(("store", unreachable("no answer in time"))),
        Ok(Err(failure)) => checks.push(("store", unopened(&failure))),
        Ok(Ok(store)) => {
            checks.push(("store", Finding::fits("reachable")));
            checks.push(("store_rights", rights(&*store).await));
            checks.push(("store_clock", clock(&*store)));
            checks.extend(engine(&*store).await);
        }
    }
    checks
}

fn keys(settings: &Settings) -> Finding {
    match settings.keys.len() {
        0 => {
            Finding::information("none is set: one is drawn at the start, and sessions end with the process")
        }
        1 => Finding::fits("one, which seals and opens"),
        count => Finding::fits(format!("{count}: the first seals, all open")),
    }
}

fn unreachable(found: &str) -> Finding {
    Finding::problem(
        found,
        "SESSION_STORE: check host, port, user and password, and that firewalls and network policies let this host through; rediss:// for TLS",
    )
}

fn unopened(failure: &CommandFailure) -> Finding {
    match failure.reason.as_str() {
        // A file belongs to one process, and it is well there.
        "store_in_use" => Finding::information(
            "in use by a running service, which is as it should be: its /readyz tells how it is",
        ),
        "store_missing" => Finding::information("not there yet: the service makes it when it first starts"),
        "store_damaged" => Finding::problem(
            failure.text.clone(),
            "put a backup in its place, or move it away: then everybody signs in again",
        ),
        _ => unreachable(&failure.text),
    }
}

/// Whether a user with an access list may do what serving does, and endings are acknowledged.
async fn rights(store: &dyn SessionStore) -> Finding {
    let tried = async {
        try_rights(store).await?;
        store.confirm_removed(&[]).await.map_err(|error| chain(&error))
    };
    match timeout(CHECK_TIMEOUT, tried).await {
        Err(_elapsed) => unreachable("it stopped answering"),
        Ok(Ok(_is_copied)) => Finding::fits("write, read, lease, remove and acknowledge work"),
        Ok(Err(why)) => Finding::problem(
            format!("refused: {why}"),
            "give the user of SESSION_STORE the rights listed in docs/operating.md, \"Stores\"; acknowledge needs as many replicas as SESSION_ENDING_REPLICAS says, connected and near",
        ),
    }
}

fn clock(store: &dyn SessionStore) -> Finding {
    let apart = SystemClock.now_ms().abs_diff(store.now_ms());
    if apart > CLOCK_NOTICE_MS {
        return Finding::warning(
            format!("{apart} ms apart from ours; the store's decides when sessions end"),
            "set the clocks of both machines by NTP",
        );
    }
    Finding::fits(format!("{apart} ms apart from ours"))
}

async fn engine(store: &dyn SessionStore) -> Vec<Check> {
    let unasked = match timeout(CHECK_TIMEOUT, store.facts(None)).await {
        Ok(Ok(facts)) => return facts.into_iter().map(judged).collect(),
        Ok(Err(error)) => chain(&error),
        Err(_elapsed) => "no answer in time".to_owned(),
    };
    let finding = Finding::unknown(format!(
        "version, eviction and persistence may not be asked for: {unasked}"
    ));
    let advice =
        "to have them judged here, allow +info, +config|get, +acl|dryrun, +cluster|info and +cluster|slots";
    vec![("engine", finding.advise(advice))]
}

fn judged(fact: Fact) -> Check {
    let finding = match fact.standing {
        Assessment::Fine => Finding::fits(fact.value),
        Assessment::Warning(advice) => Finding::warning(fact.value, advice),
        Assessment::Problem(advice) => Finding::problem(fact.value, advice),
        Assessment::Unknown(advice) => Finding::unknown(fact.value).advise(advice),
    };
    (fact.name, finding)
}
