//! A load balancer that forgets idle Redis connections: they carry nothing, without an error on either side.

use std::sync::Arc;

use chassis::clock::SystemClock;
use session_svc::store::url::StoreSettings;
use session_svc::store::{Inserted, KeyValueStore, Replaced, open as open_store};
use tokio::io::{copy, copy_bidirectional, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::contract::{fresh_name, record};
use crate::failover::load::Target as _;
use crate::failover::service::Service;
use crate::lists::listed;
use crate::redis_server::RedisServer;

/// The load balancer, with the server behind it.
struct Balancer {
    port: u16,
    forgotten: watch::Sender<()>,
    /// Forgotten connections that the client has closed since.
    given_up: watch::Sender<usize>,
    _server: RedisServer,
}

impl Balancer {
    async fn start() -> Self {
        let server = RedisServer::start(&[]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let balancer = Self {
            port: listener.local_addr().unwrap().port(),
            forgotten: watch::Sender::new(()),
            given_up: watch::Sender::new(0),
            _server: server,
        };
        let (forgotten, given_up) = (balancer.forgotten.subscribe(), balancer.given_up.clone());
        let target = balancer._server.port;
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut forgotten = forgotten.clone();
                forgotten.mark_unchanged();
                tokio::spawn(carry(client, target, forgotten, given_up.clone()));
            }
        });
        balancer
    }

    async fn store(&self) -> Arc<dyn KeyValueStore> {
        let settings: StoreSettings = format!("redis://127.0.0.1:{}", self.port).parse().unwrap();
        open_store(&settings, Arc::new(SystemClock)).await.unwrap()
    }

    /// Forgets the current connections; carries new ones.
    fn forget(&self) {
        self.forgotten.send_replace(());
    }

    /// Waits until the store has closed a forgotten connection.
    async fn is_given_up(&self) {
        let mut given_up = self.given_up.subscribe();
        given_up.wait_for(|count| *count > 0).await.unwrap();
    }
}

async fn carry(
    mut client: TcpStream,
    target: u16,
    mut forgotten: watch::Receiver<()>,
    given_up: watch::Sender<usize>,
) {
    let mut server = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => return,
        _ = forgotten.changed() => {}
    }
    let _ = copy(&mut client, &mut sink()).await;
    given_up.send_modify(|count| *count += 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_over_a_forgotten_connection_is_repeated_over_a_new_one() {
    let balancer = Balancer::start().await;
    let store = balancer.store().await;
    let subject = fresh_name();
    let one = record(&*store, 60_000, &[subject]);
    assert_eq!(
        store.insert(one.clone(), b"created".to_vec()).await.unwrap(),
        Inserted::Done
    );
    balancer.forget();
    assert_eq!(store.load(one.name).await.unwrap().as_ref(), Some(&one));
    balancer.forget();
    let many = store.load_many(&[one.name]).await.unwrap();
    assert!(matches!(&*many, [Ok(Some(_))]));
    balancer.forget();
    assert_eq!(listed(&*store, subject, 10).await.unwrap().len(), 1);
    // Simultaneous calls share the new connection.
    balancer.forget();
    let loads = (0..20).map(|_| store.load(one.name));
    for loaded in futures_util::future::join_all(loads).await {
        assert!(loaded.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_meets_no_connection_that_was_forgotten_while_idle() {
    let balancer = Balancer::start().await;
    let store = balancer.store().await;
    let mut one = record(&*store, 60_000, &[]);
    store.insert(one.clone(), b"created".to_vec()).await.unwrap();
    balancer.forget();
    balancer.is_given_up().await;
    one.version = 2;
    assert_eq!(store.replace(one.clone(), 1, None).await.unwrap(), Replaced::Done);
    assert!(store.remove(one.name, b"ended".to_vec()).await.unwrap().is_some());
}

/// Each call reads before it writes, so the write uses the read's connection.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_of_the_session_api_fails_over_a_forgotten_connection() {
    let balancer = Balancer::start().await;
    let service = Service::start(balancer.store().await).await;
    let name = service.create("person").await.unwrap();
    for version in [2, 3] {
        balancer.forget();
        assert_eq!(
            service.write(&name).await.unwrap(),
            Some(version),
            "a roll, an update"
        );
    }
    balancer.forget();
    assert!(service.lists("person", &name).await.unwrap());
    balancer.forget();
    service.end(&name).await.unwrap();
    assert_eq!(service.read(&name).await.unwrap(), None);
}
