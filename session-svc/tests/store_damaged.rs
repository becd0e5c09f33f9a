//! Stored records that were cut, changed, swapped, put back or written by another release, and arguments no sane caller gives:
//! a defined error, never a panic, never another session, and nobody else's session touched.

// The layouts of the redis client's futures nest deeper than the compiler's default allows.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

#[path = "support/redis.rs"]
mod redis_server;

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::{Clock as _, ManualClock, SystemClock};
use chassis::secret::{Reloading, Secret};
use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{self, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redis_server::RedisServer;
use session_svc::session::change::Kind;
use session_svc::session::{
    AccessToken, Claims, Device, Handle, Lifetime, Scope, Session, State, Token, TokenSet, index,
};
use session_svc::sessions::SessionsError;
use session_svc::sessions::keeper::{Edit, Keeper, Removed};
use session_svc::sessions::ports::SealError;
use session_svc::store::memory::MemoryStore;
use session_svc::store::url::StoreSettings;
use session_svc::store::{Cursor, Inserted, Lease, Record, SessionStore, StoreError, open};
use session_svc::vault::{KeyRing, Vault};
use tokio::runtime::Runtime;

const ISSUER: &str = "https://issuer.example";
const PREFIX: &[u8] = b"vestibule:";

const LIFETIME: Lifetime = Lifetime {
    rolling_ms: 3_600_000,
    absolute_ms: 36_000_000,
    roll_interval_ms: 0,
};

fn keeper(store: Arc<dyn SessionStore>, key: &str) -> Keeper {
    let ring = KeyRing::parse(&[Secret::new(key.repeat(32))]).unwrap();
    Keeper::new(store, Arc::new(Vault::new(Reloading::new(ring))), LIFETIME)
}

fn session(number: u8, now_ms: u64) -> Session {
    let subject = format!("person {number}");
    let mut user = Claims::new();
    user.insert("sub".to_owned(), subject.clone().into());
    let device = Device {
        user_agent: "a browser".to_owned(),
        address: None,
        at_ms: now_ms,
    };
    Session {
        handle: Handle::from_bytes([number; 16]),
        issuer: ISSUER.to_owned(),
        subject,
        user,
        attributes: Claims::new(),
        tokens: TokenSet {
            access: Some(AccessToken {
                value: Token::new(format!("access token of {number}")),
                token_type: "Bearer".to_owned(),
                expires_at_ms: now_ms + 300_000,
            }),
            scope: Scope::parse("openid"),
            refresh: Some(Token::new(format!("refresh token of {number}"))),
            id_token: None,
            generation: 0,
        },
        provider_sid: Some(format!("sid {number}")),
        authenticated_at_ms: now_ms,
        created_at_ms: now_ms,
        rolled_at_ms: now_ms,
        not_after_ms: None,
        created_on: device.clone(),
        last_seen_on: device,
        state: State::Active,
        version: 1,
        carried: Default::default(),
    }
}

/// A session of version 2, and one of somebody else.
async fn two_sessions(keeper: &Keeper) -> [Session; 2] {
    let now_ms = keeper.now_ms();
    let (one, other) = (session(1, now_ms), session(2, now_ms));
    for session in [&one, &other] {
        assert_eq!(keeper.insert(session, 65_536).await.unwrap(), Inserted::Done);
    }
    let edited = keeper.edit(one, Kind::Changed, None, |session| {
        session.attributes.insert("theme".to_owned(), "dark".into());
        Ok(Edit::Write)
    });
    [edited.await.unwrap().0, other]
}

/// What can become of stored bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flipped(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Longer(Vec<u8>),
    Replaced(Vec<u8>),
    NewerFormat(u8),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<prop::sample::Index>(), 0_u8..8).prop_map(|(at, bit)| Damage::Flipped(at, bit)),
        any::<prop::sample::Index>().prop_map(Damage::Cut),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(Damage::Longer),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Damage::Replaced),
        (2_u8..).prop_map(Damage::NewerFormat),
    ]
}

impl Damage {
    fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        match self {
            Self::Flipped(at, bit) => damaged[at.index(bytes.len())] ^= 1 << bit,
            Self::Cut(at) => damaged.truncate(at.index(bytes.len())),
            Self::Longer(more) => damaged.extend(more),
            Self::Replaced(bytes) => damaged.clone_from(bytes),
            Self::NewerFormat(format) => damaged[0] = *format,
        }
        damaged
    }
}

fn cases(count: u32) -> TestRunner {
    TestRunner::new(Config {
        cases: count,
        failure_persistence: None,
        ..Config::default()
    })
}

fn is_told(error: &SessionsError) -> bool {
    matches!(
        error,
        SessionsError::Unreadable(_) | SessionsError::CorruptStore(_)
    )
}

