//! Open streams of sessions: WebSockets, event streams, long downloads and uploads. They end with their
//! session, for any reason and at any place.
//!
//! Invariants
//! - A stream stays open while [`ReplicaFreshness`] confirms its session. Otherwise the session is read again: at
//!   first, after every change, before it expires, and repeatedly while endings cannot be received.
//! - An ended session ends its streams; an unreachable session service ends none.
//! - A session without streams takes no memory. Requests with small responses never come here.
//!
//! A stream ends within a second: after [`CHECK_INTERVAL`] and one read, and [`SILENCE_MAX`](super::SILENCE_MAX)
//! more if the edge does not receive the ending.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use chassis::clock::Clock;
use futures_util::StreamExt as _;
use futures_util::stream;
use session_proto::client::SessionClient;
use session_proto::timestamp;
use session_proto::v1::{ErrorReason, GetSessionRequest, get_session_request};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::cache::{CLOCK_DIFFERENCE_MS, SessionCache};
use super::replica_freshness::{Handle, Moment, ReplicaFreshness};

/// How often all streams are checked; a check costs no call.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The shortest time between two reads of a session that changes often, or while a replica is silent.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The deadline of one read. If a replica hangs, the next check reads again.
const READ_MAX: Duration = Duration::from_millis(500);

/// Changes are kept at least this long, so that every check that is due sees them.
pub(super) const CHANGES_KEPT_MIN: Duration = Duration::from_secs(5);

/// Sessions read at once.
const READS_AT_ONCE: usize = 64;

/// The streams of one session.
struct SessionStreams {
    ended: CancellationToken,
    streams: usize,
    /// When the session was last read and existed.
    read: Option<Moment>,
    /// Whether it must be read again.
    needs_recheck: bool,
    expires_ms: u64,
}

/// All open streams. Clones share them.
#[derive(Clone)]
pub(crate) struct OpenStreams(Arc<StreamRegistry>);

struct StreamRegistry {
    client: SessionClient,
    clock: Arc<dyn Clock>,
    freshness: Arc<ReplicaFreshness>,
    sessions: Mutex<HashMap<Handle, SessionStreams>>,
}

/// One open stream, until it is dropped.
pub(crate) struct OpenStream {
    of: OpenStreams,
    handle: Handle,
    ended: CancellationToken,
}

impl OpenStreams {
    /// Starts without streams; the cache receives the changes. Needs a tokio runtime.
    pub(crate) fn start(client: SessionClient, clock: Arc<dyn Clock>, cache: &SessionCache) -> Self {
        let streams = Arc::new(StreamRegistry {
            client,
            clock,
            freshness: Arc::clone(&cache.freshness),
            sessions: Mutex::default(),
        });
        tokio::spawn(run_checks(Arc::downgrade(&streams)));
        tokio::spawn(recheck_sessions(Arc::downgrade(&streams)));
        Self(streams)
    }

    /// Opens a stream for the session of this handle.
    #[must_use]
    pub(crate) fn open(&self, handle: &str) -> OpenStream {
        let handle: Handle = handle.into();
        let mut sessions = self.0.lock();
        let open = sessions.entry(handle.clone()).or_insert_with(|| SessionStreams {
            ended: CancellationToken::new(),
            streams: 0,
            read: None,
            needs_recheck: true,
            expires_ms: 0,
        });
        open.streams += 1;
        // The guard's read may be older than the read that keeps the other streams open.
        open.needs_recheck = true;
        OpenStream {
            of: self.clone(),
            ended: open.ended.clone(),
            handle,
        }
    }

    /// How many sessions have open streams.
    #[must_use]
    pub(crate) fn sessions(&self) -> usize {
        self.0.lock().len()
    }

    /// How many streams are open.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.0.lock().values().map(|open| open.streams).sum()
    }
}

impl StreamRegistry {
    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, SessionStreams>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks every session that [`ReplicaFreshness`] no longer confirms.
    fn look(&self) {
        let (now, clock_ms) = (self.freshness.now(), self.clock.now_ms());
        for (handle, open) in self.lock().iter_mut().filter(|(_, open)| !open.needs_recheck) {
            let vouched = open
                .read
                .is_some_and(|read| self.freshness.is_unchanged(handle, read, now));
            open.needs_recheck = !vouched || open.expires_ms <= clock_ms.saturating_add(CLOCK_DIFFERENCE_MS);
        }
    }

    /// The sessions that must be read again now.
    fn due(&self) -> Vec<Handle> {
        let now = self.freshness.now();
        let is_due = |open: &SessionStreams| {
            let rested = open.read.is_none_or(|read| now.since(read) >= READ_AGAIN_AFTER);
            open.needs_recheck && rested && !open.ended.is_cancelled()
        };
        let sessions = self.lock();
        let due = sessions.iter().filter(|(_, open)| is_due(open));
        due.map(|(handle, _)| handle.clone()).collect()
    }

    /// Reads a session again, and ends its streams if it no longer exists.
    async fn read(&self, handle: Handle) {
        let requested_at = self.freshness.now();
        let by = Some(get_session_request::By::Handle(handle.to_string()));
        let answer = timeout(READ_MAX, self.client.get_session(GetSessionRequest { by })).await;
        let mut sessions = self.lock();
        let Some(open) = sessions.get_mut(&handle) else {
            return;
        };
        match answer {
            Ok(Ok(read)) => {
                let session = read.session.unwrap_or_default();
                open.expires_ms = session.expires_at.as_ref().map_or(0, timestamp::to_ms);
                open.read = Some(requested_at);
                // The next check finds any later change.
                open.needs_recheck = false;
                if session.sign_in_demand.is_some() {
                    tracing::info!(session = %handle, streams = open.streams, "a session requires a new sign-in: its streams end");
                    open.ended.cancel();
                }
            }
            Ok(Err(error)) if error.reason == ErrorReason::ErrMissingSession => {
                tracing::info!(session = %handle, streams = open.streams, "a session ended: its streams end");
                open.ended.cancel();
            }
            // The result is unknown: read again at the next check.
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Checks all streams while `streams` has an owner. Reads run elsewhere, so that no change expires unseen.
async fn run_checks(streams: Weak<StreamRegistry>) {
    let mut looks = ticks();
    loop {
        looks.tick().await;
        let Some(streams) = streams.upgrade() else {
            return;
        };
        streams.look();
    }
}

/// Reads the marked sessions while `streams` has an owner.
async fn recheck_sessions(streams: Weak<StreamRegistry>) {
    let mut reads = ticks();
    loop {
        reads.tick().await;
        let Some(streams) = streams.upgrade() else {
            return;
        };
        let due = stream::iter(streams.due());
        due.for_each_concurrent(READS_AT_ONCE, |handle| streams.read(handle))
            .await;
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl OpenStream {
    /// Completes once the session has ended.
    pub(crate) fn wait_for_end(&self) -> WaitForCancellationFutureOwned {
        self.ended.clone().cancelled_owned()
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut sessions = self.of.0.lock();
        if let Some(open) = sessions.get_mut(&self.handle) {
            open.streams -= 1;
            if open.streams == 0 {
                sessions.remove(&self.handle);
            }
        }
    }
}
