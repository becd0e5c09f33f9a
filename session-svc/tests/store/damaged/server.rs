//! Bytes changed on a Redis server.

use std::sync::Arc;

use chassis::clock::SystemClock;
use proptest::prelude::*;
use redis::aio::MultiplexedConnection;
use session_svc::session::Cause;
use session_svc::session::change::ChangeKind;
use session_svc::sessions::SessionsError;
use session_svc::store::url::StoreSettings;
use session_svc::store::{KeyValueStore, open};
use tokio::runtime::Runtime;

use super::support::*;
use crate::redis_server::RedisServer;

/// A server, a store on it, and a connection that bypasses the store.
pub(crate) struct Server {
    pub(crate) runtime: Runtime,
    pub(crate) server: RedisServer,
    pub(crate) store: Arc<dyn KeyValueStore>,
    connection: MultiplexedConnection,
    /// The connection of a user limited to the store's keys, like the documented one.
    limited: MultiplexedConnection,
}

impl Server {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let server = RedisServer::start(&[]);
        let url = format!("redis://127.0.0.1:{}", server.port);
        let settings: StoreSettings = url.parse().unwrap();
        let (store, connection, limited) = runtime.block_on(async {
            let store = open(&settings, Arc::new(SystemClock)).await.unwrap();
            let connect = async |url: &str| {
                let client = redis::Client::open(url).unwrap();
                client.get_multiplexed_async_connection().await.unwrap()
            };
            let mut connection = connect(&url).await;
            let mut user = redis::cmd("ACL");
            user.arg("SETUSER")
                .arg("limited")
                .arg(&["on", ">secret", "~vestibule:*", "+@all"]);
            user.exec_async(&mut connection).await.unwrap();
            let limited = connect(&url.replace("//", "//limited:secret@")).await;
            (store, connection, limited)
        });
        Self {
            runtime,
            server,
            store,
            connection,
            limited,
        }
    }

    pub(crate) async fn ask<T: redis::FromRedisValue>(
        &self,
        command: &mut redis::Cmd,
    ) -> redis::RedisResult<T> {
        command.query_async(&mut self.connection.clone()).await
    }

    /// Asks as a user limited to the store's keys.
    pub(crate) async fn ask_limited(&self, command: &redis::Cmd) -> redis::RedisResult<redis::Value> {
        command.query_async(&mut self.limited.clone()).await
    }

    /// No key outside the prefix, and the server still works.
    pub(crate) async fn is_sane(&self) -> Result<(), TestCaseError> {
        let keys: Vec<Vec<u8>> = self.ask(redis::cmd("KEYS").arg("*")).await.unwrap();
        for key in keys {
            prop_assert!(key.starts_with(PREFIX), "{}", String::from_utf8_lossy(&key));
        }
        self.store.check().await.unwrap();
        Ok(())
    }
}

fn key_of(name: &str) -> Vec<u8> {
    let bytes = base16ct::lower::decode_vec(name).unwrap();
    [PREFIX, b"s", &bytes].concat()
}

#[test]
fn damaged_bytes_on_the_server_give_the_session_or_an_error_and_can_be_ended() {
    let server = Server::start();
    let session_store = session_store(Arc::clone(&server.store), "ab");
    let outcome = cases(256).run(&any_damage(), |damage| {
        server.runtime.block_on(async {
            let [one, other] = two_sessions(&session_store).await;
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

            match session_store.load(one.handle).await {
                // The damage is in data that only orders lists and expires records.
                Ok(read) => prop_assert_eq!(&read, &one),
                Err(error) => prop_assert!(is_told(&error), "{error:?}"),
            }
            let listed = session_store
                .list(
                    IndexKey::Person(ISSUER, &one.subject),
                    None,
                    10,
                    &mut ROOM.clone(),
                )
                .await
                .unwrap();
            let observed = |listed: &ListedSession| match listed {
                ListedSession::Session(session) => **session == one,
                ListedSession::Unreadable { handle, .. } => *handle == one.handle,
            };
            prop_assert!(listed.0.iter().all(observed));
            let edited = session_store
                .edit(one.clone(), ChangeKind::Changed, None, |_| true)
                .await;
            prop_assert!(!matches!(&edited, Ok((session, _)) if session.subject != one.subject));
            session_store.remove(one.handle, Cause::Logout).await.unwrap();
            prop_assert!(matches!(
                session_store.load(one.handle).await,
                Err(SessionsError::Missing)
            ));
            prop_assert_eq!(&session_store.load(other.handle).await.unwrap(), &other);
            session_store.remove(other.handle, Cause::Logout).await.unwrap();
            server.is_sane().await
        })
    });
    outcome.unwrap();
}