/// Puts `record` in the place of the one of its name, past every check of versions.
async fn plant(store: &dyn SessionStore, record: Record) {
    store.remove(&record.name, Vec::new()).await.unwrap();
    assert_eq!(store.insert(record, Vec::new()).await.unwrap(), Inserted::Done);
}

#[test]
fn a_damaged_payload_is_told_passed_over_and_can_be_ended() {
    let runtime = Runtime::new().unwrap();
    let outcome = cases(256).run(&any_damage(), |damage| {
        runtime.block_on(async {
            let store = Arc::new(MemoryStore::new(
                Arc::new(ManualClock::new(1_800_000_000_000)),
                100,
            ));
            let keeper = keeper(store.clone(), "ab");
            let [one, other] = two_sessions(&keeper).await;
            let name = one.handle.to_string();
            let record = store.load(&name).await.unwrap().unwrap();
            let payload = damage.apply(&record.payload);
            prop_assume!(payload != record.payload);
            plant(&*store, Record { payload, ..record }).await;

            let read = keeper.load(one.handle).await;
            prop_assert!(read.as_ref().is_err_and(is_told), "{read:?}");
            let listed = keeper
                .list(&index::by_subject(ISSUER, &one.subject), None, 10)
                .await;
            prop_assert!(listed.unwrap().0.is_empty());
            prop_assert!(matches!(
                keeper.remove(one.handle, "logout").await.unwrap(),
                Removed::Unreadable
            ));
            prop_assert!(matches!(
                keeper.load(one.handle).await,
                Err(SessionsError::Missing)
            ));
            prop_assert_eq!(keeper.load(other.handle).await.unwrap(), other);
            Ok(())
        })
    });
    outcome.unwrap();
}

#[tokio::test]
async fn a_payload_under_another_name_version_or_key_does_not_open() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new(
        Arc::new(ManualClock::new(1_800_000_000_000)),
        100,
    ));
    let keeper_one = keeper(Arc::clone(&store), "ab");
    let now_ms = keeper_one.now_ms();
    let [before, other] = [session(1, now_ms), session(2, now_ms)];
    for session in [&before, &other] {
        assert_eq!(keeper_one.insert(session, 65_536).await.unwrap(), Inserted::Done);
    }
    let first = store.load(&before.handle.to_string()).await.unwrap().unwrap();
    let edited = keeper_one.edit(before, Kind::Changed, None, |session| {
        session.attributes.insert("theme".to_owned(), "dark".into());
        Ok(Edit::Write)
    });
    let (one, _) = edited.await.unwrap();
    let (name, other_name) = (one.handle.to_string(), other.handle.to_string());
    let current = store.load(&name).await.unwrap().unwrap();
    let foreign = store.load(&other_name).await.unwrap().unwrap();

    let swapped = Record {
        payload: foreign.payload.clone(),
        ..current.clone()
    };
    let rolled_back = Record {
        payload: first.payload.clone(),
        ..current.clone()
    };
    let renumbered = Record {
        version: 7,
        ..current.clone()
    };
    let whole_other = Record {
        name: name.clone(),
        ..foreign.clone()
    };
    for planted in [swapped, rolled_back, renumbered, whole_other] {
        plant(&*store, planted.clone()).await;
        let read = keeper_one.load(one.handle).await;
        assert!(
            matches!(read, Err(SessionsError::Unreadable(SealError::NotReadable))),
            "{read:?} of {planted:?}"
        );
    }
    plant(&*store, current.clone()).await;
    assert_eq!(keeper_one.load(one.handle).await.unwrap(), one);
    let elsewhere = keeper(Arc::clone(&store), "cd").load(one.handle).await;
    assert!(matches!(
        elsewhere,
        Err(SessionsError::Unreadable(SealError::UnknownKey))
    ));

    // A whole record put back as it once was can not be told from one that was never changed: whoever can write to the
    // store can undo a change, and nothing else.
    plant(&*store, first).await;
    let put_back = keeper_one.load(one.handle).await.unwrap();
    assert_eq!((put_back.version, &put_back.subject), (1, &one.subject));
    assert!(put_back.attributes.is_empty());
}

struct Server {
    runtime: Runtime,
    server: RedisServer,
    store: Arc<dyn SessionStore>,
    connection: MultiplexedConnection,
}

