//! Being woken when another replica has written a session: one subscription to the store's events for all who wait.
//!
//! Invariants
//! - Who listens first and looks at the session then misses nothing: a wake between the two is kept.
//! - An event that cannot be read, a gap, and the end of the subscription wake everybody: they look for themselves.
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
use crate::store::StoreUpdate;

/// Pauses between two looks at a session while there is no subscription: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Pause between two looks during a subscription: for a holder that died or met a failure, which writes nothing.
const PAUSE_WHEN_SUBSCRIBED: Duration = Duration::from_secs(1);

/// Pause after a write: whoever wrote gives the lease back a round trip later.
const PAUSE_AFTER_WRITE: Duration = Duration::from_millis(20);

/// Pause before the next attempt to subscribe.
const LISTEN_AGAIN: Duration = Duration::from_millis(500);

/// Wakes those who wait for another replica.
pub(super) struct Wakes {
    shared: Arc<WakeTable>,
    keeper: Keeper,
    over: CancellationToken,
    _ends: DropGuard,
}

#[derive(Default)]
struct WakeTable {
    waiting: Mutex<HashMap<Handle, watch::Sender<()>>>,
    listening: AtomicBool,
    is_subscribed: AtomicBool,
}

/// One who waits for a session to be written.
pub(super) struct WriteListener {
    shared: Arc<WakeTable>,
    handle: Handle,
    written: watch::Receiver<()>,
    pause: Duration,
    was_written: bool,
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
    pub(super) fn listen(&self, handle: Handle) -> WriteListener {
        let listener = self.shared.add(handle);
        if !self.shared.listening.swap(true, Ordering::SeqCst) {
            let (shared, keeper) = (Arc::downgrade(&self.shared), self.keeper.clone());
            let over = self.over.clone();
            tokio::spawn(async move { over.run_until_cancelled(listen(shared, keeper)).await });
        }
        listener
    }
}

impl WakeTable {
    fn waiting(&self) -> MutexGuard<'_, HashMap<Handle, watch::Sender<()>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, handle: Handle) -> WriteListener {
        let mut waiting = self.waiting();
        let sender = waiting.entry(handle).or_insert_with(|| watch::Sender::new(()));
        WriteListener {
            shared: Arc::clone(self),
            handle,
            written: sender.subscribe(),
            pause: FIRST_PAUSE,
            was_written: false,
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

    fn set_subscribed(&self, is_subscribed: bool) {
        self.is_subscribed.store(is_subscribed, Ordering::SeqCst);
        self.wake_all();
    }
}

impl WriteListener {
    /// Returns when the session was written, when it is time to look all the same, or for no reason at all.
    pub(super) async fn wait(&mut self) {
        let pause = if self.was_written {
            PAUSE_AFTER_WRITE
        } else if self.shared.is_subscribed.load(Ordering::SeqCst) {
            PAUSE_WHEN_SUBSCRIBED
        } else {
            let pause = self.pause;
            self.pause = (pause * 2).min(LONGEST_PAUSE);
            pause
        };
        // Woken or timed out: the session is read either way.
        let woken = tokio::time::timeout(pause, self.written.changed()).await;
        self.was_written = woken.is_ok();
    }
}

impl Drop for WriteListener {
    fn drop(&mut self) {
        if let Entry::Occupied(entry) = self.shared.waiting().entry(self.handle)
            && entry.get().receiver_count() <= 1
        {
            entry.remove();
        }
    }
}

async fn listen(shared: Weak<WakeTable>, keeper: Keeper) {
    loop {
        read_events(&shared, &keeper).await;
        match shared.upgrade() {
            Some(shared) => shared.set_subscribed(false),
            None => return,
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

/// Reads events until the subscription ends.
async fn read_events(shared: &Weak<WakeTable>, keeper: &Keeper) {
    let Ok(mut published) = keeper.store().published(None).await else {
        return;
    };
    match shared.upgrade() {
        Some(shared) => shared.set_subscribed(true),
        None => return,
    }
    while let Some(Ok(published)) = published.next().await {
        let Some(shared) = shared.upgrade() else { return };
        match published {
            StoreUpdate::Missed => shared.wake_all(),
            // Marks have empty events.
            StoreUpdate::Event { payload, .. } if payload.is_empty() || shared.waiting().is_empty() => {}
            StoreUpdate::Event { payload, .. } => match keeper.seal().open_change(&payload) {
                Ok(change) => shared.wake(change.handle),
                Err(_) => shared.wake_all(),
            },
        }
    }
}
