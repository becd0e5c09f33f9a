//! Finds the master behind Sentinels, from the answers of a majority of the configured Sentinels.
//!
//! Invariants
//! - The service asks every Sentinel a few times a second, and at once when one of them announces a change.
//! - A server is the master only while answers of a majority are younger than `FRESH`. Otherwise calls fail
//!   at once.
//! - Every failover has a greater configuration epoch than earlier ones (Redis Sentinel, "Configuration
//!   epochs"). Of the answers of a majority, those with the greatest epoch count.
//! - A master that is about to be replaced is not used: the failover would undo writes that it acknowledges.
//!
//! Deliberately absent: Sentinels that are not configured. The majority is counted over the configured ones,
//! so the settings must name all Sentinels.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use redis::aio::{MultiplexedConnection, PubSubStream};
use redis::{Client, ErrorKind, RedisError, RedisResult};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::source::{CONNECT_TIMEOUT, connection_config};
use crate::store::url::ServerAddress;

/// How often the service asks each Sentinel.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Longest wait for an answer. A later answer leaves too little of `FRESH`.
const ASK_TIMEOUT: Duration = Duration::from_millis(400);

/// An older answer is stale. This limit makes the service leave a master that was cut off in time: endings
/// must be visible within a second.
const FRESH: Duration = Duration::from_millis(700);

/// How often the service judges the answers even if no new one arrives: answers become stale.
const JUDGE_EVERY: Duration = Duration::from_millis(50);

/// Longest wait for a subscription, TLS and authentication included.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_millis(1_000);

/// Announcements of Sentinels before, during and after a failover. The first one comes some hundred
/// milliseconds before a Sentinel promotes a replica.
const ANNOUNCED: [&str; 4] = [
    "+try-failover",
    "+selected-slave",
    "+promoted-slave",
    "+switch-master",
];

/// The last answer of a Sentinel.
#[derive(Clone)]
struct SentinelAnswer {
    /// When the request was sent: the content of the answer may be that old.
    sent_at: Instant,
    /// Epoch of its configuration.
    epoch: u64,
    master: ServerAddress,
    /// Whether this Sentinel is about to promote another server.
    is_replacing: bool,
}

/// The last answers of the Sentinels, in the order of the settings.
type SentinelAnswers = watch::Sender<Vec<Option<SentinelAnswer>>>;

/// The result of the last answers.
#[derive(Clone, PartialEq, Eq)]
enum MasterVerdict {
    /// The Sentinels have not had time to answer yet.
    Awaited,
    /// No majority names a master.
    Missing,
    Named(ServerAddress),
}

/// Follows the master until dropped.
pub(super) struct Master {
    verdict: watch::Receiver<MasterVerdict>,
    look: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Master {
    /// Follows the master that `sentinels` call `name`.
    pub(super) fn follow(sentinels: Vec<Client>, name: &str) -> Self {
        let answers = watch::Sender::new(vec![None; sentinels.len()]);
        let (sender, verdict) = watch::channel(MasterVerdict::Awaited);
        let look = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_choosing(answers.subscribe(), sender));
        for (at, client) in sentinels.into_iter().enumerate() {
            let sentinel = Sentinel {
                client,
                master: name.to_owned(),
                at,
                answers: answers.clone(),
                look: Arc::clone(&look),
            };
            tasks.spawn(sentinel.keep_asking());
        }
        Self {
            verdict,
            look,
            _tasks: tasks,
        }
    }

    /// The current master. Waits only for the first verdict.
    pub(super) async fn address(&self) -> RedisResult<ServerAddress> {
        let mut verdict = self.verdict.clone();
        let known = verdict
            .wait_for(|verdict| *verdict != MasterVerdict::Awaited)
            .await;
        match known.as_deref() {
            Ok(MasterVerdict::Named(address)) => Ok(address.clone()),
            _ => Err((ErrorKind::Io, "no majority of the Sentinels names a master").into()),
        }
    }

