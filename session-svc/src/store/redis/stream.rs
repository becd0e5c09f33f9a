//! One stream of published events. Each replica reads it once, for all its listeners.
//!
//! Invariants
//! - Positions are the stream's own entry IDs. A listener resumes by reading the stream itself.
//! - A gap is never silent: every read also checks that the stream still has the last entry of the read before.
//!   The stream drops the oldest entries first, so if that entry is there, no later one was dropped.
//! - If the server does not answer within `READ_TIMEOUT`, answers late or is no longer the master, every
//!   listener's stream ends with an error. The time of the request counts, not that of the answer.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use futures_util::stream::{self, BoxStream, StreamExt as _};
use redis::{ErrorKind, Pipeline, RedisResult, ServerErrorKind, Value};
use tokio::sync::{Semaphore, broadcast, watch};

use crate::store::StoreError;

use super::answers::unavailable;
use super::entries::{EntryContent, Id, StreamEntry, unexpected};
use super::pool::{CheckedConnection, WorkerConnection};
use super::source::not_the_master;

/// Longest wait in a blocking read. The server then answers "nothing", which proves that it is there.
const READ_WAIT: Duration = Duration::from_millis(200);

/// Longest round trip of a read, without the server's wait: the maximum age of its result.
const LATE: Duration = Duration::from_millis(250);

/// Without an answer for this long, the subscription is lost: endings must be visible within a second.
const READ_TIMEOUT: Duration = READ_WAIT.saturating_add(LATE);

/// Pause before connecting again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// How long a new listener waits for the reader to connect. A cluster needs some thirty handshakes.
const FIRST_CONNECTED: Duration = Duration::from_secs(5);

/// A slow listener may lag in memory by 1/`BEHIND_ONE_IN` of the kept events. After that it reads the stream.
const BEHIND_ONE_IN: u64 = 8;

/// Entries read at a time.
const READ_AT_ONCE: usize = 256;

/// How long, and how often, an event is retried after its write (cluster only).
const PUBLISH_FOR: Duration = Duration::from_secs(30);
const PUBLISH_PAUSE: Duration = Duration::from_millis(200);

/// Adds an event. XTRIM comes first: a server without memory rejects XADD only as the script's first write,
/// and endings must be published when the server is full.
const ADD: &str = r"
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[1])
return redis.call('XADD', KEYS[1], '*', ARGV[2], ARGV[3])
";

/// Messages from the reader to its listeners.
#[derive(Clone)]
enum TailItem {
    Entry(StreamEntry),
    /// Some entries were dropped: the listener has to read the stream itself.
    Gap,
    /// The server does not answer.
    Cut,
}

#[derive(Debug, thiserror::Error)]
#[error("published events cannot be received at the moment")]
struct EventsUnavailable;

pub(super) fn events_unavailable() -> StoreError {
    StoreError::Unavailable(Box::new(EventsUnavailable))
}

/// The events of one stream, each with its position, and gaps.
pub(super) type EntryStream = BoxStream<'static, Result<StreamEntry, StoreError>>;

/// The events of one stream.
pub(super) struct StreamFeed {
    connection: WorkerConnection,
    pub(super) key: Vec<u8>,
    /// Events kept for resuming.
    kept: u64,
    /// Pause after a read that returned entries, so that the next read returns later ones together.
    pause: Duration,
    /// Held while connecting: streams connect one at a time, so that handshakes do not delay connected streams.
    turn: Arc<Semaphore>,
    tail: broadcast::Sender<TailItem>,
    connected: watch::Sender<bool>,
    /// Set when the reader starts.
    reader: OnceLock<()>,
}

impl StreamFeed {
    pub(super) fn new(
        connection: WorkerConnection,
        key: Vec<u8>,
        kept: u64,
        pause: Duration,
        turn: Arc<Semaphore>,
    ) -> Arc<Self> {
        let behind = usize::try_from(kept / BEHIND_ONE_IN).unwrap_or(1).max(1);
        Arc::new(Self {
            connection,
            key,
            kept,
            pause,
            turn,
            tail: broadcast::Sender::new(behind),
            connected: watch::Sender::new(false),
            reader: OnceLock::new(),
        })
    }

