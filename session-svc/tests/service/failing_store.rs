//! A store that fails once: no session ends because of it, and no rejected request becomes valid.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use session_proto::timestamp;
use session_proto::v1::{self, ErrorReason};
use session_svc::store::embedded::EmbeddedStore;
use session_svc::store::{
    IndexEntry, Inserted, KeyValueStore, Lease, Listing, Loaded, Name, Record, Replaced, StoreError,
    StoreUpdate,
};

use crate::support::*;

/// The failing operation, and how often it works before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fails {
    Nothing,
    Load(u8),
    Insert(u8),
    /// Every list read.
    Lists,
    /// Each list begins with this many entries without a record.
    Records(u8),
}

/// Writes that are done and whose answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loses {
    Nothing,
    /// The answer of the next removal.
    RemoveAnswer,
    /// The answer of the next replacement.
    ReplaceAnswer,
    /// The answers of all replacements.
    ReplaceAnswers,
    /// The answer of the next removal; the caller's process dies before it arrives.
    Caller,
    /// The next removal is not confirmed: no other server has it, and another server becomes the master.
    Removal,
}

#[derive(Clone)]
pub(crate) struct FailingStore {
    inner: EmbeddedStore,
    fails: Arc<Mutex<Fails>>,
    loses: Arc<Mutex<Loses>>,
    refuses_removals: Arc<AtomicBool>,
    /// Whether this is a worker's own connection to the store.
    is_of_worker: bool,
    /// Records removed over a connection that is not a worker's.
    removed_elsewhere: Arc<Mutex<Vec<Name>>>,
    /// The record that other servers still have.
    elsewhere: Arc<Mutex<Option<Record>>>,
}

impl FailingStore {
    /// The store of `world`, with scripted failures.
    pub(crate) fn over(world: &World) -> Self {
        Self {
            inner: world.store.clone(),
            fails: Arc::new(Mutex::new(Fails::Nothing)),
            loses: Arc::new(Mutex::new(Loses::Nothing)),
            refuses_removals: Arc::default(),
            is_of_worker: false,
            removed_elsewhere: Arc::default(),
            elsewhere: Arc::default(),
        }
    }

    /// Rejects removals from now on, or accepts them again.
    pub(crate) fn refuses_removals(&self, refuses: bool) {
        self.refuses_removals.store(refuses, Ordering::SeqCst);
    }

    pub(crate) fn fails(&self, fails: Fails) {
        *self.fails.lock().unwrap() = fails;
    }

    pub(crate) fn loses(&self, loses: Loses) {
        *self.loses.lock().unwrap() = loses;
    }

    fn load_step(&self) -> Result<(), StoreError> {
        self.step(|fails| match fails {
            Fails::Load(left) => Some((left, Fails::Load(left.saturating_sub(1)))),
            Fails::Insert(_) | Fails::Lists | Fails::Records(_) | Fails::Nothing => None,
        })
    }

    /// Counts a call. The scripted call fails, and later ones succeed.
    fn step(&self, counted: impl Fn(Fails) -> Option<(u8, Fails)>) -> Result<(), StoreError> {
        let mut fails = self.fails.lock().unwrap();
        match counted(*fails) {
            None => Ok(()),
            Some((0, _)) => {
                *fails = Fails::Nothing;
                Err(StoreError::Unavailable("as the test wants".into()))
            }
            Some((_, next)) => {
                *fails = next;
                Ok(())
            }
        }
    }
}

#[async_trait]
impl KeyValueStore for FailingStore {
    fn for_worker(&self) -> Option<Arc<dyn KeyValueStore>> {
        Some(Arc::new(Self {
            is_of_worker: true,
            ..self.clone()
        }))
    }

    fn now_ms(&self) -> u64 {
        self.inner.now_ms()
    }

    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError> {
        if let Some(barrier) = barrier
            && self.load(barrier).await?.is_some()
        {
            return Ok(Inserted::Barred);
        }
        self.step(|fails| match fails {
            Fails::Insert(left) => Some((left, Fails::Insert(left.saturating_sub(1)))),
            Fails::Load(_) | Fails::Lists | Fails::Records(_) | Fails::Nothing => None,
        })?;
        self.inner.insert(record, event).await
    }

