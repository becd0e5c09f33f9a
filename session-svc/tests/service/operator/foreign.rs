//! Keys of another program, where this one keeps its sessions.

use super::support::{NEW_KEY, OLD_KEY, Service, on_store};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn keys_of_another_program_are_passed_over_and_counted() {
    let server = RedisServer::start(&["--appendonly", "yes"]);
    let store = format!("redis://127.0.0.1:{}", server.port);
    let service = Service::start(&store, OLD_KEY).await;
    for number in 0..5 {
        service.create("ada", &format!("sid-{number}"), "").await;
    }
    service.stop().await;
    // Lists at the names of a session, of a note and of an index, and a name that is no text.
    for key in [
        "vestibule:s0123456789abcdef",
        "vestibule:m0123456789abcdef",
        "vestibule:izz",
        "\"vestibule:S\\xff\"",
    ] {
        let pushed = server.ask(&format!("RPUSH {key} x"));
        assert_eq!(pushed.trim(), ":1", "{key}");
    }
    let reported = on_store(&store, OLD_KEY, &["check-store", "--json"]);
    assert_eq!(reported.code, 1, "{reported:?}");
    let report = reported.json();
    assert_eq!(report["records"]["sessions"], 5, "{report:#}");
    assert_eq!(report["records"]["foreign"], 4, "{report:#}");
    let ring = format!("{NEW_KEY},{OLD_KEY}");
    let reported = on_store(&store, &ring, &["rekey", "--json"]);
    assert_eq!(reported.code, 1, "{reported:?}");
    let report = reported.json();
    assert_eq!(
        (&report["rewritten"], &report["foreign"]),
        (&5.into(), &3.into()),
        "{report:#}"
    );
    let reported = on_store(&store, NEW_KEY, &["check-store", "--json"]);
    assert_eq!(reported.json()["records"]["sessions"], 5, "{reported:?}");
}
