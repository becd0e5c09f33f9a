//! `signals`: streams at a scripted transmitter, and what is recorded of them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis::clock::SystemClock;
use chassis::secret::{Reloading, Secret};
use scripted_provider::{
    Answer, CLIENT_ID, CLIENT_SECRET, ScriptedTransmitter, TransmitterEndpoint as Endpoint,
};
use serde_json::{Value, json};
use session_svc::receiver::stream_record::{Confirmed, StreamRecords};
use session_svc::store::{self, SessionStore};
use session_svc::vault::{KeyRing, Vault};

use super::support::{NEW_KEY, ToolOutput, file_in, program};
use crate::redis_server::RedisServer;

const AUDIENCE: &str = "https://edge.example";
const PUSH_URL: &str = "https://edge.example/api/auth/events";

/// A transmitter, the file that names it, and a store that is not made yet.
struct Bench {
    scripted: ScriptedTransmitter,
    directory: tempfile::TempDir,
    store: String,
}

fn bench_on(store: Option<String>) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let store = store.unwrap_or_else(|| file_in(directory.path()));
    let bench = Bench {
        scripted: ScriptedTransmitter::start(),
        directory,
        store,
    };
    bench.write("token", ScriptedTransmitter::TOKEN);
    bench.configure(&bench.pushing("idp"));
    bench
}

/// With a file store, which a service has made before.
async fn bench() -> Bench {
    let bench = bench_on(None);
    drop(bench.opened().await);
    bench
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn configure(&self, tables: &str) {
        self.write("transmitters.toml", tables);
    }

    fn table(&self, id: &str, more: &str) -> String {
        let (issuer, token) = (self.scripted.issuer(), self.path("token").display().to_string());
        format!(
            "[[transmitter]]\nid = {id:?}\nissuer = {issuer:?}\naudience = [{AUDIENCE:?}]\ntoken_file = {token:?}\n{more}\n"
        )
    }

    fn pushing(&self, id: &str) -> String {
        self.table(id, &format!("delivery = \"push\"\npush_url = {PUSH_URL:?}"))
    }

    fn polling(&self, id: &str) -> String {
        self.table(id, "delivery = \"poll\"")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command
            .args(["signals"])
            .args(arguments)
            .env("SESSION_STORE", &self.store)
            .env("SESSION_ENCRYPTION_KEY", NEW_KEY)
            .env("SESSION_TRANSMITTERS", self.path("transmitters.toml"));
        command
    }

    fn tool(&self, arguments: &[&str]) -> ToolOutput {
        let reported = ToolOutput::of(self.command(arguments).output().unwrap());
        let header = self.header().unwrap_or_else(|| "nothing yet".to_owned());
        for secret in [ScriptedTransmitter::TOKEN, CLIENT_SECRET, header.as_str()] {
            let is_shown = reported.out.contains(secret) || reported.err.contains(secret);
            assert!(!is_shown, "{reported:?}");
        }
        reported
    }

    fn done(&self, arguments: &[&str]) -> Value {
        let reported = self.tool(&[arguments, &["--json"]].concat());
        assert_eq!(reported.code, 0, "{reported:?}");
        reported.json()
    }

    fn fails(&self, arguments: &[&str], code: i32) -> (String, String) {
        let reported = self.tool(&[arguments, &["--json"]].concat());
        assert_eq!(reported.code, code, "{reported:?}");
        let error = &reported.json()["error"];
        let text = |name: &str| error[name].as_str().unwrap().to_owned();
        (text("reason"), text("message"))
    }

    /// What has to come with pushes of the only stream.
    fn header(&self) -> Option<String> {
        let id = self.scripted.streams().first()?["stream_id"].as_str()?.to_owned();
        self.scripted.authorization_header(&id)
    }

    fn only_stream(&self) -> String {
        let streams = self.scripted.streams();
        assert_eq!(streams.len(), 1, "{streams:?}");
        streams[0]["stream_id"].as_str().unwrap().to_owned()
    }

    /// The store as a service opens it, and what opens its records.
    async fn opened(&self) -> (Arc<dyn SessionStore>, Vault) {
        let settings = self.store.parse().unwrap();
        let store = store::open(&settings, Arc::new(SystemClock)).await.unwrap();
        let ring = KeyRing::parse(&[Secret::new(NEW_KEY.to_owned())]).unwrap();
        (store, Vault::new(Reloading::new(ring)))
    }
}