    /// Streams the events after `after`.
    pub(super) async fn follow(self: &Arc<Self>, after: Id) -> Result<EntryStream, StoreError> {
        self.reader
            .get_or_init(|| drop(tokio::spawn(read_on(Arc::downgrade(self)))));
        let mut connected = self.connected.subscribe();
        let first = tokio::time::timeout(FIRST_CONNECTED, connected.wait_for(|connected| *connected)).await;
        if !first.is_ok_and(|first| first.is_ok()) {
            return Err(events_unavailable());
        }
        let mut follower = FeedFollower {
            tail: self.tail.subscribe(),
            feed: Arc::clone(self),
            last: after,
            behind: true,
            pending: VecDeque::new(),
        };
        // The listener does not receive a cut from before `subscribe`.
        if !*self.connected.borrow() {
            return Err(events_unavailable());
        }
        // Now, not at the first poll: the listener then receives every later cut.
        follower.catch_up().await?;
        Ok(follower.stream())
    }

    /// Publishes an event that the script of its write could not publish. If the server is away, retries in the
    /// background. The caller waits at most until every listener has received an error.
    pub(super) async fn publish(self: &Arc<Self>, content: EntryContent) {
        if !matches!(
            tokio::time::timeout(READ_TIMEOUT, self.add(&content)).await,
            Ok(Ok(_))
        ) {
            self.publish_later(content);
        }
    }

    /// Publishes in the background.
    pub(super) fn publish_later(self: &Arc<Self>, content: EntryContent) {
        let feed = Arc::clone(self);
        tokio::spawn(async move {
            let since = Instant::now();
            while let Err(error) = feed.add(&content).await {
                if since.elapsed() > PUBLISH_FOR {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "an event could not be published in time and is lost"
                    );
                    return;
                }
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "an event could not be published yet and is retried"
                );
                tokio::time::sleep(PUBLISH_PAUSE).await;
            }
        });
    }

    async fn add(&self, content: &EntryContent) -> RedisResult<String> {
        let mut command = redis::cmd("EVAL");
        command.arg(ADD).arg(1).arg(&self.key).arg(self.kept);
        match content {
            EntryContent::Event(payload) => command.arg("e").arg(&payload[..]),
            EntryContent::Mark => command.arg("mark").arg(""),
            EntryContent::Gap => command.arg("gap").arg(""),
        };
        self.connection.once(&command).await
    }

    fn ask_for_newest(&self) -> redis::Cmd {
        let mut command = redis::cmd("XREVRANGE");
        command.arg(&self.key).arg("+").arg("-").arg("COUNT").arg(1);
        command
    }

    /// ID of the newest entry. In an empty stream, creates an entry.
    pub(super) async fn newest(&self) -> RedisResult<Id> {
        let entries: Vec<StreamEntry> = self.connection.read(&self.ask_for_newest()).await?;
        match entries.first() {
            Some(entry) => Ok(entry.id),
            None => Ok(Id::parse(&self.add(&EntryContent::Mark).await?).ok_or_else(unexpected)?),
        }
    }

    /// Entries after `last`, and whether the stream still has all of them.
    async fn after(&self, last: Id) -> RedisResult<(Vec<StreamEntry>, bool)> {
        let mut pipeline = Pipeline::new();
        pipeline
            .cmd("XRANGE")
            .arg(&self.key)
            .arg(format!("({last}"))
            .arg("+")
            .arg("COUNT")
            .arg(READ_AT_ONCE);
        still_there(&mut pipeline, &self.key, last);
        let (entries, began): (Vec<_>, Vec<StreamEntry>) = self.connection.together(&pipeline).await?;
        Ok((entries, !began.is_empty()))
    }
}

fn still_there(pipeline: &mut Pipeline, key: &[u8], last: Id) {
    pipeline
        .cmd("XRANGE")
        .arg(key)
        .arg(last.to_string())
        .arg(last.to_string());
}

