//! `check-store`.

use super::support::{NEW_KEY, Service, file_in, on_store};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn replicas_that_do_not_acknowledge_are_noticed_before_the_first_sign_out() {
    let master = RedisServer::start(&["--appendonly", "yes", "--repl-diskless-sync-delay", "0"]);
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &master.port.to_string()]);
    master.ask("ACL SETUSER half on >half ~vestibule:* &* +@all -wait");
    master.wait_until_copied();
    master.ask("CONFIG SET min-replicas-to-write 1");
    master.ask("CONFIG SET min-replicas-max-lag 60");
    let acknowledged = |user: &str| {
        let store = format!("redis://{user}127.0.0.1:{}", master.port);
        on_store(&store, NEW_KEY, &["check-store"]).finding("store_rights")
    };
    let all = acknowledged("");
    assert_eq!(all.result, "ok", "{all:?}");
    let refused = acknowledged("half:half@");
    assert_eq!(refused.result, "problem");
    assert!(refused.advice.contains("+wait"), "{refused:?}");
    replica.signal("STOP");
    let silent = acknowledged("");
    replica.signal("CONT");
    assert_eq!(silent.result, "problem");
    assert!(silent.value.contains("no replica acknowledged"), "{silent:?}");
}

#[tokio::test]
async fn a_redis_that_keeps_sessions_well_is_healthy_and_one_that_may_evict_them_is_not() {
    let server = RedisServer::start(&["--appendonly", "yes"]);
    let store = format!("redis://127.0.0.1:{}", server.port);
    let service = Service::start(&store, NEW_KEY).await;
    for _ in 0..3 {
        service.create("ada", "sid", "").await;
    }
    let reported = on_store(&store, NEW_KEY, &["check-store"]);
    assert_eq!(reported.code, 0, "{reported:?}");
    assert!(reported.out.starts_with("Store (redis)"), "{reported:?}");
    for name in [
        "store",
        "store_rights",
        "store_clock",
        "server_version",
        "maxmemory_policy",
        "persistence",
    ] {
        assert_eq!(reported.finding(name).result, "ok", "{name}: {reported:?}");
    }
    assert_eq!(
        server.ask("KEYS *").matches("vestibule:s").count(),
        3,
        "the probe is gone"
    );

    server.ask("CONFIG SET maxmemory 1gb");
    server.ask("CONFIG SET maxmemory-policy allkeys-lru");
    let reported = on_store(&store, NEW_KEY, &["check-store"]);
    assert_eq!(reported.code, 1);
    let policy = reported.finding("maxmemory_policy");
    assert_eq!(policy.result, "problem");
    assert!(
        policy.advice.contains("noeviction") || policy.value.contains("noeviction"),
        "{policy:?}"
    );
}

#[tokio::test]
async fn a_file_is_checked_while_no_service_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = file_in(directory.path());
    let reported = on_store(&store, NEW_KEY, &["check-store"]);
    assert_eq!(reported.code, 1);
    assert!(reported.out.contains("does not exist"), "{}", reported.out);
    assert!(
        !directory.path().join("sessions").exists(),
        "a check makes nothing"
    );

    let service = Service::start(&store, NEW_KEY).await;
    service.create("ada", "sid", "").await;
    let reported = on_store(&store, NEW_KEY, &["check-store"]);
    assert_eq!(reported.code, 1);
    let found = reported.finding("store");
    assert!(found.value.contains("in use"), "{found:?}");
    assert!(found.advice.contains("stop the service first"), "{found:?}");
    service.stop().await;

    let reported = on_store(&store, NEW_KEY, &["check-store"]);
    assert_eq!(reported.code, 0, "{reported:?}");
    assert_eq!(reported.finding("store_rights").result, "ok");
}

#[tokio::test]
async fn the_rights_of_a_replica_are_enough() {
    let server = RedisServer::start(&[]);
    let rights = "resetkeys ~vestibule* resetchannels &vestibule* -@all +@all -@admin -@dangerous +info";
    server.ask(&format!("ACL SETUSER session-svc on >hunter2 {rights}"));
    let store = format!("redis://session-svc:hunter2@127.0.0.1:{}", server.port);
    let service = Service::start(&store, NEW_KEY).await;
    service.create("ada", "", "").await;
    let reported = on_store(&store, NEW_KEY, &["check-store"]);
    assert_eq!(reported.code, 0, "{reported:?}");
}

#[test]
fn a_store_that_cannot_be_looked_into_is_said_to_be() {
    let reported = on_store("memory:", NEW_KEY, &["check-store"]);
    assert_eq!(reported.code, 78);
    assert!(reported.err.contains("SESSION_STORE"), "{}", reported.err);
    let reported = on_store("redis://127.0.0.1:1", "", &["check-store"]);
    assert_eq!(reported.code, 78);
    assert!(
        reported.err.contains("SESSION_ENCRYPTION_KEY"),
        "{}",
        reported.err
    );
    let reported = on_store("redis://:hunter2@127.0.0.1:1", NEW_KEY, &["check-store"]);
    assert_eq!(reported.code, 1);
    assert_eq!(reported.finding("store").result, "problem");
    assert!(!reported.out.contains("hunter2") && !reported.err.contains("hunter2"));
}