    /// Whether this server is still the master.
    pub(super) fn is(&self, server: &ServerAddress) -> bool {
        matches!(&*self.verdict.borrow(), MasterVerdict::Named(address) if address == server)
    }

    /// Returns once this server is no longer the master.
    pub(super) async fn wait_until_replaced(&self, server: &ServerAddress) {
        let mut verdict = self.verdict.clone();
        let is_other =
            |verdict: &MasterVerdict| !matches!(verdict, MasterVerdict::Named(address) if address == server);
        // An error means that the tasks that follow the master have stopped.
        let _ = verdict.wait_for(is_other).await;
    }

    /// Asks all Sentinels at once.
    pub(super) fn look(&self) {
        self.look.notify_waiters();
    }
}

async fn keep_choosing(
    mut answers: watch::Receiver<Vec<Option<SentinelAnswer>>>,
    sender: watch::Sender<MasterVerdict>,
) {
    let began = Instant::now();
    loop {
        let named = judge(&answers.borrow_and_update(), Instant::now());
        let verdict = match named {
            Some(address) => MasterVerdict::Named(address),
            None if *sender.borrow() == MasterVerdict::Awaited && began.elapsed() < CONNECT_TIMEOUT => {
                MasterVerdict::Awaited
            }
            None => MasterVerdict::Missing,
        };
        sender.send_if_modified(|known| {
            let is_other = *known != verdict;
            if is_other {
                announce(&verdict);
                *known = verdict;
            }
            is_other
        });
        tokio::select! {
            changed = answers.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(JUDGE_EVERY) => {}
        }
    }
}

fn announce(verdict: &MasterVerdict) {
    if let MasterVerdict::Named(ServerAddress { host, port }) = verdict {
        tracing::info!(
            server.address = host,
            server.port = port,
            "the Sentinels name a master of the store"
        );
    } else {
        tracing::warn!("no majority of the Sentinels names a master: the store is not used");
    }
}

/// The master according to the last answers, one slot for each Sentinel.
fn judge(answers: &[Option<SentinelAnswer>], now: Instant) -> Option<ServerAddress> {
    let fresh = answers.iter().flatten();
    let fresh = fresh.filter(|answer| now.saturating_duration_since(answer.sent_at) < FRESH);
    let mut fresh: Vec<&SentinelAnswer> = fresh.collect();
    if fresh.len() <= answers.len() / 2 {
        return None;
    }
    let newest = fresh.iter().map(|answer| answer.epoch).max()?;
    fresh.retain(|answer| answer.epoch == newest);
    if fresh.iter().any(|answer| answer.is_replacing) {
        return None;
    }
    let named = |address: &ServerAddress| fresh.iter().filter(|answer| answer.master == *address).count();
    let most = fresh.iter().max_by_key(|answer| named(&answer.master))?;
    Some(most.master.clone())
}

/// Asks one Sentinel.
struct Sentinel {
    client: Client,
    master: String,
    /// Its index among the answers.
    at: usize,
    answers: SentinelAnswers,
    look: Arc<Notify>,
}

impl Sentinel {
    async fn keep_asking(self) {
        loop {
            if let Err(error) = self.ask_while_connected().await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    sentinel = self.at,
                    "a Sentinel does not answer"
                );
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    async fn ask_while_connected(&self) -> RedisResult<()> {
        let config = connection_config(ASK_TIMEOUT);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await?;
        self.ask(&mut connection).await?;
        let mut announced = self.subscribe().await;
        loop {
            tokio::select! {
                () = tokio::time::sleep(ASK_EVERY) => {}
                () = self.look.notified() => {}
                () = next(&mut announced) => {}
            }
            self.ask(&mut connection).await?;
        }
    }

    /// Reads the epoch before the address, because a Sentinel may learn of a newer master in between. An
    /// older epoch with the new address is harmless; a newer epoch with the old address is not.
    async fn ask(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let sent_at = Instant::now();
        let mut question = redis::pipe();
        question.cmd("SENTINEL").arg("MASTER").arg(&self.master);
        question
            .cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&self.master);
        let (facts, (host, port)): (HashMap<String, String>, (String, u16)) =
            question.query_async(connection).await?;
        let fact = |name: &str| facts.get(name).map_or("", String::as_str);
        let epoch = fact("config-epoch").parse();
        let is_begun = fact("flags")
            .split(',')
            .any(|flag| flag == "failover_in_progress");
        // A Sentinel that promoted a replica names the replica's address before it clears this flag.
        let is_old = fact("ip") == host && fact("port") == port.to_string();
        let answer = SentinelAnswer {
            sent_at,
            epoch: epoch.map_err(|_| unexpected())?,
            master: ServerAddress { host, port },
            is_replacing: is_begun && is_old,
        };
        self.answers
            .send_modify(|answers| answers[self.at] = Some(answer));
        Ok(())
    }

