//! Being woken when another replica has written a session: one subscription to the store's events for all who wait.
//!
//! Invariants
//! - Who listens first and looks at the session then misses nothing: a wake between the two is kept.
//! - An event that cannot be read, a gap, and the end of hearing wake everybody: they look for themselves.
//! - Events are opened only while somebody waits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::keeper::Keeper;
use crate::session::Handle;
use crate::store::Published;

/// Pauses between two looks at a session while events are not heard: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Pause between two looks while events are heard: for a holder that died or met a failure, which writes nothing.
const PAUSE_WHEN_HEARD: Duration = Duration::from_secs(1);

/// Pause before events are asked for again.
const LISTEN_AGAIN: Duration = Duration::from_millis(500);

/// Wakes those who wait for another replica.
pub(super) struct Wakes {
    shared: Arc<Shared>,
    keeper: Keeper,
    over: CancellationToken,
    _ends: DropGuard,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<HashMap<Handle, watch::Sender<()>>>,
    listening: AtomicBool,
    heard: AtomicBool,
}

/// One who waits for a session to be written.
pub(super) struct Awaiting {
    shared: Arc<Shared>,
    handle: Handle,
    written: watch::Receiver<()>,
    pause: Duration,
}

impl Wakes {
    /// Listens once somebody waits.
    pub(super) fn new(keeper: Keeper) -> Self {
        let over = CancellationToken::new();
        Self {
            shared: Arc::default(),
            keeper,
            _ends: over.clone().drop_guard(),
            over,
        }
    }

    /// Waits for writes of a session from now on.
    pub(super) fn listen(&self, handle: Handle) -> Awaiting {
        let awaiting = self.shared.add(handle);
        if !self.shared.listening.swap(true, Ordering::SeqCst) {
            let (shared, keeper) = (Arc::downgrade(&self.shared), self.keeper.clone());
            let over = self.over.clone();
            tokio::spawn(async move { over.run_until_cancelled(listen(shared, keeper)).await });
        }
        awaiting
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, HashMap<Handle, watch::Sender<()>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, handle: Handle) -> Awaiting {
        let mut waiting = self.waiting();
        let sender = waiting.entry(handle).or_insert_with(|| watch::Sender::new(()));
        Awaiting {
            shared: Arc::clone(self),
            handle,
            written: sender.subscribe(),
            pause: FIRST_PAUSE,
        }
    }

    fn wake(&self, handle: Handle) {
        if let Some(sender) = self.waiting().get(&handle) {
            sender.send_replace(());
        }
    }

    fn wake_all(&self) {
        for sender in self.waiting().values() {
            sender.send_replace(());
        }
    }

    fn set_heard(&self, heard: bool) {
        self.heard.store(heard, Ordering::SeqCst);
        self.wake_all();
    }
}

impl Awaiting {
    /// Returns when the session was written, when it is time to look all the same, or for no reason at all.
    pub(super) async fn wait(&mut self) {
        let pause = if self.shared.heard.load(Ordering::SeqCst) {
            PAUSE_WHEN_HEARD
        } else {
            let pause = self.pause;
            self.pause = (pause * 2).min(LONGEST_PAUSE);
            pause
        };
        // Late or told: looked at either way.
        let _ = tokio::time::timeout(pause, self.written.changed()).await;
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        if let Entry::Occupied(entry) = self.shared.waiting().entry(self.handle)
            && entry.get().receiver_count() <= 1
        {
            entry.remove();
        }
    }
}

async fn listen(shared: Weak<Shared>, keeper: Keeper) {
    loop {
        hear(&shared, &keeper).await;
        match shared.upgrade() {
            Some(shared) => shared.set_heard(false),
            None => return,
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

/// Reads events until they cannot be heard any more.
async fn hear(shared: &Weak<Shared>, keeper: &Keeper) {
    let Ok(mut published) = keeper.store().published(None).await else {
        return;
    };
    match shared.upgrade() {
        Some(shared) => shared.set_heard(true),
        None => return,
    }
    while let Some(Ok(published)) = published.next().await {
        let Some(shared) = shared.upgrade() else { return };
        match published {
            Published::Missed => shared.wake_all(),
            // Marks have empty events.
            Published::Event { payload, .. } if payload.is_empty() || shared.waiting().is_empty() => {}
            Published::Event { payload, .. } => match keeper.seal().open_change(&payload) {
                Ok(change) => shared.wake(change.handle),
                Err(_) => shared.wake_all(),
            },
        }
    }
}
