//! Redis behind TLS with a private authority, an ACL user with no more rights than needed, and client
//! certificates.

use std::sync::Arc;

use chassis::clock::SystemClock;
use session_svc::store::url::StoreSettings;
use session_svc::store::{KeyValueStore, OpenError, StoreError, open as open_store, open_from};

use crate::certificates::Certificates;
use crate::cluster::Cluster;
use crate::contract::{Bench, Pass, eventually, record};
use crate::redis_server::{Engine, RedisServer};
use crate::sentinels::Sentinels;

/// The documented rights: the store's own keys and commands.
const RIGHTS: &str = "~vestibule:* +get +mget +set +del +exists +getrange +pexpire +pexpireat +zadd +zrem +zrange \
                      +xadd +xtrim +xread +xrange +xrevrange +eval +evalsha +time +ping +unwatch +select";

/// Further rights behind Sentinels: the store asks a server for its role and its replicas.
const BEHIND_SENTINELS: [&str; 2] = ["+role", "+wait"];

/// Further rights in a cluster: the store asks nodes for the slots.
const IN_A_CLUSTER: &str = "+cluster|slots";

const PASSWORD: &str = "p@ss:w/rd?+#";
const ENCODED: &str = "p%40ss%3Aw%2Frd%3F+%23";

fn secured(certificates: &Certificates, clients: &str) -> RedisServer {
    RedisServer::start(&texts(&secured_arguments(certificates, clients)))
}

/// TLS only, and a single user.
fn secured_arguments(certificates: &Certificates, clients: &str) -> Vec<String> {
    let (ca, cert, key) = (
        certificates.text("ca.pem"),
        certificates.text("server.pem"),
        certificates.text("server.key"),
    );
    let mut arguments = vec!["--port", "0", "--tls-port", "PORT", "--tls-auth-clients", clients];
    arguments.extend([
        "--tls-ca-cert-file",
        &ca,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
    ]);
    arguments.extend(["--user", "default", "off"]);
    let arguments = arguments.into_iter().map(str::to_owned);
    arguments.chain(user(PASSWORD)).collect()
}

async fn try_connect(url: &str) -> Result<Arc<dyn KeyValueStore>, OpenError> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await
}

/// Arguments of a server with TLS on a second port, also between servers, and with the user.
fn beside_plain(certificates: &Certificates) -> (Vec<String>, Vec<String>) {
    let files = [
        ("--tls-ca-cert-file", "ca.pem"),
        ("--tls-cert-file", "server.pem"),
        ("--tls-key-file", "server.key"),
    ];
    let files = files
        .into_iter()
        .flat_map(|(flag, file)| [flag.to_owned(), certificates.text(file)]);
    let tls = [
        "--tls-port",
        "TLSPORT",
        "--tls-auth-clients",
        "no",
        "--tls-replication",
        "yes",
    ];
    let tls = tls.map(str::to_owned).into_iter().chain(files).collect();
    (tls, user(PASSWORD))
}

fn user(password: &str) -> Vec<String> {
    let password = format!(">{password}");
    let user = ["--user", "sessions", "on", &password];
    let user = user.into_iter().chain(RIGHTS.split_whitespace());
    user.map(str::to_owned).collect()
}

fn texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

async fn bench(url: &str) -> Bench {
    let (store, other) = (try_connect(url).await.unwrap(), try_connect(url).await.unwrap());
    // Its first connections are open by then; on a busy machine they take longer than opening waits.
    eventually("the store to be reached", || async {
        store.check().await.is_ok()
    })
    .await;
    let timed = Arc::clone(&store);
    let pass: Pass = Box::new(move |ms| {
        let store = Arc::clone(&timed);
        Box::pin(async move {
            let until = store.now_ms() + ms + 20;
            eventually("time to pass", || async { store.now_ms() >= until }).await;
        })
    });
    Bench {
        store,
        other,
        pass,
        _keeps: Box::new(()),
    }
}