impl Server {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let server = RedisServer::start(&[]);
        let url = format!("redis://127.0.0.1:{}", server.port);
        let settings: StoreSettings = url.parse().unwrap();
        let (store, connection) = runtime.block_on(async {
            let store = open(&settings, Arc::new(SystemClock)).await.unwrap();
            let client = redis::Client::open(url).unwrap();
            (store, client.get_multiplexed_async_connection().await.unwrap())
        });
        Self {
            runtime,
            server,
            store,
            connection,
        }
    }

    async fn ask<T: redis::FromRedisValue>(&self, command: &mut redis::Cmd) -> redis::RedisResult<T> {
        command.query_async(&mut self.connection.clone()).await
    }

    /// Nothing outside the prefix, and the server still works.
    async fn is_sane(&self) -> Result<(), TestCaseError> {
        let keys: Vec<Vec<u8>> = self.ask(redis::cmd("KEYS").arg("*")).await.unwrap();
        for key in keys {
            prop_assert!(key.starts_with(PREFIX), "{}", String::from_utf8_lossy(&key));
        }
        self.store.check().await.unwrap();
        Ok(())
    }
}

fn key_of(name: &str) -> Vec<u8> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let bytes: Vec<u8> = name.as_bytes().chunks(2).map(digits).collect();
    [PREFIX, b"s", &bytes].concat()
}

#[test]
fn damaged_bytes_on_the_server_give_the_session_or_an_error_and_can_be_ended() {
    let server = Server::start();
    let keeper = keeper(Arc::clone(&server.store), "ab");
    let outcome = cases(256).run(&any_damage(), |damage| {
        server.runtime.block_on(async {
            let [one, other] = two_sessions(&keeper).await;
            let name = one.handle.to_string();
            let bytes: Vec<u8> = server.ask(redis::cmd("GET").arg(key_of(&name))).await.unwrap();
            let mut damaged = damage.apply(&bytes);
            if damaged == bytes {
                damaged[0] ^= 1;
            }
            server
                .ask::<()>(redis::cmd("SET").arg(key_of(&name)).arg(damaged).arg("KEEPTTL"))
                .await
                .unwrap();

            match keeper.load(one.handle).await {
                // Where the damage is in what only orders lists and expires records.
                Ok(read) => prop_assert_eq!(&read, &one),
                Err(error) => prop_assert!(is_told(&error), "{error:?}"),
            }
            let listed = keeper
                .list(&index::by_subject(ISSUER, &one.subject), None, 10)
                .await
                .unwrap();
            prop_assert!(listed.0.iter().all(|session| *session == one));
            let edited = keeper
                .edit(one.clone(), Kind::Changed, None, |_| Ok(Edit::Write))
                .await;
            prop_assert!(!matches!(&edited, Ok((session, _)) if session.subject != one.subject));
            keeper.remove(one.handle, "logout").await.unwrap();
            prop_assert!(matches!(
                keeper.load(one.handle).await,
                Err(SessionsError::Missing)
            ));
            prop_assert_eq!(&keeper.load(other.handle).await.unwrap(), &other);
            keeper.remove(other.handle, "logout").await.unwrap();
            server.is_sane().await
        })
    });
    outcome.unwrap();
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        Just(1 << 53),
        Just(i64::MAX as u64),
        Just(i64::MAX as u64 + 1),
        1_800_000_000_000_u64..1_900_000_000_000,
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9a-f]{32}",
        Just(String::new()),
        Just("\r\nFLUSHALL\r\n".to_owned()),
        Just("*1\r\n$8\r\nFLUSHALL\r\n".to_owned()),
        Just("{x}} 1 2 'redis.call(\"FLUSHALL\")".to_owned()),
        Just("x".repeat(30_000)),
        Just("nan".to_owned()),
        Just("-1".to_owned()),
    ]
}

fn any_record() -> impl Strategy<Value = Record> {
    let numbers = (any_number(), any_number(), any_number());
    let indexes = prop::collection::vec(any_text(), 0..4);
    (any_text(), numbers, indexes, any::<Vec<u8>>()).prop_map(|(name, numbers, indexes, payload)| Record {
        name,
        version: numbers.0,
        expires_at_ms: numbers.1,
        created_at_ms: numbers.2,
        indexes,
        payload,
    })
}

fn defined<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> Result<(), TestCaseError> {
    prop_assert!(!matches!(outcome, Err(StoreError::Corrupt)), "{outcome:?}");
    Ok(())
}

