//! Asking Sentinels: which server is the master, again and again, and at once when one of them announces a change.
//!
//! Deliberately absent: Sentinels that are not configured. A majority is one of those that are, so all are to be named.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use redis::aio::{MultiplexedConnection, PubSubStream};
use redis::{Client, ErrorKind, RedisError, RedisResult};
use tokio::sync::{Notify, watch};

use super::quorum::SentinelAnswer;
use super::source::connection_config;
use crate::store::url::ServerAddress;

/// How often each Sentinel is queried.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Longest wait for an answer; one that takes longer leaves too little of `FRESH`.
const ASK_TIMEOUT: Duration = Duration::from_millis(400);

/// Longest wait for a subscription, TLS and authentication included.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_millis(1_000);

/// What Sentinels announce before they replace a master, while, and after. Announced first, some hundred milliseconds before
/// a replica is promoted: `+try-failover`.
const ANNOUNCED: [&str; 4] = [
    "+try-failover",
    "+selected-slave",
    "+promoted-slave",
    "+switch-master",
];

/// What the Sentinels said last, in the order they are configured.
pub(super) type Answers = watch::Sender<Vec<Option<SentinelAnswer>>>;

/// Queries the Sentinel at index `at` until the task is aborted.
pub(super) async fn ask_on(
    client: Client,
    master: String,
    at: usize,
    answers: Answers,
    look: std::sync::Arc<Notify>,
) {
    loop {
        if let Err(error) = ask_while_connected(&client, &master, at, &answers, &look).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                sentinel = at,
                "a Sentinel cannot be asked"
            );
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

async fn ask_while_connected(
    client: &Client,
    master: &str,
    at: usize,
    answers: &Answers,
    look: &Notify,
) -> RedisResult<()> {
    let config = connection_config(ASK_TIMEOUT);
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    answer(&mut connection, master, at, answers).await?;
    let mut announced = subscribed(client).await;
    loop {
        tokio::select! {
            () = tokio::time::sleep(ASK_EVERY) => {}
            () = look.notified() => {}
            () = next(&mut announced) => {}
        }
        answer(&mut connection, master, at, answers).await?;
    }
}

async fn answer(
    connection: &mut MultiplexedConnection,
    master: &str,
    at: usize,
    answers: &Answers,
) -> RedisResult<()> {
    let answer = ask(connection, master).await?;
    answers.send_modify(|answers| {
        if let Some(slot) = answers.get_mut(at) {
            *slot = Some(answer);
        }
    });
    Ok(())
}

/// The epoch is read before the address: between the two a Sentinel may learn of a newer master, and then an older epoch with the
/// new address does no harm, as a newer one with the old address would.
async fn ask(connection: &mut MultiplexedConnection, master: &str) -> RedisResult<SentinelAnswer> {
    let sent_at = Instant::now();
    let mut question = redis::pipe();
    question.cmd("SENTINEL").arg("MASTER").arg(master);
    question
        .cmd("SENTINEL")
        .arg("GET-MASTER-ADDR-BY-NAME")
        .arg(master);
    let (facts, (host, port)): (HashMap<String, String>, (String, u16)) =
        question.query_async(connection).await?;
    let number = |name: &str| facts.get(name).and_then(|value| value.parse::<u64>().ok());
    let known_as = facts.get("ip").zip(number("port"));
    let is_old = known_as.is_some_and(|(ip, its)| (ip, its) == (&host, u64::from(port)));
    let flags = facts.get("flags").map_or("", String::as_str);
    let is_begun = flags.split(',').any(|flag| flag == "failover_in_progress");
    Ok(SentinelAnswer {
        sent_at,
        epoch: number("config-epoch").ok_or_else(unexpected)?,
        master: ServerAddress { host, port },
        // Once a replica is promoted, the Sentinel that did it names its address, before it counts the failover as done.
        replacing: is_begun && is_old,
        replicas: number("num-slaves")
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(0),
    })
}

fn unexpected() -> RedisError {
    (ErrorKind::UnexpectedReturnType, "a Sentinel says something else").into()
}

/// What a Sentinel announces, if it lets us subscribe: queries alone are enough, and slower.
async fn subscribed(client: &Client) -> Option<PubSubStream> {
    let subscribing = async {
        let mut listener = client.get_async_pubsub().await?;
        listener.subscribe(&ANNOUNCED[..]).await?;
        RedisResult::Ok(listener.into_on_message())
    };
    match tokio::time::timeout(SUBSCRIBE_TIMEOUT, subscribing).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "a Sentinel's announcements cannot be heard"
            );
            None
        }
        Err(_) => None,
    }
}

/// The next announcement; never, where there are none.
async fn next(announced: &mut Option<PubSubStream>) {
    if let Some(stream) = announced {
        if stream.next().await.is_some() {
            return;
        }
        // Its connection broke; the one that queries will notice if there is more to it.
        *announced = None;
    }
    std::future::pending().await
}