#[test]
fn the_rights_are_those_of_the_documents_and_the_manifests() {
    let documents = include_str!("../../../docs/operating.md");
    let manifest = include_str!("../../../k8s/components/redis/settings/users.acl");
    for (text, user) in [
        (documents, "user sessions on >PASSWORD"),
        (manifest, "user session-svc on PASSWORDS"),
    ] {
        let (_, rules) = text.split_once(user).expect(user);
        let (rules, _) = rules.split_once("\n\n").expect(user);
        for right in RIGHTS.split_whitespace().chain(["+role"]) {
            assert!(
                rules.split_whitespace().any(|rule| rule == right),
                "{user}: {right}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_over_tls_for_a_user_with_only_the_rights_needed() {
    let certificates = Certificates::make();
    let server = secured(&certificates, "no");
    let (port, ca) = (server.port, certificates.text("ca.pem"));
    let bench = &bench(&format!(
        "rediss://sessions:{ENCODED}@127.0.0.1:{port}/1?ca_file={ca}"
    ))
    .await;
    crate::cases!(run_all, bench,);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_over_tls_behind_sentinels_and_after_a_failover() {
    let certificates = Certificates::make();
    let (tls, user) = beside_plain(&certificates);
    let user = [texts(&user), BEHIND_SENTINELS.to_vec()].concat();
    let mut servers = Sentinels::start_with(Engine::Redis, &texts(&tls), &user);
    let url = servers.tls_url(&format!("sessions:{ENCODED}"), &certificates.text("ca.pem"));
    let bench = &bench(&url).await;
    crate::cases!(run_all, bench,);
    let one = record(&*bench.store, 600_000, &[]);
    bench.store.insert(one.clone(), Vec::new()).await.unwrap();
    servers.servers[0].wait_until_copied();
    servers.servers[0].kill();
    servers.wait_for_second();
    eventually("the session on the new master", || async {
        let found = bench.store.load(one.name).await;
        found.is_ok_and(|found| found.as_ref() == Some(&one))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_over_tls_on_a_cluster() {
    let certificates = Certificates::make();
    let (tls, user) = beside_plain(&certificates);
    let user = [texts(&user), vec![IN_A_CLUSTER]].concat();
    let arguments = [texts(&tls), vec!["--tls-cluster", "yes"], user].concat();
    let cluster = Cluster::start_with(Engine::Redis, 0, &arguments);
    let url = cluster.tls_url(&format!("sessions:{ENCODED}"), &certificates.text("ca.pem"));
    let bench = &bench(&url).await;
    crate::cases!(run_all, bench,);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_authority_is_trusted_without_a_restart() {
    let (old, new) = (Certificates::make(), Certificates::make());
    let mut server = secured(&old, "no");
    let directory = tempfile::tempdir().unwrap();
    let ca = directory.path().join("ca.pem");
    std::fs::copy(old.path("ca.pem"), &ca).unwrap();
    let (port, ca_file) = (server.port, ca.to_str().unwrap());
    let url = format!("rediss://sessions:{ENCODED}@127.0.0.1:{port}?ca_file={ca_file}");
    let store = try_connect(&url).await.unwrap();
    store.check().await.unwrap();

    server.set_arguments(&texts(&secured_arguments(&new, "no")));
    server.start_again();
    eventually("the old connection to be given up", || async {
        store.check().await.is_err()
    })
    .await;
    std::fs::write(&ca, "no certificate").unwrap();
    assert!(
        store.check().await.is_err(),
        "the new authority is not trusted yet"
    );
    std::fs::copy(new.path("ca.pem"), &ca).unwrap();
    eventually("the new authority to be trusted", || async {
        store.check().await.is_ok()
    })
    .await;
    eventually("events over the new connection", || async {
        store.published(None).await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_changed_in_the_file_of_the_address_is_used_without_a_restart() {
    let server = RedisServer::start(&texts(&user("first-password")));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store");
    let address = |password: &str| format!("redis://sessions:{password}@127.0.0.1:{}\n", server.port);
    std::fs::write(&file, address("first-password")).unwrap();
    let settings: StoreSettings = address("first-password").trim().parse().unwrap();
    let store = open_from(&settings, Some(&file), Arc::new(SystemClock), None)
        .await
        .unwrap();
    store.check().await.unwrap();

    // An address that does not work changes nothing: the current connection stays.
    std::fs::write(&file, address("not-known-yet")).unwrap();
    eventually("the server to be asked with the new password", || async {
        store.check().await.unwrap();
        server.ask("ACL LOG").contains("sessions")
    })
    .await;
    // A file that names the memory store changes nothing either.
    std::fs::write(&file, "memory:").unwrap();
    store.check().await.unwrap();

    server.ask("ACL SETUSER sessions resetpass >second-password");
    server.ask("CLIENT KILL USER sessions");
    eventually("the old password to be refused", || async {
        store.check().await.is_err()
    })
    .await;
    std::fs::write(&file, address("second-password")).unwrap();
    eventually("the new password to be used", || async {
        store.check().await.is_ok()
    })
    .await;
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
async fn a_bad_authority_password_or_file_is_refused_without_showing_the_password() {
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
