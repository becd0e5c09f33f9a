//! The file store keeps the contract, across restarts too, and says clearly why it cannot open.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chassis::clock::ManualClock;
use redb::ReadableDatabase as _;
use session_svc::store::embedded::{EmbeddedStore, FileProblem};
use session_svc::store::{Inserted, KeyValueStore, Replaced, StoreCounts, StoreUpdate};

use crate::contract::{Bench, eventually, fresh_name, named, next, numbered, received, record, said};
use crate::lists::listed;

const SOME_TIME_MS: u64 = 1_800_000_000_000;

fn opened(path: &Path, clock: &ManualClock) -> EmbeddedStore {
    EmbeddedStore::open(path, Arc::new(clock.clone())).unwrap()
}

async fn open() -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(SOME_TIME_MS);
    let store = Arc::new(opened(&directory.path().join("sessions"), &clock));
    let pass = move |ms| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        clock.advance_ms(ms);
        Box::pin(async {})
    };
    Bench {
        other: Arc::clone(&store) as _,
        store,
        pass: Box::new(pass),
        _keeps: Box::new(directory),
    }
}

crate::suite!(open());

#[tokio::test]
async fn everything_acknowledged_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    let clock = ManualClock::new(SOME_TIME_MS);
    let first = opened(&path, &clock);
    let mut stream = first.published(None).await.unwrap();
    let one = record(&first, 60_000, &[named("subject")]);
    let two = record(&first, 60_000, &[named("subject")]);
    for record in [&one, &two] {
        assert_eq!(
            first.insert(record.clone(), b"created".to_vec()).await.unwrap(),
            Inserted::Done
        );
    }
    assert_eq!(
        first.replace(next(&one, b"rolled"), 1, None).await.unwrap(),
        Replaced::Done
    );
    assert_eq!(
        first.remove(two.name, b"ended".to_vec()).await.unwrap(),
        Some(two)
    );
    first
        .remember(named("request"), b"answer", Duration::from_secs(60))
        .await
        .unwrap();
    let lease = first.acquire_lease(named("refresh"), "one", Duration::from_secs(60));
    assert!(lease.await.unwrap().is_some());
    let (_, position) = received(&mut stream).await;
    drop((stream, first));

    let second = opened(&path, &clock);
    assert_eq!(second.load(one.name).await.unwrap(), Some(next(&one, b"rolled")));
    assert_eq!(
        listed(&second, named("subject"), 10).await.unwrap(),
        vec![next(&one, b"rolled")]
    );
    assert_eq!(
        second
            .remember(named("request"), b"other", Duration::from_secs(60))
            .await
            .unwrap(),
        Some(b"answer".to_vec())
    );
    let mut resumed = second.published(Some(position)).await.unwrap();
    assert_eq!(received(&mut resumed).await.0, b"created");
    assert_eq!(received(&mut resumed).await.0, b"ended");
    let taken = second
        .acquire_lease(named("refresh"), "two", Duration::from_secs(60))
        .await
        .unwrap();
    assert!(taken.is_some(), "the holder died with its process");
}

#[tokio::test]
async fn another_files_position_is_told_as_missed() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(SOME_TIME_MS);
    let one = opened(&directory.path().join("one"), &clock);
    let two = opened(&directory.path().join("two"), &clock);
    let mut stream = one.published(None).await.unwrap();
    one.insert(record(&one, 60_000, &[]), b"x".to_vec())
        .await
        .unwrap();
    let (_, position) = received(&mut stream).await;
    two.insert(record(&two, 60_000, &[]), b"y".to_vec())
        .await
        .unwrap();
    assert_eq!(
        said(&mut two.published(Some(position)).await.unwrap()).await,
        StoreUpdate::Missed
    );
}

/// Sessions of each round of the test below.
const MANY: u64 = 3_000;

/// How many are created at once: no more than may wait for the disk.
const AT_ONCE: u64 = 1_000;

