//! The checks of `check-store` and `doctor`: the store is reachable, grants the needed rights, and keeps its
//! data.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use chassis::clock::{Clock as _, SystemClock};
use chassis::findings::{Check, Finding, Section, chain};
use tokio::time::timeout;

use crate::session::SessionId;
use crate::store::embedded::FileProblem;
use crate::store::url::{StoreSettings, Topology};
use crate::store::{KeyValueStore, OpenError, Record, StoreError, open};

/// Time limit of each check, which makes several connections with their own deadlines.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The check warns of a greater clock difference: replicas may then differ as much from each other.
const CLOCK_NOTICE_MS: u64 = 1_000;
/// Lifetime of the probe record and its lease, in case the command is killed.
const PROBE_KEPT: Duration = Duration::from_secs(10);

/// The store to check.
pub(super) struct StoreAccess {
    pub(super) store: StoreSettings,
    /// The number of keys that seal and open its records.
    pub(super) keys: usize,
    /// Whether a running service may have the store open, or has not created it yet.
    pub(super) may_be_served: bool,
}

/// Checks the store.
pub(super) async fn examine(access: &StoreAccess) -> Section {
    let kind = match &access.store {
        StoreSettings::Memory => "memory",
        StoreSettings::File(_) => "file",
        StoreSettings::Redis(redis) => match redis.topology {
            Topology::Single(_) => "redis",
            Topology::Sentinel { .. } => "redis-sentinel",
            Topology::Cluster(_) => "redis-cluster",
        },
    };
    let mut checks = vec![("encryption_key", keys(access.keys))];
    match reach(access).await {
        Err(finding) => checks.push(("store", finding)),
        Ok(store) => {
            checks.push(("store", Finding::fits("reachable")));
            checks.push(("store_rights", rights(&*store).await));
            checks.push(("store_clock", clock(&*store)));
            checks.extend(facts(&*store).await);
        }
    }
    Section {
        title: format!("Store ({kind})"),
        checks,
    }
}

fn keys(count: usize) -> Finding {
    match count {
        0 => Finding::information(
            "none is set: the service makes one at its start, and sessions end with the process",
        ),
        1 => Finding::fits("one, which seals and opens"),
        count => Finding::fits(format!("{count}: the first seals, all open")),
    }
}

/// Opens the store, or returns why it cannot be opened.
async fn reach(access: &StoreAccess) -> Result<Arc<dyn KeyValueStore>, Finding> {
    match &access.store {
        StoreSettings::Memory => {
            return Err(Finding::warning(
                "sessions are gone when the process ends, and other replicas do not see them",
                "SESSION_STORE: write file:PATH for one machine, or redis://… for several replicas",
            ));
        }
        StoreSettings::File(path) if !path.exists() => {
            let found = format!("{} does not exist", path.display());
            let advice = "SESSION_STORE: check the path; the service makes the file when it first starts";
            return Err(unless_served(access, found, advice));
        }
        StoreSettings::File(_) | StoreSettings::Redis(_) => {}
    }
    let opening = async {
        let store = open(&access.store, Arc::new(SystemClock))
            .await
            .map_err(|error| unopened(access, &error))?;
        match store.check().await {
            // The store answers, and its sessions can be ended.
            Ok(()) | Err(StoreError::Full) => Ok(store),
            Err(error) => Err(unreachable(&chain(&error))),
        }
    };
    let opened = timeout(CHECK_TIMEOUT, opening).await;
    opened.unwrap_or_else(|_elapsed| Err(unreachable("no answer in time")))
}

/// A problem, unless a running service may use the store.
fn unless_served(access: &StoreAccess, found: String, advice: &str) -> Finding {
    if access.may_be_served {
        Finding::information(found)
    } else {
        Finding::problem(found, advice)
    }
}

fn unreachable(found: &str) -> Finding {
    Finding::problem(
        found,
        "SESSION_STORE: check host, port, user and password, and that firewalls and network policies allow connections from this host; rediss:// for TLS",
    )
}

