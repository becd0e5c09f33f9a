//! The program itself, with every kind of call in flight while its disk fills, empties, and it is killed.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scripted_provider::{CLIENT_ID, CLIENT_SECRET, ScriptedProvider};
use session_proto::v1::session::State;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, end_session_request, get_session_request};
use tokio::task::JoinHandle;
use tonic::transport::Channel;

use super::disk::Disk;

const KEY: &str = "abababababababababababababababababababababababababababababababab";
const SCOPE: &str = "openid email";
const WAIT_MAX: Duration = Duration::from_secs(120);
/// People signed in before the disk fills.
const PEOPLE: usize = 40;

type Client = SessionServiceClient<Channel>;

struct Service {
    child: Child,
    client: Client,
    admin: String,
}

impl Service {
    async fn start(disk: &Disk, issuer: &str) -> Self {
        let (port, admin) = (free_port(), free_port());
        let child = Command::new(env!("CARGO_BIN_EXE_session-svc"))
            .env_clear()
            .env("SESSION_LISTEN", format!("127.0.0.1:{port}"))
            .env("SESSION_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
            .env("SESSION_STORE", format!("file:{}", disk.store().display()))
            .env("SESSION_ENCRYPTION_KEY", KEY)
            .env("SESSION_MAX_PER_SUBJECT", "0")
            .env("OIDC_ISSUER_URL", issuer)
            .env("OIDC_CLIENT_ID", CLIENT_ID)
            .env("OIDC_CLIENT_SECRET", CLIENT_SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let channel = Channel::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
        let service = Self {
            child,
            client: SessionServiceClient::new(channel.connect_lazy()),
            admin: format!("127.0.0.1:{admin}"),
        };
        until("the service to start", || async {
            let unknown = session(&service.client, "0123456789abcdef0123456789abcdef").await;
            unknown.is_err_and(|status| status.code() == tonic::Code::NotFound)
        })
        .await;
        service
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What the admin listener answers.
    fn get(&self, path: &str) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&self.admin).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A signed-in user with an expired access token.
fn wish(provider: &ScriptedProvider) -> v1::CreateSessionRequest {
    let tokens = provider.sign_in(SCOPE);
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    let user = serde_json::json!({"sub": "alice", "about": "x".repeat(30_000)});
    v1::CreateSessionRequest {
        issuer: provider.issuer().to_owned(),
        user: user.to_string(),
        tokens: Some(v1::TokenSet {
            access_token: text("access_token"),
            scope: SCOPE.to_owned(),
            refresh_token: text("refresh_token"),
            id_token: text("id_token"),
            expires_at: Some(session_proto::timestamp::from_ms(1_700_000_000_000)),
            ..Default::default()
        }),
        provider_sid: text("sid"),
        ..Default::default()
    }
}

async fn sign_in(client: &Client, provider: &ScriptedProvider) -> Result<String, tonic::Status> {
    let created = client.clone().create_session(wish(provider)).await?;
    Ok(created.into_inner().session_id)
}

async fn session(client: &Client, id: &str) -> Result<v1::Session, tonic::Status> {
    let by = Some(get_session_request::By::SessionId(id.to_owned()));
    let read = client.clone().get_session(v1::GetSessionRequest { by }).await?;
    Ok(*read.into_inner().session.unwrap())
}

async fn end(client: &Client, id: &str) -> Result<bool, tonic::Status> {
    let by = Some(end_session_request::By::SessionId(id.to_owned()));
    let request = v1::EndSessionRequest {
        by,
        ..Default::default()
    };
    Ok(client.clone().end_session(request).await?.into_inner().ended)
}

/// The acknowledged state: which users are signed in, and which no longer are.
#[derive(Default)]
struct Acknowledged {
    begun: BTreeSet<String>,
    ended: BTreeSet<String>,
}

/// Calls of every kind until stopped.
fn load(
    client: &Client,
    provider: &Arc<ScriptedProvider>,
    people: &[String],
    acknowledged: &Arc<Mutex<Acknowledged>>,
    stop: &Arc<AtomicBool>,
) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    for kind in 0..5 {
        let (client, provider, people) = (client.clone(), Arc::clone(provider), people.to_vec());
        let (acknowledged, stop) = (Arc::clone(acknowledged), Arc::clone(stop));
        tasks.push(tokio::spawn(async move {
            let mut mine: Option<String> = None;
            for number in 0_usize.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let id = people[number * 7 % people.len()].clone();
                let mut client = client.clone();
                match kind {
                    // Signs a user in, and out again before the next.
                    0 => {
                        if let Some(id) = mine.take() {
                            // Unknown until acknowledged: a kill may come between ending and answer.
                            acknowledged.lock().unwrap().begun.remove(&id);
                            if matches!(end(&client, &id).await, Ok(true)) {
                                acknowledged.lock().unwrap().ended.insert(id);
                            }
                        }
                        if let Ok(id) = sign_in(&client, &provider).await {
                            acknowledged.lock().unwrap().begun.insert(id.clone());
                            mine = (number % 2 == 0).then_some(id);
                        }
                    }
                    1 => drop(session(&client, &id).await),
                    2 => {
                        let session_id = id;
                        let roll = v1::RollSessionRequest {
                            session_id,
                            ..Default::default()
                        };
                        drop(client.roll_session(roll).await);
                    }
                    3 => {
                        let force_refresh = number % 3 == 0;
                        let ask = v1::GetAccessTokenRequest {
                            session_id: id,
                            force_refresh,
                            ..Default::default()
                        };
                        drop(client.get_access_token(ask).await);
                    }
                    _ => {
                        let list = v1::ListSessionsRequest {
                            issuer: provider.issuer().to_owned(),
                            subject: "alice".to_owned(),
                            page_size: 20,
                            ..Default::default()
                        };
                        drop(client.list_sessions(list).await);
                    }
                }
                tokio::task::yield_now().await;
            }
        }));
    }
    tasks
}

async fn until<F: Future<Output = bool>>(what: &str, so: impl Fn() -> F) {
    let began = Instant::now();
    while !so().await {
        assert!(began.elapsed() < WAIT_MAX, "still waiting: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn everything_is_there(client: &Client, people: &[String], acknowledged: &Mutex<Acknowledged>) {
    let (begun, ended) = {
        let acknowledged = acknowledged.lock().unwrap();
        (acknowledged.begun.clone(), acknowledged.ended.clone())
    };
    for id in people.iter().chain(&begun) {
        let found = session(client, id).await.unwrap();
        assert_eq!(found.state(), State::Active, "a refresh token was used up");
    }
    for id in &ended {
        assert_eq!(
            session(client, id).await.unwrap_err().code(),
            tonic::Code::NotFound
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_a_disk_that_fills_and_empties_during_every_kind_of_call() {
    let disk = Disk::of_mib(40);
    let provider = Arc::new(ScriptedProvider::start());
    let mut service = Service::start(&disk, provider.issuer()).await;
    let mut people = Vec::new();
    for _ in 0..PEOPLE {
        people.push(sign_in(&service.client, &provider).await.unwrap());
    }
    let acknowledged = Arc::<Mutex<Acknowledged>>::default();
    for round in 0..2 {
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = load(&service.client, &provider, &people, &acknowledged, &stop);
        disk.fill();
        let client = service.client.clone();
        until("the store to be full", || async {
            sign_in(&client, &provider)
                .await
                .map(|id| acknowledged.lock().unwrap().begun.insert(id))
                .is_err()
        })
        .await;
        until("readiness to say so", || async {
            service.get("/readyz").contains("is full")
        })
        .await;
        let readiness = service.get("/readyz");
        assert!(readiness.starts_with("HTTP/1.1 200"), "{readiness}");
        let metrics = service.get("/metrics");
        let observed = metrics
            .lines()
            .find(|line| line.starts_with("session_store_full"));
        assert!(observed.is_some_and(|line| line.ends_with(" 1")), "{observed:?}");
        assert_eq!(provider.reuses(), 0);
        if round == 1 {
            // Killed on the full disk, with everything in flight.
            service.kill();
            stop.store(true, Ordering::Relaxed);
            for task in tasks {
                task.await.unwrap();
            }
            service = Service::start(&disk, provider.issuer()).await;
        } else {
            stop.store(true, Ordering::Relaxed);
            for task in tasks {
                task.await.unwrap();
            }
        }
        everything_is_there(&service.client, &people, &acknowledged).await;
        // A user who signs out is signed out.
        let leaving: Vec<String> = acknowledged
            .lock()
            .unwrap()
            .begun
            .iter()
            .take(20)
            .cloned()
            .collect();
        for id in leaving.into_iter().chain(people.drain(..10)) {
            assert!(end(&service.client, &id).await.unwrap());
            let mut acknowledged = acknowledged.lock().unwrap();
            acknowledged.begun.remove(&id);
            acknowledged.ended.insert(id);
        }
        disk.empty();
        let client = service.client.clone();
        until("sign-in to work again", || async {
            sign_in(&client, &provider)
                .await
                .map(|id| acknowledged.lock().unwrap().begun.insert(id))
                .is_ok()
        })
        .await;
        until("readiness to say so", || async {
            !service.get("/readyz").contains("is full")
        })
        .await;
    }
    everything_is_there(&service.client, &people, &acknowledged).await;
    // Each used refresh token has a stored outcome, except one in flight when the process was killed.
    let mut lost = 0;
    for id in &people {
        let ask = v1::GetAccessTokenRequest {
            session_id: id.clone(),
            force_refresh: true,
            ..Default::default()
        };
        lost += usize::from(service.client.clone().get_access_token(ask).await.is_err());
    }
    assert!(lost <= 1, "{lost} of {}", people.len());
    assert!(provider.rotations() > people.len());
}
