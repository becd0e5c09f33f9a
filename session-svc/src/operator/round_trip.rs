//! Does with the store what the service does, on a record of its own that is gone afterwards.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use ring::rand::SystemRandom;

use super::store_access::OpenedStore;
use crate::keeper::Seal as _;
use crate::session::SessionId;
use crate::store::{Inserted, LeaseName, Record, Replaced, StoreError, StoreUpdate};

/// The purpose of what the check leaves for a moment.
const PROBE: &str = "probe";

/// How long the probe is kept should the check be killed.
const KEPT_MS: u64 = 60_000;

/// How long the probe's own event may take.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// How long its lease would be held.
const LEASE: Duration = Duration::from_secs(10);

/// The step that asks as many replicas as an ending waits for.
pub(super) const ACKNOWLEDGE: &str = "acknowledge";

/// A step, how long it took, and why it failed if it did.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) took: Duration,
    pub(super) failed: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error("the probe could not be sealed")]
    Seal(#[from] crate::keeper::SealError),
    #[error("no random name could be made")]
    Random(#[from] chassis::random::NoRandomness),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("what was written is not what is read")]
    Different,
    #[error("what was written was not published within {} s", HEARD_WITHIN.as_secs())]
    Silent,
}

/// Goes through all steps, and stops at the first that fails.
pub(super) async fn made(opened: &OpenedStore) -> Vec<Step> {
    let mut steps = Vec::new();
    let probe = probe(opened);
    let probe = match probe {
        Ok(probe) => probe,
        Err(error) => {
            steps.push(step("write", Instant::now(), Err(error)));
            return steps;
        }
    };
    for name in [
        "publish",
        "write",
        "read",
        "replace",
        "lease",
        "remove",
        ACKNOWLEDGE,
    ] {
        let began = Instant::now();
        let outcome = match name {
            "publish" => published(opened, &probe).await,
            "write" => written(opened, &probe).await,
            "read" => read(opened, &probe).await,
            "replace" => replaced(opened, &probe).await,
            "lease" => leased(opened, &probe).await,
            "remove" => removed(opened, &probe).await,
            _ => acknowledged(opened, &probe).await,
        };
        let done = step(name, began, outcome);
        let failed = done.failed.is_some();
        steps.push(done);
        if failed {
            break;
        }
    }
    steps
}

fn step(name: &'static str, began: Instant, outcome: Result<(), StepError>) -> Step {
    Step {
        name,
        took: began.elapsed(),
        failed: outcome.err().map(|error| super::output::chain(&error)),
    }
}

fn probe(opened: &OpenedStore) -> Result<Record, StepError> {
    let name = SessionId::random(&SystemRandom::new())?.handle().name();
    let now_ms = opened.store.now_ms();
    Ok(Record {
        payload: opened.vault.seal_note(PROBE, name, b"check")?,
        name,
        version: 1,
        expires_at_ms: now_ms.saturating_add(KEPT_MS),
        created_at_ms: now_ms,
        indexes: Vec::new(),
    })
}

/// Listens, writes and removes another record, and receives its event. Watchers skip it, for it is empty.
async fn published(opened: &OpenedStore, probe: &Record) -> Result<(), StepError> {
    let after = opened.store.position().await?;
    let mut heard = opened.store.published(Some(after)).await?;
    written(opened, probe).await?;
    removed(opened, probe).await?;
    let ours = async {
        loop {
            match heard.next().await {
                Some(Ok(StoreUpdate::Event { payload, .. })) if payload.is_empty() => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(StepError::Store(error)),
                None => return Err(StepError::Silent),
            }
        }
    };
    tokio::time::timeout(HEARD_WITHIN, ours)
        .await
        .unwrap_or(Err(StepError::Silent))
}

async fn written(opened: &OpenedStore, probe: &Record) -> Result<(), StepError> {
    match opened.store.insert(probe.clone(), Vec::new()).await? {
        Inserted::Done => Ok(()),
        Inserted::Taken | Inserted::Barred => Err(StepError::Different),
    }
}

async fn read(opened: &OpenedStore, probe: &Record) -> Result<(), StepError> {
    let found = opened.store.load(probe.name).await?;
    if found.as_ref() != Some(probe) {
        return Err(StepError::Different);
    }
    opened.vault.open_note(PROBE, probe.name, &probe.payload)?;
    Ok(())
}

async fn replaced(opened: &OpenedStore, probe: &Record) -> Result<(), StepError> {
    let next = Record {
        version: 2,
        ..probe.clone()
    };
    match opened.store.replace(next, 1, None).await? {
        Replaced::Done => Ok(()),
        Replaced::Stale | Replaced::Missing => Err(StepError::Different),
    }
}

async fn leased(opened: &OpenedStore, probe: &Record) -> Result<(), StepError> {
    let lease = opened
        .store
        .acquire_lease(LeaseName::Named(probe.name), &probe.name.to_string(), LEASE)
        .await?;
    let lease = lease.ok_or(StepError::Different)?;
    if !opened.store.renew_lease(&lease, LEASE).await? {
        return Err(StepError::Different);
    }
    Ok(opened.store.release_lease(&lease).await?)
}

async fn removed(opened: &OpenedStore, probe: &Record) -> Result<(), StepError> {
    match opened.store.remove(probe.name, Vec::new()).await? {
        Some(_) => Ok(()),
        None => Err(StepError::Different),
    }
}

async fn acknowledged(opened: &OpenedStore, probe: &Record) -> Result<(), StepError> {
    opened.store.confirm_removed(&[probe.name]).await?;
    Ok(())
}