fn unopened(access: &StoreAccess, error: &OpenError) -> Finding {
    match error {
        OpenError::File(file) => match file.problem {
            FileProblem::InUse => unless_served(
                access,
                format!("{} is in use by a running service", file.path.display()),
                "stop the service first, or ask it with `session-svc sessions`: a file belongs to one process",
            ),
            FileProblem::Damaged(_) | FileProblem::Empty => Finding::problem(
                chain(error),
                "put a backup in its place, or move it away: then every user has to sign in again",
            ),
            _ => unreachable(&chain(error)),
        },
        OpenError::Redis(_) => unreachable(&chain(error)),
    }
}

/// Checks that the login may do all the service's operations, and that a replica acknowledges endings.
async fn rights(store: &dyn KeyValueStore) -> Finding {
    match timeout(CHECK_TIMEOUT, try_rights(store)).await {
        Err(_elapsed) => return unreachable("it stopped answering"),
        Ok(Err(why)) => {
            let advice = "give the user of SESSION_STORE the rights listed in docs/operating.md, \"Stores\"";
            return Finding::problem(format!("refused: {why}"), advice);
        }
        Ok(Ok(())) => {}
    }
    match timeout(CHECK_TIMEOUT, store.confirm_removed(&[])).await {
        Err(_elapsed) => unreachable("it stopped answering"),
        Ok(Err(error)) => Finding::problem(
            format!("endings are not acknowledged: {}", chain(&error)),
            "sign-outs fail: a master with min-replicas-to-write needs the right +wait, and a replica near it",
        ),
        Ok(Ok(_is_copied)) => Finding::fits("write, read, lease, remove and acknowledge work"),
    }
}

/// Runs every operation of the service on its own record, and removes that.
async fn try_rights(store: &dyn KeyValueStore) -> Result<(), String> {
    let described = |error: StoreError| chain(&error);
    let name = SessionId::random(&SystemRandom::new()).map_err(|error| error.to_string())?;
    let name = name.handle();
    let now_ms = store.now_ms();
    let probe = Record {
        name,
        version: 1,
        expires_at_ms: now_ms.saturating_add(u64::try_from(PROBE_KEPT.as_millis()).unwrap_or(u64::MAX)),
        created_at_ms: now_ms,
        indexes: Vec::new(),
        payload: b"check".to_vec(),
    };
    // Watchers skip empty events.
    store.insert(probe.clone(), Vec::new()).await.map_err(described)?;
    let written = store.load(name).await.map_err(described)?;
    let lease = name;
    let lease = store.acquire_lease(lease, "check", PROBE_KEPT).await;
    if let Some(lease) = lease.map_err(described)? {
        store.release_lease(&lease).await.map_err(described)?;
    }
    let removed = store.remove(name, Vec::new()).await.map_err(described)?;
    match written.as_ref() == Some(&probe) && removed.is_some() {
        true => Ok(()),
        false => Err("the record read differs from the record written".to_owned()),
    }
}

fn clock(store: &dyn KeyValueStore) -> Finding {
    let apart = SystemClock.now_ms().abs_diff(store.now_ms());
    if apart > CLOCK_NOTICE_MS {
        return Finding::warning(
            format!("{apart} ms apart from this machine's; sessions end by the store's clock"),
            "set the clocks of both machines by NTP",
        );
    }
    Finding::fits(format!("{apart} ms apart from this machine's"))
}

async fn facts(store: &dyn KeyValueStore) -> Vec<Check> {
    let why = match timeout(CHECK_TIMEOUT, store.facts()).await {
        Ok(Ok(facts)) => return facts,
        Ok(Err(error)) => chain(&error),
        Err(_elapsed) => "no answer in time".to_owned(),
    };
    let found = format!("version, eviction and persistence cannot be read: {why}");
    vec![(
        "engine",
        Finding::unknown(found).advise("to have them checked here, allow +info"),
    )]
}