#[tokio::test]
async fn rounds_of_created_and_expired_sessions_leave_nothing_and_the_file_stops_growing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    let clock = ManualClock::new(SOME_TIME_MS);
    let store = Arc::new(opened(&path, &clock));
    let mut sizes = Vec::new();
    for _ in 0..4 {
        for wave in 0..MANY / AT_ONCE {
            let writers = (wave * AT_ONCE..(wave + 1) * AT_ONCE).map(|number| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let person = numbered(number % 700);
                    let one = record(&*store, 1_000 + number, &[person, fresh_name()]);
                    store.insert(one.clone(), vec![7; 100]).await.unwrap();
                    if number % 6 == 0 {
                        let ttl = Duration::from_millis(1_000);
                        store.remember(one.name, b"x", ttl).await.unwrap();
                    }
                })
            });
            for writer in writers.collect::<Vec<_>>() {
                writer.await.unwrap();
            }
        }
        let held = store.holdings().unwrap();
        assert_eq!(
            (held.records, held.index_entries, held.remembered),
            (MANY as usize, 2 * MANY as usize, MANY as usize / 6)
        );
        clock.advance_ms(10_000);
        eventually("everything to be cleared away", || async {
            store.sweep().await.unwrap();
            store.holdings().unwrap()
                == StoreCounts {
                    records: 0,
                    index_entries: 0,
                    remembered: 0,
                }
        })
        .await;
        sizes.push(std::fs::metadata(&path).unwrap().len());
    }
    assert!(sizes[3] <= sizes[1], "room is used again: {sizes:?}");
}

#[tokio::test]
async fn the_file_is_for_its_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    let clock = ManualClock::new(SOME_TIME_MS);
    drop(opened(&path, &clock));
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(opened(&path, &clock));
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn a_file_in_use_is_refused_saying_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    let clock = ManualClock::new(SOME_TIME_MS);
    let store = opened(&path, &clock);
    let error = EmbeddedStore::open(&path, Arc::new(clock.clone())).err().unwrap();
    assert!(matches!(error.problem, FileProblem::InUse), "{error:?}");
    assert!(
        error.problem.to_string().contains("in use by another process"),
        "{error}"
    );
    drop(store);
    opened(&path, &clock);
}

#[tokio::test]
async fn a_file_of_another_layout_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    let clock = ManualClock::new(SOME_TIME_MS);
    drop(opened(&path, &clock));
    let facts = redb::TableDefinition::<&str, &[u8]>::new("facts");
    let database = redb::Database::create(&path).unwrap();
    let writing = database.begin_write().unwrap();
    writing
        .open_table(facts)
        .unwrap()
        .insert("layout", &b"2"[..])
        .unwrap();
    writing.commit().unwrap();
    drop(database);
    let error = EmbeddedStore::open(&path, Arc::new(clock)).err().unwrap();
    assert!(matches!(error.problem, FileProblem::Foreign(_)), "{error:?}");
    let database = redb::Database::create(&path).unwrap();
    let facts = database.begin_read().unwrap().open_table(facts).unwrap();
    assert_eq!(facts.get("layout").unwrap().unwrap().value(), b"2");
}

#[tokio::test]
async fn a_missing_directory_and_a_foreign_file_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let clock: Arc<ManualClock> = Arc::new(ManualClock::new(SOME_TIME_MS));
    let missing = EmbeddedStore::open(&directory.path().join("no/sessions"), clock.clone())
        .err()
        .unwrap();
    assert!(matches!(missing.problem, FileProblem::Unusable(_)), "{missing:?}");
    let is_directory = EmbeddedStore::open(directory.path(), clock.clone())
        .err()
        .unwrap();
    assert!(
        matches!(is_directory.problem, FileProblem::Unusable(_)),
        "{is_directory:?}"
    );
    for content in [&b"short"[..], &[b'x'; 20_000]] {
        let foreign = directory.path().join("foreign");
        std::fs::write(&foreign, content).unwrap();
        let error = EmbeddedStore::open(&foreign, clock.clone()).err().unwrap();
        assert!(matches!(error.problem, FileProblem::Foreign(_)), "{error:?}");
        assert_eq!(
            std::fs::read(&foreign).unwrap(),
            content,
            "a foreign file is left as it was"
        );
    }
}