/// Reads the stream for all listeners until the store is dropped.
async fn read_on(shared: Weak<StreamFeed>) {
    while let Some(alive) = shared.upgrade() {
        let began = begin(&alive).await;
        drop(alive);
        let outcome = match began {
            Ok((mut connection, last)) => listen(&shared, &mut connection, last).await,
            Err(error) => Err(error),
        };
        let Some(alive) = shared.upgrade() else { return };
        if let Err(error) = outcome {
            if alive.connected.send_replace(false) {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "published events cannot be received"
                );
            }
            let _ = alive.tail.send(TailItem::Cut);
            alive.connection.report_break();
        }
        drop(alive);
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

async fn begin(shared: &StreamFeed) -> RedisResult<(CheckedConnection, Id)> {
    let turn = shared.turn.acquire().await;
    let mut connection = shared.connection.listener(&shared.key, READ_TIMEOUT).await?;
    drop(turn);
    let last = shared.newest().await?;
    // The stream counts as read only after a timely answer on this connection.
    let question = shared.ask_for_newest();
    in_time(LATE, connection.wire.ask::<Value>(&question)).await?;
    if !shared.connected.send_replace(true) {
        tracing::info!("published events are received");
    }
    Ok((connection, last))
}

/// Returns an answer that came within `bound` of its question. Also fails if this process was suspended.
async fn in_time<T>(bound: Duration, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let sent_at = Instant::now();
    match tokio::time::timeout(bound, answer).await {
        Ok(answer) if sent_at.elapsed() <= bound => answer,
        _ => Err((ErrorKind::Io, "the answer came too late").into()),
    }
}

async fn listen(
    shared: &Weak<StreamFeed>,
    connection: &mut CheckedConnection,
    mut last: Id,
) -> RedisResult<()> {
    loop {
        in_time(LATE, connection.check()).await?;
        let Some(alive) = shared.upgrade() else {
            return Ok(());
        };
        let mut pipeline = Pipeline::new();
        let wait_ms = u64::try_from(READ_WAIT.as_millis()).unwrap_or(0);
        pipeline
            .cmd("XREAD")
            .arg("COUNT")
            .arg(READ_AT_ONCE)
            .arg("BLOCK")
            .arg(wait_ms);
        pipeline.arg("STREAMS").arg(&alive.key).arg(last.to_string());
        still_there(&mut pipeline, &alive.key, last);
        drop(alive);
        let mut wire = connection.wire.clone();
        let answer = tokio::select! {
            answer = in_time(READ_TIMEOUT, wire.ask_all::<Read>(&pipeline)) => answer,
            () = connection.wait_until_replaced() => Err(not_the_master()),
        };
        let Some(alive) = shared.upgrade() else {
            return Ok(());
        };
        let (read, began) = match answer {
            // The stream has moved to another node of the cluster, with all entries.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::Moved) => {
                let moved = alive.connection.listener(&alive.key, READ_TIMEOUT);
                *connection = in_time(LATE, moved).await?;
                continue;
            }
            answer => answer?,
        };
        if began.is_empty() {
            let _ = alive.tail.send(TailItem::Gap);
            last = alive.newest().await?;
            continue;
        }
        let pause = alive.pause;
        // The read timed out without new entries.
        let Some((_, entries)) = read.into_iter().next() else {
            continue;
        };
        for entry in entries {
            last = entry.id;
            let _ = alive.tail.send(TailItem::Entry(entry));
        }
        drop(alive);
        tokio::time::sleep(pause).await;
    }
}

/// The streams with their entries, and the entry before them if it still exists.
type Read = (Vec<(Value, Vec<StreamEntry>)>, Vec<StreamEntry>);

struct FeedFollower {
    feed: Arc<StreamFeed>,
    tail: broadcast::Receiver<TailItem>,
    last: Id,
    /// Whether the listener has to read the stream before it uses the tail.
    behind: bool,
    pending: VecDeque<StreamEntry>,
}

impl FeedFollower {
    fn stream(self) -> EntryStream {
        stream::try_unfold(self, |mut follower| async move {
            let next = follower.next().await?;
            Ok(Some((next, follower)))
        })
        .boxed()
    }

    async fn next(&mut self) -> Result<StreamEntry, StoreError> {
        loop {
            if let Some(published) = self.pending.pop_front() {
                return Ok(published);
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            match self.tail.recv().await {
                Ok(TailItem::Entry(entry)) => self.take(entry),
                Ok(TailItem::Gap) | Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                Ok(TailItem::Cut) | Err(broadcast::error::RecvError::Closed) => {
                    return Err(events_unavailable());
                }
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let (entries, intact) = self.feed.after(self.last).await.map_err(unavailable)?;
        if !intact {
            return self.skip().await;
        }
        self.behind = entries.len() == READ_AT_ONCE;
        entries.into_iter().for_each(|entry| self.take(entry));
        Ok(())
    }

    /// Continues at the newest entry, and reports a gap.
    async fn skip(&mut self) -> Result<(), StoreError> {
        self.last = self.feed.newest().await.map_err(unavailable)?;
        self.behind = false;
        self.pending.push_back(StreamEntry {
            id: self.last,
            content: EntryContent::Gap,
        });
        Ok(())
    }

    fn take(&mut self, entry: StreamEntry) {
        if entry.id > self.last {
            self.last = entry.id;
            if !matches!(entry.content, EntryContent::Mark) {
                self.pending.push_back(entry);
            }
        }
    }
}
