//! The store: can it be reached, may we do there what serving needs, does it keep what it is given?

use std::time::Duration;

use chassis::clock::{Clock as _, SystemClock};
use chassis::findings::{Finding, Remedy, chain};

use super::super::output::CommandFailure;
use super::super::round_trip;
use super::super::store_access::{OpenedStore, StoreAccess};
use crate::settings::Settings;
use crate::store::fact::{Assessment, Fact};
use crate::store::url::StoreSettings;

/// How long opening the store may take: several connections, each with a deadline of its own.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long all steps together may take; the slowest waits five seconds for an event.
const STEPS_TIMEOUT: Duration = Duration::from_secs(15);
/// A clock this far from the store's is worth a look: replicas may be as far apart from each other.
const CLOCK_NOTICE_MS: u64 = 1_000;

/// What kind of store it is.
pub(super) fn kind(settings: &Settings) -> &'static str {
    StoreAccess::new(settings.store.clone(), Vec::new()).kind()
}

/// What was found of it.
pub(super) async fn examined(settings: &Settings) -> Vec<Finding> {
    let mut findings = vec![keys(settings)];
    if matches!(settings.store, StoreSettings::Memory) {
        findings.push(Finding::warning(
            "store",
            "sessions are gone when the process ends, and other replicas do not see them",
            Remedy::set(
                "SESSION_STORE",
                "write file:PATH for one machine, or redis://… for several replicas",
            ),
        ));
        return findings;
    }
    let access = StoreAccess::new(settings.store.clone(), settings.keys.clone());
    match tokio::time::timeout(OPEN_TIMEOUT, access.open()).await {
        Err(_elapsed) => findings.push(unreachable(&format!(
            "no answer within {} s",
            OPEN_TIMEOUT.as_secs()
        ))),
        Ok(Err(failure)) => findings.push(unopened(&failure)),
        Ok(Ok(opened)) => {
            findings.push(Finding::fits("store", "reachable"));
            findings.push(steps(&opened).await);
            findings.push(clock(&opened));
            findings.extend(engine(&opened).await);
        }
    }
    findings
}

fn keys(settings: &Settings) -> Finding {
    let id = "encryption_key";
    match settings.keys.len() {
        0 => Finding::information(
            id,
            "none is set: one is drawn at the start, and sessions end with the process",
        ),
        1 => Finding::fits(id, "one, which seals and opens"),
        count => Finding::fits(id, format!("{count}: the first seals, all open")),
    }
}

fn unreachable(found: &str) -> Finding {
    Finding::problem(
        "store",
        found,
        Remedy::set(
            "SESSION_STORE",
            "check host, port, user and password, and that firewalls and network policies let this host through; rediss:// for TLS",
        ),
    )
}

fn unopened(failure: &CommandFailure) -> Finding {
    let id = "store";
    match failure.reason.as_str() {
        // A file belongs to one process, and it is well there.
        "store_in_use" => Finding::information(
            id,
            "in use by a running service, which is as it should be: its /readyz tells how it is",
        ),
        "store_missing" => {
            Finding::information(id, "not there yet: the service makes it when it first starts")
        }
        "store_damaged" => Finding::problem(
            id,
            failure.text.clone(),
            Remedy::elsewhere("put a backup in its place, or move it away: then everybody signs in again"),
        ),
        _ => unreachable(&failure.text),
    }
}

/// Does what serving does; a user with an access list that lacks a right is refused at one of these steps.
async fn steps(opened: &OpenedStore) -> Finding {
    let id = "store_rights";
    let Ok(steps) = tokio::time::timeout(STEPS_TIMEOUT, round_trip::made(opened)).await else {
        return unreachable("it stopped answering");
    };
    match steps
        .iter()
        .find_map(|step| Some((step.name, step.failed.as_ref()?)))
    {
        None => Finding::fits(
            id,
            "publish, write, read, replace, lease, remove and acknowledge work",
        ),
        Some((step, why)) => Finding::problem(
            id,
            format!("{step} is refused: {why}"),
            Remedy::elsewhere(
                "give the user of SESSION_STORE the rights listed in docs/operating.md, \"Stores\"; acknowledge needs as many replicas as SESSION_ENDING_REPLICAS says, connected and near",
            ),
        ),
    }
}

fn clock(opened: &OpenedStore) -> Finding {
    let id = "store_clock";
    let apart = SystemClock.now_ms().abs_diff(opened.store.now_ms());
    if apart > CLOCK_NOTICE_MS {
        return Finding::warning(
            id,
            format!("{apart} ms apart from ours; the store's decides when sessions end"),
            Remedy::elsewhere("set the clocks of both machines by NTP"),
        );
    }
    Finding::fits(id, format!("{apart} ms apart from ours"))
}

async fn engine(opened: &OpenedStore) -> Vec<Finding> {
    let facts = match tokio::time::timeout(OPEN_TIMEOUT, opened.store.facts(None)).await {
        Ok(Ok(facts)) => facts,
        Ok(Err(error)) => return vec![unasked(&chain(&error))],
        Err(_elapsed) => return vec![unasked("no answer in time")],
    };
    facts.into_iter().map(judged).collect()
}

fn unasked(found: &str) -> Finding {
    let advice =
        "to have them judged here, allow +info, +config|get, +acl|dryrun, +cluster|info and +cluster|slots";
    Finding::unknown(
        "engine",
        format!("version, eviction and persistence may not be asked for: {found}"),
    )
    .with(Remedy::elsewhere(advice))
}

fn judged(fact: Fact) -> Finding {
    let Fact {
        name,
        value,
        standing,
    } = fact;
    match standing {
        Assessment::Fine => Finding::fits(name, value),
        Assessment::Warning(advice) => Finding::warning(name, value, Remedy::elsewhere(advice)),
        Assessment::Problem(advice) => Finding::problem(name, value, Remedy::elsewhere(advice)),
        Assessment::Unknown(advice) => Finding::unknown(name, value).with(Remedy::elsewhere(advice)),
    }
}