#[tokio::test]
async fn a_stream_is_created_looked_after_and_deleted() {
    let bench = bench().await;
    let created = bench.done(&["create"]);
    let id = bench.only_stream();
    assert_eq!(created["stream_id"], id.as_str());
    assert_eq!(created["audience"], json!([AUDIENCE]));
    let request = bench.scripted.requests(Endpoint::Streams).remove(0).json();
    assert_eq!(request["delivery"]["endpoint_url"], PUSH_URL);
    let header = bench.header().unwrap();
    assert!(header.starts_with("Bearer ") && header.len() == 50, "{header}");
    assert_eq!(request["events_requested"], json!(oidc::SECURITY_EVENT_TYPES));
    {
        let (store, vault) = bench.opened().await;
        let kept = StreamRecords::new(store.as_ref(), &vault)
            .load("idp")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(kept.stream.push_authorization.unwrap().expose(), &header);
    }

    let listed = bench.done(&["list"]);
    let row = &listed["transmitters"][0];
    assert_eq!(
        (&row["transmitter"], &row["stream_id"]),
        (&json!("idp"), &json!(id))
    );
    assert_eq!(
        (&row["status"], &row["there"]["status"]),
        (&json!("enabled"), &json!("enabled"))
    );
    assert_eq!(row["verified_at"], Value::Null);
    let shown = bench.done(&["show", "--transmitter", "idp"]);
    assert_eq!(shown["default_subjects"], "ALL");
    assert_eq!(shown["configuration"]["min_verification_interval"], 60);
    assert_eq!(shown["configuration"]["endpoint_url"], PUSH_URL);

    for (command, status) in [("pause", "paused"), ("resume", "enabled")] {
        let set = bench.done(&[command]);
        assert_eq!(
            (&set["status"], &set["there"]["status"]),
            (&json!(status), &json!(status))
        );
        assert_eq!(bench.scripted.status(&id).as_deref(), Some(status));
        assert_eq!(bench.done(&["list"])["transmitters"][0]["status"], status);
    }
    // People read the same.
    let text = bench.tool(&["list"]).out;
    assert!(
        text.contains("TRANSMITTER") && text.contains(&id) && text.contains("never"),
        "{text}"
    );
    let text = bench.tool(&["show"]).out;
    assert!(text.contains("status there") && text.contains(PUSH_URL), "{text}");

    assert_eq!(bench.done(&["delete"])["deleted_there"], true);
    assert!(bench.scripted.streams().is_empty());
    let (reason, message) = bench.fails(&["show"], 3);
    assert_eq!(reason, "no_stream");
    assert!(message.contains("signals create --transmitter idp"), "{message}");
    for command in ["verify", "pause", "resume", "delete"] {
        let wait: &[&str] = if command == "verify" {
            &["--wait", "0"]
        } else {
            &[]
        };
        assert_eq!(bench.fails(&[&[command], wait].concat(), 3).0, "no_stream");
    }
    assert_eq!(bench.done(&["list"])["transmitters"][0]["stream_id"], Value::Null);
}

#[tokio::test]
async fn there_is_one_stream_of_a_transmitter() {
    let bench = bench().await;
    bench.done(&["create"]);
    let (reason, message) = bench.fails(&["create"], 1);
    assert_eq!(reason, "stream_recorded");
    assert!(
        message.contains(&bench.only_stream()) && message.contains("signals delete"),
        "{message}"
    );
    // Nor does a transmitter that was given this id later inherit it.
    let table = bench
        .pushing("idp")
        .replace(bench.scripted.issuer(), "http://127.0.0.1:9");
    bench.configure(&table);
    for command in ["create", "show", "pause", "delete"] {
        assert_eq!(bench.fails(&[command], 1).0, "other_issuer");
    }
    let row = &bench.done(&["list"])["transmitters"][0];
    assert_eq!(row["stream_issuer"], bench.scripted.issuer());
    assert_eq!(bench.done(&["delete", "--here-only"])["deleted_there"], false);
    assert_eq!(bench.fails(&["delete", "--here-only"], 3).0, "no_stream");
    assert_eq!(bench.scripted.streams().len(), 1);
}

