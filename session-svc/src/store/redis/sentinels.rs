//! The master behind Sentinels: the server that a majority of the configured ones names.
//!
//! Invariants
//! - The service asks every Sentinel a few times a second, and at once when one of them announces a change.
//! - A server is the master only while answers of a majority are younger than `FRESH`. Without them there is none: calls are refused at
//!   once, and sessions stay as they are.
//! - Every failover gets a configuration epoch greater than those before (Redis Sentinel, "Configuration epochs"): of the answers of a
//!   majority those of the greatest epoch count.
//! - A master that is about to be replaced is not used: what it acknowledged then would be undone.
//!
//! Deliberately absent: Sentinels that are not configured. A majority is one of those that are, so all are to be named.

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

/// How often each Sentinel is asked.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Longest wait for an answer; one that takes longer leaves too little of `FRESH`.
const ASK_TIMEOUT: Duration = Duration::from_millis(400);

/// An answer to an older request says nothing about now. With the longest request and wait, a master that was cut off is left within
/// the second in which endings are seen.
const FRESH: Duration = Duration::from_millis(700);

/// How often the answers are judged without a new one: they grow old.
const JUDGE_EVERY: Duration = Duration::from_millis(50);

/// Longest wait for a subscription, TLS and authentication included.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_millis(1_000);

/// What Sentinels announce before they replace a master, while, and after. The first comes some hundred milliseconds before a replica
/// is promoted.
const ANNOUNCED: [&str; 4] = [
    "+try-failover",
    "+selected-slave",
    "+promoted-slave",
    "+switch-master",
];

/// What a Sentinel said last.
#[derive(Clone)]
struct Answer {
    /// When the request was sent: the answer is no newer.
    sent_at: Instant,
    /// Epoch of its configuration.
    epoch: u64,
    master: ServerAddress,
    /// Whether it is about to promote another server.
    is_replacing: bool,
}

/// What the Sentinels said last, in the order they are configured.
type Answers = watch::Sender<Vec<Option<Answer>>>;

/// What is known of the master.
#[derive(Clone, PartialEq, Eq)]
enum Verdict {
    /// The Sentinels had no time to answer yet.
    Awaited,
    /// No majority names one.
    Missing,
    Named(ServerAddress),
}

