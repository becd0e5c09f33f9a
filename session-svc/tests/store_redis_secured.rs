//! Redis behind TLS with a private authority, an ACL user with no more rights than needed, and client
//! certificates.

// The layouts of the redis client's futures nest deeper than the compiler's default allows.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

#[path = "support/certificates.rs"]
mod certificates;
mod contract;
#[path = "support/redis.rs"]
mod redis_server;

use std::sync::Arc;

use certificates::Certificates;
use chassis::clock::SystemClock;
use contract::{Bench, eventually};
use redis_server::RedisServer;
use session_svc::store::url::StoreSettings;
use session_svc::store::{OpenError, SessionStore, StoreError, open as open_store};

/// The rights docs ask an operator to give: its own keys, and the commands the store uses.
const RIGHTS: &str = "~vestibule:* +get +mget +set +del +exists +getrange +pexpire +pexpireat +zadd +zrem +zrange \
                      +zremrangebyscore +xadd +xread +xrange +xrevrange +eval +evalsha +time +ping +unwatch";

const PASSWORD: &str = "p@ss:w/rd?+#";
const ENCODED: &str = "p%40ss%3Aw%2Frd%3F+%23";

fn secured(certificates: &Certificates, clients: &str) -> RedisServer {
    let (ca, cert, key) = (
        certificates.text("ca.pem"),
        certificates.text("server.pem"),
        certificates.text("server.key"),
    );
    let password = format!(">{PASSWORD}");
    let mut arguments = vec!["--port", "0", "--tls-port", "PORT", "--tls-auth-clients", clients];
    arguments.extend([
        "--tls-ca-cert-file",
        &ca,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
    ]);
    arguments.extend(["--user", "default", "off", "--user", "sessions", "on", &password]);
    arguments.extend(RIGHTS.split_whitespace());
    RedisServer::start(&arguments)
}

async fn try_connect(url: &str) -> Result<Arc<dyn SessionStore>, OpenError> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_over_tls_for_a_user_with_only_the_rights_needed() {
    let certificates = Certificates::make();
    let server = secured(&certificates, "no");
    let (port, ca) = (server.port, certificates.text("ca.pem"));
    let url = format!("rediss://sessions:{ENCODED}@127.0.0.1:{port}?ca_file={ca}");
    let (store, other) = (try_connect(&url).await.unwrap(), try_connect(&url).await.unwrap());
    store.check().await.unwrap();
    let timed = Arc::clone(&store);
    let pass: contract::Pass = Box::new(move |ms| {
        let store = Arc::clone(&timed);
        Box::pin(async move {
            let until = store.now_ms() + ms + 20;
            eventually("time to pass", || async { store.now_ms() >= until }).await;
        })
    });
    let bench = &Bench {
        store,
        other,
        pass,
        _keeps: Box::new(()),
    };
    cases!(run_all, bench,);
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_asks() {
    let certificates = Certificates::make();
    let server = secured(&certificates, "yes");
    let (port, ca) = (server.port, certificates.text("ca.pem"));
    let url = format!("rediss://sessions:{ENCODED}@localhost:{port}?ca_file={ca}");
    let without = try_connect(&url).await.unwrap().check().await;
    assert!(matches!(without, Err(StoreError::Unavailable(_))), "{without:?}");
    let (cert, key) = (certificates.text("client.pem"), certificates.text("client.key"));
    let with = try_connect(&format!("{url}&cert_file={cert}&key_file={key}"))
        .await
        .unwrap();
    with.check().await.unwrap();
}

#[tokio::test]
async fn an_unknown_authority_a_wrong_password_and_a_missing_file_are_refused_without_showing_the_password() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let server = secured(&certificates, "no");
    let (port, ca, other_ca) = (server.port, certificates.text("ca.pem"), others.text("ca.pem"));
    for url in [
        format!("rediss://sessions:{ENCODED}@127.0.0.1:{port}?ca_file={other_ca}"),
        format!("rediss://sessions:{ENCODED}@127.0.0.1:{port}"),
        format!("rediss://sessions:wrong-{ENCODED}@127.0.0.1:{port}?ca_file={ca}"),
        format!("redis://sessions:{ENCODED}@127.0.0.1:{port}"),
    ] {
        let error = try_connect(&url).await.unwrap().check().await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(!format!("{error:?}").contains("p@ss"), "{error:?}");
    }
    let url = format!("rediss://sessions:{ENCODED}@127.0.0.1:{port}?ca_file=/nonexistent/ca.pem");
    let error = try_connect(&url).await.err().unwrap();
    assert!(
        error
            .to_string()
            .starts_with("/nonexistent/ca.pem cannot be read"),
        "{error}"
    );
    let not_pem = certificates.text("server.key");
    let url = format!("rediss://127.0.0.1:{port}?ca_file={not_pem}&cert_file={not_pem}&key_file={ca}");
    let error = try_connect(&url).await.err().unwrap();
    assert!(error.to_string().contains("PEM"), "{error}");
}