#[tokio::test]
async fn a_stream_that_cannot_be_recorded_is_deleted_again() {
    let server = RedisServer::start(&[]);
    let bench = bench_on(Some(format!("redis://127.0.0.1:{}", server.port)));
    // The store goes away while the transmitter still thinks.
    let held = bench.scripted.hold(Endpoint::Streams);
    let child = bench
        .command(&["create", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    bench.scripted.wait_for_calls(Endpoint::Streams, 1).await;
    drop(server);
    drop(held);
    let reported = ToolOutput::of(child.wait_with_output().unwrap());
    assert_eq!(reported.code, 1, "{reported:?}");
    let message = reported.json()["error"]["message"].to_string();
    assert!(message.contains("deleted again: nothing is created"), "{message}");
    assert!(bench.scripted.streams().is_empty());
}

#[tokio::test]
async fn a_stream_that_is_there_already_is_adopted_where_it_is_delivered_as_configured() {
    let bench = bench().await;
    assert_eq!(bench.fails(&["create", "--adopt"], 1).0, "nothing_to_adopt");
    bench.done(&["create"]);
    let id = bench.only_stream();
    assert_eq!(bench.fails(&["create", "--adopt"], 1).0, "stream_recorded");
    bench.done(&["delete", "--here-only"]);
    bench.configure(&bench.polling("idp"));
    assert_eq!(bench.fails(&["create", "--adopt"], 1).0, "nothing_to_adopt");
    bench.configure(&bench.pushing("idp"));
    assert_eq!(bench.done(&["create", "--adopt"])["stream_id"], id.as_str());
    assert_eq!(bench.only_stream(), id);
    assert_eq!(bench.done(&["show"])["stream_id"], id.as_str());
}

#[tokio::test]
async fn what_is_left_at_a_transmitter_is_found_and_deleted() {
    let bench = bench().await;
    bench.done(&["create"]);
    let id = bench.only_stream();
    bench.done(&["delete", "--here-only"]);
    bench
        .scripted
        .script(|script| script.answer_once(Endpoint::Streams, Answer::status(409)));
    let (reason, message) = bench.fails(&["create"], 1);
    assert_eq!(reason, "stream_exists");
    assert!(message.contains(&format!("{id}. One")), "{message}");
    bench.done(&["delete", "--stream", &id]);
    assert!(bench.scripted.streams().is_empty());
    assert_eq!(bench.fails(&["delete", "--stream", &id], 1).0, "no_such_stream");
    // The other way round: the transmitter has forgotten it.
    bench.done(&["create"]);
    bench.scripted.forget_streams();
    let reported = bench.tool(&["show", "--json"]);
    assert_eq!(reported.code, 1);
    assert_eq!(reported.json()["there"]["error"]["reason"], "no_such_stream");
    assert_eq!(bench.fails(&["pause"], 1).0, "no_such_stream");
    assert_eq!(bench.done(&["delete"])["deleted_there"], false);
    bench.done(&["create"]);
    // A transmitter that cannot be asked keeps its stream, and so do we.
    bench.scripted.script(|script| {
        script.answers.insert(Endpoint::Streams, Answer::status(503));
    });
    let (reason, message) = bench.fails(&["delete"], 1);
    assert_eq!(reason, "unanswered");
    assert!(message.contains("--here-only"), "{message}");
    assert_ne!(bench.done(&["list"])["transmitters"][0]["stream_id"], Value::Null);
}

#[tokio::test]
async fn a_verification_is_waited_for_until_a_service_has_taken_it() {
    let server = RedisServer::start(&[]);
    let bench = bench_on(Some(format!("redis://127.0.0.1:{}", server.port)));
    bench.configure(&bench.polling("idp"));
    bench.done(&["create"]);
    let id = bench.only_stream();
    let started = Instant::now();
    let reported = bench.tool(&["verify", "--wait", "1", "--json"]);
    assert_eq!((reported.code, &reported.json()["verified"]), (1, &json!(false)));
    assert!(started.elapsed() >= Duration::from_secs(1));
    let advice = reported.json()["advice"].to_string();
    assert!(advice.contains("SESSION_TRANSMITTERS"), "{advice}");
    assert_eq!(
        bench.done(&["list"])["transmitters"][0]["pending_verifications"],
        1
    );

    let child = bench
        .command(&["verify", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    bench.scripted.wait_for_calls(Endpoint::Verification, 2).await;
    let asked = bench.scripted.last_request(Endpoint::Verification).json();
    let state = asked["state"].as_str().unwrap();
    let (store, vault) = bench.opened().await;
    let records = StreamRecords::new(store.as_ref(), &vault);
    let other = records.confirm("idp", bench.scripted.issuer(), &id, Some("another"));
    assert_eq!(other.await.unwrap(), Confirmed::OtherState);
    let taken = records.confirm("idp", bench.scripted.issuer(), &id, Some(state));
    assert_eq!(taken.await.unwrap(), Confirmed::Yes);
    let reported = ToolOutput::of(child.wait_with_output().unwrap());
    assert_eq!(
        (reported.code, &reported.json()["verified"]),
        (0, &json!(true)),
        "{reported:?}"
    );
    assert_ne!(reported.json()["verified_at"], Value::Null);

    // One that is refused is not waited for, by anybody.
    let late = vec![("retry-after".to_owned(), "45".to_owned())];
    bench.scripted.script(|script| {
        let answer = Answer::Http {
            status: 429,
            headers: late,
            body: Vec::new(),
        };
        script.answer_once(Endpoint::Verification, answer);
    });
    let (reason, message) = bench.fails(&["verify"], 1);
    assert_eq!(reason, "too_many_requests");
    assert!(message.contains("again in 45 s"), "{message}");
    assert_eq!(
        bench.done(&["list"])["transmitters"][0]["pending_verifications"],
        1
    );
}

#[tokio::test]
async fn a_file_is_not_shared_with_the_service_that_has_to_take_a_verification() {
    let bench = bench().await;
    bench.done(&["create"]);
    let (reason, message) = bench.fails(&["verify"], 1);
    assert_eq!(reason, "file_store");
    assert!(message.contains("--wait 0"), "{message}");
    assert_eq!(bench.done(&["verify", "--wait", "0"])["verified"], false);
    assert_eq!(bench.done(&["show"])["pending_verifications"], 1);
    let running = bench.opened().await;
    let (reason, message) = bench.fails(&["list"], 1);
    assert_eq!(reason, "store_in_use");
    assert!(message.contains("stop the service first"), "{message}");
    drop(running);
}

#[tokio::test]
async fn which_transmitter_is_said_where_there_are_several() {
    let bench = bench().await;
    let other = bench
        .polling("other")
        .replace(bench.scripted.issuer(), "http://127.0.0.1:9");
    bench.configure(&format!("{}{other}", bench.pushing("idp")));
    let (reason, message) = bench.fails(&["create"], 2);
    assert_eq!(reason, "usage");
    assert!(message.contains("idp, other"), "{message}");
    assert_eq!(bench.fails(&["create", "--transmitter", "third"], 2).0, "usage");
    assert_eq!(
        bench.fails(&["create", "--transmitter", "other"], 1).0,
        "configuration"
    );
    bench.done(&["create", "--transmitter", "idp"]);
    let listed = bench.done(&["list"]);
    assert_eq!(listed["transmitters"].as_array().unwrap().len(), 2);
    // Without the file there is nobody to ask.
    let mut command = bench.command(&["list", "--json"]);
    let reported = ToolOutput::of(command.env_remove("SESSION_TRANSMITTERS").output().unwrap());
    assert_eq!(reported.code, 78, "{reported:?}");
    bench.configure(&bench.table("idp", "delivery = \"carrier pigeon\""));
    assert_eq!(bench.tool(&["list", "--json"]).code, 78);
}

#[tokio::test]
async fn a_client_gets_its_token_and_what_pushes_come_with_may_be_configured() {
    let bench = bench().await;
    bench.write("secret", CLIENT_SECRET);
    bench.write("authorization", "Bearer of-our-own\n");
    let token_file = format!("token_file = {:?}", bench.path("token").display().to_string());
    let client = format!(
        "token_endpoint = {:?}\nclient_id = {CLIENT_ID:?}\nclient_secret_file = {:?}\nscope = \"ssf.manage\"\nauthorization_file = {:?}",
        bench.scripted.url(Endpoint::Token),
        bench.path("secret").display().to_string(),
        bench.path("authorization").display().to_string(),
    );
    bench.configure(&bench.pushing("idp").replace(&token_file, &client));
    bench.done(&["create"]);
    assert_eq!(
        bench.scripted.last_request(Endpoint::Token).param("scope"),
        Some("ssf.manage")
    );
    assert_eq!(bench.header().as_deref(), Some("Bearer of-our-own"));
}

#[tokio::test]
async fn what_is_refused_at_creation_is_told_and_leaves_nothing() {
    let bench = bench().await;
    bench.configure(&bench.table("idp", "delivery = \"push\""));
    assert_eq!(bench.fails(&["create"], 1).0, "no_push_url");
    bench.configure(&bench.pushing("idp"));
    bench
        .scripted
        .script(|script| script.audience = vec!["\u{1b}[2Jevil".to_owned()]);
    let (reason, message) = bench.fails(&["create"], 1);
    assert_eq!(reason, "audience");
    assert!(!message.contains('\u{1b}'), "{message}");
    bench.write("token", "no-token-of-theirs");
    assert_eq!(bench.fails(&["create"], 1).0, "unauthorized");
    assert!(bench.scripted.streams().is_empty());
    assert_eq!(bench.fails(&["show"], 3).0, "no_stream");
}