    async fn load(&self, name: Name) -> Result<Option<Record>, StoreError> {
        self.load_step()?;
        self.inner.load(name).await
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        let replaced = self.inner.replace(record, expected, event).await;
        let mut loses = self.loses.lock().unwrap();
        match *loses {
            Loses::ReplaceAnswer => *loses = Loses::Nothing,
            Loses::ReplaceAnswers => {}
            _ => return replaced,
        }
        Err(StoreError::Unavailable("as the test wants".into()))
    }

    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        if self.refuses_removals.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("as the test wants".into()));
        }
        if !self.is_of_worker {
            self.removed_elsewhere.lock().unwrap().push(name);
        }
        let removed = self.inner.remove(name, event).await;
        if *self.loses.lock().unwrap() == Loses::Caller {
            std::future::pending::<()>().await;
        }
        let mut loses = self.loses.lock().unwrap();
        if *loses == Loses::RemoveAnswer {
            *loses = Loses::Nothing;
            return Err(StoreError::Unavailable("as the test wants".into()));
        }
        if let (Loses::Removal, Ok(Some(record))) = (*loses, &removed) {
            *self.elsewhere.lock().unwrap() = Some(record.clone());
        }
        removed
    }

    async fn confirm_removed(&self, names: &[Name]) -> Result<bool, StoreError> {
        {
            let mut loses = self.loses.lock().unwrap();
            if *loses == Loses::Removal {
                *loses = Loses::Nothing;
                return Err(StoreError::Unavailable("as the test wants".into()));
            }
        }
        let back = self.elsewhere.lock().unwrap().take();
        match back {
            Some(record) => self.inner.insert(record, Vec::new()).await.map(|_| true),
            None => self.inner.confirm_removed(names).await,
        }
    }

    async fn list(
        &self,
        index: Name,
        after: Option<&IndexEntry>,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        let fails = *self.fails.lock().unwrap();
        if fails == Fails::Lists {
            return Err(StoreError::Unavailable("as the test wants".into()));
        }
        let mut listing = self.inner.list(index, after, limit).await?;
        if let (Fails::Records(lost), None) = (fails, after) {
            let without_record = (0..lost).map(|at| IndexEntry {
                name: Name::from_bytes([at; 16]),
                created_at_ms: self.now_ms(),
            });
            listing.entries.splice(0..0, without_record);
        }
        Ok(listing)
    }

    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError> {
        self.load_step()?;
        self.inner.load_many(names).await
    }

    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        self.inner.acquire_lease(name, holder, ttl).await
    }

    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        self.inner.renew_lease(lease, ttl).await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.inner.release_lease(lease).await
    }

    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.remember(name, value, ttl).await
    }

    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        self.inner.published(after).await
    }

    async fn position(&self) -> Result<String, StoreError> {
        self.inner.position().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

pub(crate) async fn failing(world: &World) -> (FailingStore, Client) {
    let store = FailingStore::over(world);
    let client = world.on(Arc::new(store.clone()), lifetime(), "ab").await;
    (store, client)
}

fn once(request_id: &str) -> v1::EndSessionsRequest {
    v1::EndSessionsRequest {
        once_id: "jti-1".to_owned(),
        once_until: Some(timestamp::from_ms(START_MS + 420_000)),
        request_id: request_id.to_owned(),
        ..end_all("alice", "")
    }
}

const CALL: &str = "00000000-0000-4000-8000-000000000001";
const REPLAY: &str = "00000000-0000-4000-8000-000000000002";

#[tokio::test]
async fn a_session_that_cannot_be_read_is_not_said_to_be_missing() {
    let (world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    let unavailable = ErrorReason::ErrStoreUnavailable;
    store.fails(Fails::Load(0));
    assert_eq!(reason(client.get_session(by_id(&id)).await), unavailable);
    store.fails(Fails::Load(0));
    assert_eq!(reason(client.roll_session(roll(&id)).await), unavailable);
    store.fails(Fails::Load(0));
    assert_eq!(reason(client.get_access_token(token(&id)).await), unavailable);
    client.get_session(by_id(&id)).await.unwrap();
}

#[tokio::test]
async fn an_ending_uses_the_connection_of_its_worker() {
    let (mut world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    let first = client.get_session(by_id(&id)).await.unwrap().into_inner();
    client.end_session(end(&id)).await.unwrap();
    let second = world.create(alice()).await.session;
    client.end_sessions(end_all("alice", "")).await.unwrap();
    let handles = [first.session.map(|session| *session), second].map(Option::unwrap);
    let removed = store.removed_elsewhere.lock().unwrap().clone();
    for handle in handles.map(|session| Name::parse(session.handle).unwrap()) {
        assert!(!removed.contains(&handle));
    }
}

#[tokio::test]
async fn a_replay_that_cannot_be_looked_up_ends_nothing() {
    let mut world = world().await;
    let (store, mut client) = failing(&world).await;
    client.end_sessions(once(CALL)).await.unwrap();
    let kept = world.create(alice()).await.session_id;
    store.fails(Fails::Load(0));
    assert_eq!(
        reason(client.end_sessions(once(REPLAY)).await),
        ErrorReason::ErrStoreUnavailable
    );
    client.get_session(by_id(&kept)).await.unwrap();
    assert_eq!(
        reason(client.end_sessions(once(REPLAY)).await),
        ErrorReason::ErrRequestIdReused
    );
}

#[tokio::test]
async fn a_use_that_cannot_be_noted_is_no_success_and_may_be_repeated() {
    let world = world().await;
    let (store, mut client) = failing(&world).await;
    // The note of the use is written, but the service does not learn it while the caller waits.
    store.loses(Loses::ReplaceAnswers);
    let mut first = tonic::Request::new(once(CALL));
    first.set_timeout(Duration::from_millis(300));
    client.end_sessions(first).await.unwrap_err();
    store.loses(Loses::Nothing);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while let Err(status) = client.end_sessions(once(REPLAY)).await {
        assert!(
            std::time::Instant::now() < until,
            "used up by a failure: {status:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        reason(client.end_sessions(once(CALL)).await),
        ErrorReason::ErrRequestIdReused
    );
}

#[tokio::test]
async fn a_use_whose_note_s_answer_is_lost_once_is_a_success() {
    let world = world().await;
    let (store, mut client) = failing(&world).await;
    store.loses(Loses::ReplaceAnswer);
    client.end_sessions(once(CALL)).await.unwrap();
    assert_eq!(
        reason(client.end_sessions(once(REPLAY)).await),
        ErrorReason::ErrRequestIdReused
    );
}

#[tokio::test]
async fn a_repeated_ending_ends_what_began_before_its_first_arrival_and_nothing_later() {
    let mut world = world().await;
    let before = world.create(alice()).await.session_id;
    let (store, mut client) = failing(&world).await;
    // The token's arrival is noted, but not the mark of the ending.
    store.fails(Fails::Insert(1));
    assert_eq!(
        reason(client.end_sessions(once(CALL)).await),
        ErrorReason::ErrStoreUnavailable
    );
    world.clock.advance_ms(5_000);
    let after = world.create(alice()).await.session_id;
    world.clock.advance_ms(5_000);
    for order_age_ms in [None, Some(0)] {
        let again = v1::EndSessionsRequest {
            once_id: "jti-1".to_owned(),
            told_ago: order_age_ms.and_then(|ms| Duration::from_millis(ms).try_into().ok()),
            ..once(CALL)
        };
        client.end_sessions(again).await.unwrap();
        client.get_session(by_id(&after)).await.unwrap();
        let gone = client.get_session(by_id(&before)).await;
        assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
    }
}

#[tokio::test]
async fn an_ending_whose_answer_is_lost_is_done_and_takes_the_token_back() {
    for all in [false, true] {
        let (world, id) = signed_in().await;
        let (store, mut client) = failing(&world).await;
        store.loses(Loses::RemoveAnswer);
        if all {
            let ended = client.end_sessions(end_all("alice", "")).await.unwrap();
            assert_eq!(ended.into_inner().ended_count, 1);
        } else {
            let ended = client.end_session(end(&id)).await.unwrap().into_inner();
            assert_eq!((ended.ended, ended.id_token_hint.as_str()), (true, "hint"));
        }
        world.provider.wait_for_revoked("refresh-0").await;
    }
}
