//! Streams that are open on behalf of sessions: WebSockets, event streams, long downloads and uploads. They end with their
//! session, whatever ended it and wherever.
//!
//! Invariants
//! - A stream is left alone while what is heard vouches for its session ([`Listening`]), and its session is read again where
//!   it does not: at first, after every change, before it expires, and again and again while endings cannot be heard.
//! - A session that is not there any more ends its streams; a session service that cannot be reached ends none.
//! - Nothing is kept of a session whose streams are over. Requests with small answers never come here.
//!
//! An ending is acted on after [`LOOK_EVERY`] and one read where it is heard, and otherwise after
//! [`SILENCE_MAX`](super::SILENCE_MAX) more: within a second.

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
use super::listening::{Handle, Listening, Moment};

/// How often all of them are looked at; looking costs no call.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A session is not read again sooner: one that changes all the time, and all while nothing is heard.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// How long one read may take: a replica that hangs is passed over at the next look.
const READ_MAX: Duration = Duration::from_millis(500);

/// Changes are remembered for at least so long: until every look that was due has been.
pub(super) const CHANGES_KEPT_MIN: Duration = Duration::from_secs(5);

/// Sessions read at once.
const READS_AT_ONCE: usize = 64;

/// The streams of one session.
struct SessionStreams {
    ended: CancellationToken,
    streams: usize,
    /// When the session was read last and was there.
    read: Option<Moment>,
    /// Whether it has to be read again.
    doubted: bool,
    expires_ms: u64,
}

/// All streams that are open. Clones share them.
#[derive(Clone)]
pub(crate) struct OpenStreams(Arc<Inner>);

struct Inner {
    client: SessionClient,
    clock: Arc<dyn Clock>,
    listening: Arc<Listening>,
    sessions: Mutex<HashMap<Handle, SessionStreams>>,
}

/// One stream that is open, until dropped.
pub(crate) struct OpenStream {
    of: OpenStreams,
    handle: Handle,
    ended: CancellationToken,
}

impl OpenStreams {
    /// No stream is open yet; the cache listens to changes. Needs a tokio runtime.
    pub(crate) fn start(client: SessionClient, clock: Arc<dyn Clock>, cache: &SessionCache) -> Self {
        let streams = Arc::new(Inner {
            client,
            clock,
            listening: Arc::clone(&cache.listening),
            sessions: Mutex::default(),
        });
        tokio::spawn(look_after(Arc::downgrade(&streams)));
        tokio::spawn(read_doubted(Arc::downgrade(&streams)));
        Self(streams)
    }

    /// A stream that opens on behalf of the session of this handle.
    #[must_use]
    pub(crate) fn open(&self, handle: &str) -> OpenStream {
        let handle: Handle = handle.into();
        let mut sessions = self.0.lock();
        let open = sessions.entry(handle.clone()).or_insert_with(|| SessionStreams {
            ended: CancellationToken::new(),
            streams: 0,
            read: None,
            doubted: true,
            expires_ms: 0,
        });
        open.streams += 1;
        // What the guard knew may be older than what the others were left alone for.
        open.doubted = true;
        OpenStream {
            of: self.clone(),
            ended: open.ended.clone(),
            handle,
        }
    }

    /// How many sessions have streams that are open.
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

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, SessionStreams>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Doubts every session that nothing vouches for any more.
    fn look(&self) {
        let (now, clock_ms) = (self.listening.now(), self.clock.now_ms());
        for (handle, open) in self.lock().iter_mut().filter(|(_, open)| !open.doubted) {
            let vouched = open
                .read
                .is_some_and(|read| self.listening.vouches_for(handle, read, now));
            open.doubted = !vouched || open.expires_ms <= clock_ms.saturating_add(CLOCK_DIFFERENCE_MS);
        }
    }

    /// The sessions that have to be read again now.
    fn due(&self) -> Vec<Handle> {
        let now = self.listening.now();
        let is_due = |open: &SessionStreams| {
            let rested = open.read.is_none_or(|read| now.since(read) >= READ_AGAIN_AFTER);
            open.doubted && rested && !open.ended.is_cancelled()
        };
        let sessions = self.lock();
        let due = sessions.iter().filter(|(_, open)| is_due(open));
        due.map(|(handle, _)| handle.clone()).collect()
    }

    /// Reads a session again, and ends its streams if it is not there.
    async fn read(&self, handle: Handle) {
        let requested_at = self.listening.now();
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
                // What has changed since is doubted anew by the next look.
                open.doubted = false;
                if session.sign_in_demand.is_some() {
                    tracing::info!(session = %handle, streams = open.streams, "a session owes a sign-in, and its streams end");
                    open.ended.cancel();
                }
            }
            Ok(Err(error)) if error.reason == ErrorReason::ErrMissingSession => {
                tracing::info!(session = %handle, streams = open.streams, "a session ended, and its streams with it");
                open.ended.cancel();
            }
            // Nothing is known: read again at the next look.
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Looks at all of them, for as long as somebody holds them. Apart from reading, so that no change is forgotten unseen.
async fn look_after(streams: Weak<Inner>) {
    let mut looks = ticks();
    loop {
        looks.tick().await;
        let Some(streams) = streams.upgrade() else {
            return;
        };
        streams.look();
    }
}

/// Reads those that are doubted, for as long as somebody holds them.
async fn read_doubted(streams: Weak<Inner>) {
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
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl OpenStream {
    /// Is over once the session has ended.
    pub(crate) fn ended(&self) -> WaitForCancellationFutureOwned {
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
