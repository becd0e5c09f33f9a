//! `rekey`: the old key can be removed afterwards, whatever happened meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use session_proto::v1::{GetSessionRequest, UpdateSessionRequest, get_session_request::By};
use session_svc::session::SessionId;

use super::support::{NEW_KEY, OLD_KEY, Service, file_in, new_session, on_store};
use crate::cluster::Cluster;
use crate::redis_server::{Engine, RedisServer, record_key};

const SESSIONS: usize = 60;

fn ring() -> String {
    format!("{NEW_KEY},{OLD_KEY}")
}

/// Sessions of one person, a request that may be repeated, and a mark that somebody's sessions were ended.
async fn furnished(service: &Service) -> Vec<String> {
    let mut secrets = Vec::new();
    for number in 0..SESSIONS {
        let request = if number == 0 { REQUEST } else { "" };
        secrets.push(service.create("ada", &format!("sid-{number}"), request).await.0);
    }
    service.create("bob", "", "").await;
    let reported = service.tool(&["sessions", "end", "--subject", "bob"]);
    assert_eq!(reported.code, 0, "{reported:?}");
    secrets
}

const REQUEST: &str = "the-request-that-is-repeated";

/// With the new key alone everything is there that was there before.
async fn nothing_needs_the_old_key(store: &str, secrets: &[String]) {
    let reported = on_store(store, NEW_KEY, &["check-store", "--json"]);
    assert_ne!(reported.json()["checks"][1]["result"], "problem", "{reported:?}");
    assert_eq!(
        reported.json()["records"]["unreadable"]["unknown_key"],
        0,
        "{reported:?}"
    );
    let service = Service::start(store, NEW_KEY).await;
    for secret in secrets {
        let by = Some(By::SessionId(secret.clone()));
        let read = service.client.get_session(GetSessionRequest { by }).await;
        assert_eq!(read.unwrap().session.unwrap().subject, "ada");
    }
    let repeated = service
        .client
        .create_session(new_session("ada", "sid-0", REQUEST))
        .await;
    assert_eq!(repeated.unwrap().session_id, secrets[0]);
    // Whoever creates a session of this person reads the mark.
    service.create("bob", "", "").await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_services_sessions_are_sealed_anew_without_anybody_noticing() {
    let server = RedisServer::start(&[]);
    let store = format!("redis://127.0.0.1:{}", server.port);
    let service = Service::start(&store, OLD_KEY).await;
    let secrets = furnished(&service).await;
    service.stop().await;
    let service = Arc::new(Service::start(&store, &ring()).await);
    let before = service.listed("ada").await;

    let dry = on_store(&store, &ring(), &["rekey", "--dry-run", "--json"]);
    assert_eq!((dry.code, &dry.json()["dry_run"]), (0, &true.into()), "{dry:?}");
    let wanted = dry.json()["rewritten"].as_u64().unwrap();
    assert!(wanted > SESSIONS as u64, "sessions and notes: {dry:?}");
    let again = on_store(&store, &ring(), &["rekey", "--dry-run", "--json"]);
    assert_eq!(again.json()["rewritten"], wanted, "nothing was written");

    // One session is written all the time, by one who counts.
    let over = Arc::new(AtomicBool::new(false));
    let (writing, stop, busy) = (Arc::clone(&service), Arc::clone(&over), secrets[0].clone());
    let writer = tokio::spawn(async move {
        let mut count = 0_u32;
        while !stop.load(Ordering::Relaxed) {
            count += 1;
            let update = UpdateSessionRequest {
                session_id: busy.clone(),
                attributes: serde_json::json!({ "count": count }).to_string(),
                ..UpdateSessionRequest::default()
            };
            writing.client.update_session(update).await.unwrap();
        }
        count
    });
    let (address, keys) = (store.clone(), ring());
    let reported =
        tokio::task::spawn_blocking(move || on_store(&address, &keys, &["rekey", "--json", "--rate", "100"]));
    let reported = reported.await.unwrap();
    over.store(true, Ordering::Relaxed);
    let count = writer.await.unwrap();

    assert_eq!(reported.code, 0, "{reported:?}");
    let summary = reported.json();
    assert_eq!(
        (&summary["complete"], &summary["unreadable"]),
        (&true.into(), &0.into())
    );
    assert!(
        summary["rewritten"].as_u64().unwrap() >= wanted - 1,
        "{summary:#}"
    );
    let after = service.listed("ada").await;
    let (busy, _) = before
        .iter()
        .find(|(handle, session)| after[*handle].version != session.version)
        .unwrap();
    for (handle, session) in before.iter().filter(|(handle, _)| *handle != busy) {
        assert_eq!(
            &after[handle], session,
            "version, expiry and all else are what they were"
        );
    }
    let counted: serde_json::Value = serde_json::from_str(&after[busy].attributes).unwrap();
    assert_eq!(counted["count"], count);

    let again = on_store(&store, &ring(), &["rekey", "--json"]);
    assert_eq!(
        (again.code, &again.json()["rewritten"]),
        (0, &0.into()),
        "{again:?}"
    );
    assert_eq!(again.json()["walks"], 1);
    Arc::into_inner(service).unwrap().stop().await;
    nothing_needs_the_old_key(&store, &secrets).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_sealed_anew_node_by_node() {
    let cluster = Cluster::start(Engine::Redis);
    let store = cluster.url();
    let service = Service::start(&store, OLD_KEY).await;
    let secrets = furnished(&service).await;
    service.stop().await;
    let owners = secrets.iter().map(|secret| {
        let handle = SessionId::parse(secret).unwrap().handle().to_string();
        cluster.owner(&record_key(&handle))
    });
    let owners: BTreeSet<usize> = owners.collect();
    assert_eq!(owners.len(), 3, "every node has sessions");
    let reported = on_store(&store, &ring(), &["rekey", "--json"]);
    assert_eq!(reported.code, 0, "{reported:?}");
    nothing_needs_the_old_key(&store, &secrets).await;
    let report = on_store(&store, NEW_KEY, &["check-store", "--json"]).json();
    assert_eq!(report["store"], "redis-cluster");
    let slots = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "cluster_slots");
    assert_eq!(slots.unwrap()["value"], "16384 of 16384");
}

#[tokio::test]
async fn a_file_is_sealed_anew_while_its_service_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let store = file_in(directory.path());
    let service = Service::start(&store, OLD_KEY).await;
    let secrets = furnished(&service).await;
    let reported = on_store(&store, &ring(), &["rekey"]);
    assert_eq!(reported.code, 1);
    assert!(
        reported.err.contains("stop the service first"),
        "{}",
        reported.err
    );
    service.stop().await;

    let reported = on_store(&store, NEW_KEY, &["rekey", "--json"]);
    assert_eq!(
        reported.code, 1,
        "without the old key nothing can be done: {reported:?}"
    );
    assert!(reported.json()["unreadable"].as_u64().unwrap() > SESSIONS as u64);
    let reported = on_store(&store, &ring(), &["rekey"]);
    assert_eq!(reported.code, 0, "{reported:?}");
    assert!(
        reported.out.contains("the others can be removed"),
        "{}",
        reported.out
    );
    nothing_needs_the_old_key(&store, &secrets).await;
}

#[tokio::test]
async fn the_same_key_twice_is_told() {
    let server = RedisServer::start(&[]);
    let store = format!("redis://127.0.0.1:{}", server.port);
    let reported = on_store(&store, &format!("{NEW_KEY},{NEW_KEY}"), &["rekey", "--json"]);
    assert_eq!(
        (reported.code, &reported.json()["error"]["reason"]),
        (1, &"ambiguous_keys".into())
    );
}