/// Follows the master until dropped.
pub(super) struct Master {
    verdict: watch::Receiver<Verdict>,
    look: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Master {
    /// Follows what `sentinels` call `name`.
    pub(super) fn follow(sentinels: Vec<Client>, name: &str) -> Self {
        let answers = watch::Sender::new(vec![None; sentinels.len()]);
        let (sender, verdict) = watch::channel(Verdict::Awaited);
        let look = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_judging(answers.subscribe(), sender));
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

    /// The master of now; waits only for the first verdict.
    pub(super) async fn address(&self) -> RedisResult<ServerAddress> {
        let mut verdict = self.verdict.clone();
        let known = verdict.wait_for(|verdict| *verdict != Verdict::Awaited).await;
        match known.as_deref() {
            Ok(Verdict::Named(address)) => Ok(address.clone()),
            _ => Err((ErrorKind::Io, "no majority of the Sentinels names a master").into()),
        }
    }

    /// Whether this server is the master still.
    pub(super) fn is(&self, server: &ServerAddress) -> bool {
        matches!(&*self.verdict.borrow(), Verdict::Named(address) if address == server)
    }

    /// Returns once this server is the master no more.
    pub(super) async fn left(&self, server: &ServerAddress) {
        let mut verdict = self.verdict.clone();
        let is_other = |verdict: &Verdict| !matches!(verdict, Verdict::Named(address) if address == server);
        // An error means that nothing is followed any more.
        let _ = verdict.wait_for(is_other).await;
    }

    /// Asks all Sentinels at once.
    pub(super) fn look(&self) {
        self.look.notify_waiters();
    }
}

async fn keep_judging(mut answers: watch::Receiver<Vec<Option<Answer>>>, sender: watch::Sender<Verdict>) {
    let began = Instant::now();
    loop {
        let named = judge(&answers.borrow_and_update(), Instant::now());
        let verdict = match named {
            Some(address) => Verdict::Named(address),
            None if *sender.borrow() == Verdict::Awaited && began.elapsed() < CONNECT_TIMEOUT => {
                Verdict::Awaited
            }
            None => Verdict::Missing,
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

fn announce(verdict: &Verdict) {
    if let Verdict::Named(ServerAddress { host, port }) = verdict {
        tracing::info!(
            server.address = host,
            server.port = port,
            "the master of the store"
        );
    } else {
        tracing::warn!("no majority of the Sentinels names a master: the store is not used");
    }
}

/// The master by the last answers, one slot for each Sentinel.
fn judge(answers: &[Option<Answer>], now: Instant) -> Option<ServerAddress> {
    let fresh = answers.iter().flatten();
    let fresh = fresh.filter(|answer| now.saturating_duration_since(answer.sent_at) < FRESH);
    let mut fresh: Vec<&Answer> = fresh.collect();
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

/// One of the Sentinels, which is asked.
struct Sentinel {
    client: Client,
    master: String,
    /// Its place among the answers.
    at: usize,
    answers: Answers,
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

    /// The epoch is read before the address: between the two a Sentinel may learn of a newer master, and then an older epoch with the
    /// new address does no harm, as a newer one with the old address would.
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
        // Once a replica is promoted, the Sentinel that did it names its address, before it counts the failover as done.
        let is_old = fact("ip") == host && fact("port") == port.to_string();
        let answer = Answer {
            sent_at,
            epoch: epoch.map_err(|_| unexpected())?,
            master: ServerAddress { host, port },
            is_replacing: is_begun && is_old,
        };
        self.answers
            .send_modify(|answers| answers[self.at] = Some(answer));
        Ok(())
    }

    /// Subscribes to its announcements, if it permits that: answers alone are enough, and slower.
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
    (ErrorKind::UnexpectedReturnType, "a Sentinel says something else").into()
}

/// The next announcement; never, where there are none.
async fn next(announced: &mut Option<PubSubStream>) {
    if let Some(stream) = announced {
        if stream.next().await.is_some() {
            return;
        }
        // Its connection broke; the one that asks notices if there is more to it.
        *announced = None;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The port of the master, by answers as (milliseconds ago, epoch, port, replacing).
    fn judged(answers: &[Option<(u64, u64, u16, bool)>]) -> Option<u16> {
        let now = Instant::now() + Duration::from_secs(60);
        let answer = |(ago, epoch, port, is_replacing)| Answer {
            sent_at: now - Duration::from_millis(ago),
            epoch,
            master: ServerAddress {
                host: "10.0.0.1".to_owned(),
                port,
            },
            is_replacing,
        };
        let answers: Vec<Option<Answer>> = answers.iter().map(|given| given.map(answer)).collect();
        judge(&answers, now).map(|address| address.port)
    }

    #[test]
    fn an_answer_of_a_newer_epoch_counts_more_than_two_of_an_older() {
        let old = Some((1, 5, 1, false));
        assert_eq!(judged(&[old, Some((1, 6, 2, false)), old]), Some(2));
    }

    #[test]
    fn without_a_majority_there_is_no_master() {
        let answer = Some((1, 5, 1, false));
        assert_eq!(judged(&[answer, answer, None]), Some(1));
        assert_eq!(judged(&[answer, None, None]), None);
        assert_eq!(judged(&[answer, None]), None);
        assert_eq!(judged(&[None]), None);
    }

    #[test]
    fn old_answers_do_not_count() {
        let (fresh, old) = (Some((699, 5, 1, false)), Some((700, 5, 1, false)));
        assert_eq!(judged(&[fresh, fresh, old]), Some(1));
        assert_eq!(judged(&[fresh, old, old]), None);
    }

    #[test]
    fn a_master_that_is_being_replaced_is_none() {
        let (answer, replacing) = (Some((1, 5, 1, false)), Some((1, 5, 1, true)));
        assert_eq!(judged(&[replacing, answer, answer]), None);
        assert_eq!(judged(&[replacing, Some((1, 6, 2, false)), answer]), Some(2));
    }

    #[test]
    fn most_answers_decide_between_two_names_in_one_epoch() {
        let (one, other) = (Some((1, 5, 1, false)), Some((1, 5, 2, false)));
        assert_eq!(judged(&[one, other, other]), Some(2));
    }
}