#[test]
fn absurd_arguments_neither_break_the_server_nor_touch_another_session() {
    let server = Server::start();
    let keeper = keeper(Arc::clone(&server.store), "ab");
    let [canary, _] = server.runtime.block_on(two_sessions(&keeper));
    let arguments = (any_record(), any_text(), any_number(), any_number());
    let outcome = cases(200).run(&arguments, |(record, text, one, two)| {
        server.runtime.block_on(async {
            let store = &server.store;
            // A name of somebody else's is the one thing a caller must not invent.
            prop_assume!(record.name != canary.handle.to_string());
            let inserted = store.insert(record.clone(), text.clone().into_bytes()).await;
            if matches!(inserted, Ok(Inserted::Done)) && record.expires_at_ms > SystemClock.now_ms() + 60_000
            {
                prop_assert_eq!(store.load(&record.name).await.unwrap(), Some(record.clone()));
                for index in &record.indexes {
                    let listed = store.list(index, None, usize::MAX).await.unwrap();
                    prop_assert!(listed.contains(&record), "{listed:?}");
                }
            }
            defined(inserted)?;
            let prolonged = Record {
                expires_at_ms: two,
                ..record.clone()
            };
            defined(
                store
                    .replace(prolonged, one, Some(text.clone().into_bytes()))
                    .await,
            )?;
            let cursor = Cursor {
                created_at_ms: one,
                name: text.clone(),
            };
            defined(
                store
                    .list(&text, Some(&cursor), usize::try_from(two).unwrap())
                    .await,
            )?;
            let ttl = Duration::from_millis(one);
            let lease = store.acquire_lease(&text, &record.name, ttl).await;
            if let Ok(Some(lease)) = &lease {
                defined(store.renew_lease(lease, Duration::MAX).await)?;
            }
            defined(lease)?;
            let never = Lease {
                name: record.name.clone(),
                fence: one,
                holder: text.clone(),
            };
            prop_assert!(!store.renew_lease(&never, ttl).await.unwrap());
            defined(store.release_lease(&never).await)?;
            defined(
                store
                    .remember(&text, &record.payload, Duration::from_millis(two))
                    .await,
            )?;
            defined(store.published(Some(text.clone())).await.map(|_| ()))?;
            let removed = store.remove(&record.name, Vec::new()).await;
            defined(removed)?;
            for index in &record.indexes {
                prop_assert!(
                    !store
                        .list(index, None, 1_000)
                        .await
                        .unwrap()
                        .iter()
                        .any(|one| one.name == record.name)
                );
            }
            prop_assert_eq!(&keeper.load(canary.handle).await.unwrap(), &canary);
            server.is_sane().await
        })
    });
    outcome.unwrap();
}

#[test]
fn scripts_called_with_anything_answer_or_refuse() {
    let server = Server::start();
    let keeper = keeper(Arc::clone(&server.store), "ab");
    let (canary, scripts) = server.runtime.block_on(async {
        let monitor = server.server.monitor().await;
        let [canary, other] = two_sessions(&keeper).await;
        keeper
            .list(&index::by_subject(ISSUER, &canary.subject), None, 10)
            .await
            .unwrap();
        keeper.remove(other.handle, "logout").await.unwrap();
        let ttl = Duration::from_secs(60);
        let lease = server
            .store
            .acquire_lease("lease", "holder", ttl)
            .await
            .unwrap()
            .unwrap();
        server.store.renew_lease(&lease, ttl).await.unwrap();
        server.store.release_lease(&lease).await.unwrap();
        server.store.remember("name", b"value", ttl).await.unwrap();
        let mut scripts: Vec<String> = monitor.lines().await;
        scripts = scripts
            .iter()
            .filter_map(|line| Some(line.split_once("\"EVALSHA\" \"")?.1[..40].to_owned()))
            .collect();
        scripts.sort();
        scripts.dedup();
        (canary, scripts)
    });
    assert_eq!(
        scripts.len(),
        8,
        "insert, replace, remove, list, acquire, renew, release, remember"
    );

    let bytes = || {
        prop_oneof![
            any::<Vec<u8>>(),
            any_text().prop_map(String::into_bytes),
            any_number().prop_map(|number| number.to_string().into_bytes()),
            any::<i64>().prop_map(|number| number.to_string().into_bytes()),
            any_number().prop_map(|number| number.to_be_bytes().to_vec()),
            Just(b"1e400".to_vec()),
        ]
    };
    let keys = prop::collection::vec(bytes().prop_map(|end| [PREFIX, b"fuzzed", &end].concat()), 0..5);
    let calls = (
        prop::sample::select(scripts),
        keys,
        prop::collection::vec(bytes(), 0..9),
    );
    let outcome = cases(1_000).run(&calls, |(script, keys, arguments)| {
        server.runtime.block_on(async {
            let mut command = redis::cmd("EVALSHA");
            command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
            let answer =
                tokio::time::timeout(Duration::from_secs(5), server.ask::<Value>(&mut command)).await;
            if let Err(error) = answer.unwrap() {
                prop_assert!(!error.is_io_error(), "{error}");
            }
            prop_assert_eq!(&keeper.load(canary.handle).await.unwrap(), &canary);
            Ok(())
        })
    });
    outcome.unwrap();
    server.runtime.block_on(server.is_sane()).unwrap();
}