    /// Subscribes to the Sentinel's announcements, if the Sentinel permits it. Optional, but faster.
    async fn subscribe(&self) -> Option<PubSubStream> {
        let subscribing = async {
            let mut listener = self.client.get_async_pubsub().await?;
            listener.subscribe(&ANNOUNCED[..]).await?;
            RedisResult::Ok(listener.into_on_message())
        };
        tokio::time::timeout(SUBSCRIBE_TIMEOUT, subscribing)
            .await
            .ok()?
            .ok()
    }
}

fn unexpected() -> RedisError {
    (ErrorKind::UnexpectedReturnType, "an unexpected Sentinel answer").into()
}

/// Waits for the next announcement; for ever without a subscription.
async fn next(announced: &mut Option<PubSubStream>) {
    if let Some(stream) = announced {
        if stream.next().await.is_some() {
            return;
        }
        // The subscription broke. If the Sentinel is down, the task that asks it notices.
        *announced = None;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The port of the master, by answers as (milliseconds ago, epoch, port, replacing).
    fn elected_port(answers: &[Option<(u64, u64, u16, bool)>]) -> Option<u16> {
        let now = Instant::now() + Duration::from_secs(60);
        let answer = |(ago, epoch, port, is_replacing)| SentinelAnswer {
            sent_at: now - Duration::from_millis(ago),
            epoch,
            master: ServerAddress {
                host: "10.0.0.1".to_owned(),
                port,
            },
            is_replacing,
        };
        let answers: Vec<Option<SentinelAnswer>> = answers.iter().map(|given| given.map(answer)).collect();
        judge(&answers, now).map(|address| address.port)
    }

    #[test]
    fn an_answer_of_a_newer_epoch_counts_more_than_two_of_an_older() {
        let old = Some((1, 5, 1, false));
        assert_eq!(elected_port(&[old, Some((1, 6, 2, false)), old]), Some(2));
    }

    #[test]
    fn without_a_majority_there_is_no_master() {
        let answer = Some((1, 5, 1, false));
        assert_eq!(elected_port(&[answer, answer, None]), Some(1));
        assert_eq!(elected_port(&[answer, None, None]), None);
        assert_eq!(elected_port(&[answer, None]), None);
        assert_eq!(elected_port(&[None]), None);
    }

    #[test]
    fn old_answers_do_not_count() {
        let (fresh, old) = (Some((699, 5, 1, false)), Some((700, 5, 1, false)));
        assert_eq!(elected_port(&[fresh, fresh, old]), Some(1));
        assert_eq!(elected_port(&[fresh, old, old]), None);
    }

    #[test]
    fn a_master_that_is_being_replaced_is_none() {
        let (answer, replacing) = (Some((1, 5, 1, false)), Some((1, 5, 1, true)));
        assert_eq!(elected_port(&[replacing, answer, answer]), None);
        assert_eq!(
            elected_port(&[replacing, Some((1, 6, 2, false)), answer]),
            Some(2)
        );
    }

    #[test]
    fn most_answers_decide_between_two_names_in_one_epoch() {
        let (one, other) = (Some((1, 5, 1, false)), Some((1, 5, 2, false)));
        assert_eq!(elected_port(&[one, other, other]), Some(2));
    }
}
