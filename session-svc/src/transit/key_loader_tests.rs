//! The loader against a scripted transit engine, which answers as Vault and OpenBao document it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use aws_lc_rs::rand::SystemRandom;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chassis::clock::SystemClock;
use chassis::findings::chain;
use chassis::readiness::{Readiness, Weight};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use super::*;
use crate::session::SessionId;
use crate::transit::Login;
use crate::vault::Vault;

const TOKEN: &str = "hvs.a-token";
const ENOUGH: Duration = Duration::from_secs(20);

/// What the engine answers to the next requests.
#[derive(Clone)]
enum Says {
    /// It decrypts.
    Plaintext,
    Status(u16, &'static str),
    Redirect(String),
    Huge,
}

struct Engine {
    says: Says,
    /// Path and token of each request.
    requests: Vec<(String, String)>,
}

#[derive(Clone)]
struct ScriptedTransit {
    engine: Arc<Mutex<Engine>>,
    address: Url,
    folder: Arc<TempDir>,
}

impl ScriptedTransit {
    async fn start() -> Self {
        let engine = Engine {
            says: Says::Plaintext,
            requests: Vec::new(),
        };
        let engine = Arc::new(Mutex::new(engine));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&engine));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let transit = Self {
            engine,
            address: address.parse().unwrap(),
            folder: Arc::new(tempfile::tempdir().unwrap()),
        };
        std::fs::write(transit.token_file(), format!("{TOKEN}\n")).unwrap();
        transit
    }

    fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    fn says(&self, says: Says) {
        self.engine.lock().unwrap().says = says;
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.engine.lock().unwrap().requests.clone()
    }

    fn settings(&self) -> TransitSettings {
        TransitSettings {
            address: self.address.clone(),
            mount: "transit".to_owned(),
            key: "vestibule".to_owned(),
            token_file: self.token_file(),
            login: None,
            ca_file: None,
        }
    }

    fn loader(&self) -> KeyLoader {
        KeyLoader::new(Some(self.settings()), None)
    }
}

async fn answer(
    State(engine): State<Arc<Mutex<Engine>>>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let token = headers.get("x-vault-token").map(|token| token.to_str().unwrap());
    let mut engine = engine.lock().unwrap();
    engine
        .requests
        .push((uri.path().to_owned(), token.unwrap_or_default().to_owned()));
    let refusal = |status: u16, body: String| (StatusCode::from_u16(status).unwrap(), body).into_response();
    match &engine.says {
        Says::Status(status, body) => return refusal(*status, (*body).to_owned()),
        Says::Redirect(to) => {
            return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to.clone())]).into_response();
        }
        Says::Huge => return "x".repeat(1 << 20).into_response(),
        Says::Plaintext => {}
    }
    let body: Value = serde_json::from_str(&body).unwrap();
    if uri.path() == "/v1/auth/kubernetes/login" {
        assert_eq!(body, json!({"role": "session-svc", "jwt": TOKEN}));
        let auth = json!({"client_token": "hvs.of-the-login", "lease_duration": 600});
        return json!({"data": null, "auth": auth}).to_string().into_response();
    }
    if uri.path() != "/v1/transit/decrypt/vestibule" {
        return refusal(404, json!({"errors": ["no handler for route"]}).to_string());
    }
    let sealed = body["ciphertext"]
        .as_str()
        .unwrap()
        .strip_prefix("vault:v1:")
        .unwrap();
    let sealed = STANDARD.decode(sealed).unwrap();
    match sealed.strip_prefix(b"sealed") {
        Some(key) => {
            let data = json!({"plaintext": STANDARD.encode(key)});
            json!({"data": data}).to_string().into_response()
        }
        None => refusal(
            400,
            json!({"errors": ["invalid ciphertext: unable to decrypt"]}).to_string(),
        ),
    }
}

/// A ciphertext from which the scripted engine takes these bytes.
fn wrapped(bytes: &[u8]) -> String {
    format!("vault:v1:{}", STANDARD.encode([b"sealed", bytes].concat()))
}

fn list(texts: &[&str]) -> Vec<Secret<String>> {
    texts.iter().map(|text| Secret::new((*text).to_owned())).collect()
}

/// Whether `ring` opens what this key sealed.
fn opens(ring: &Reloading<KeyRing>, key: u8) -> bool {
    let hex = base16ct::lower::encode_string(&[key; KEY_BYTES]);
    let name = SessionId::random(&SystemRandom::new()).unwrap().handle();
    let sealed = Vault::new(Reloading::new(KeyRing::parse(&list(&[&hex])).unwrap()));
    let sealed = sealed.seal_note("test", name, b"a note").unwrap();
    Vault::new(ring.clone()).open_note("test", name, &sealed).is_ok()
}

async fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + ENOUGH;
    while !holds() {
        assert!(Instant::now() < deadline, "it does not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn wrapped_and_other_keys_make_one_ring() {
    let transit = ScriptedTransit::start().await;
    let clear = "05".repeat(KEY_BYTES);
    let keys = [wrapped(&[7; KEY_BYTES]), clear, wrapped(&[9; KEY_BYTES])];
    let keys = list(&keys.each_ref().map(String::as_str));
    let ring = Reloading::new(transit.loader().load(&keys).await.unwrap());
    for key in [5, 7, 9] {
        assert!(opens(&ring, key), "{key}");
    }
    assert!(!opens(&ring, 8));
    let request = ("/v1/transit/decrypt/vestibule".to_owned(), TOKEN.to_owned());
    assert!(transit.requests().iter().all(|sent| *sent == request));
}

#[tokio::test]
async fn a_login_gives_the_token_and_a_refused_one_is_retried() {
    let transit = ScriptedTransit::start().await;
    let loader = |path: &str| {
        let login = Login {
            path: path.to_owned(),
            role: "session-svc".to_owned(),
        };
        let settings = TransitSettings {
            login: Some(login),
            ..transit.settings()
        };
        KeyLoader::new(Some(settings), None)
    };
    let keys = list(&[&wrapped(&[7; KEY_BYTES])]);
    loader("auth/kubernetes").load(&keys).await.unwrap();
    let sent = [
        ("/v1/auth/kubernetes/login", ""),
        ("/v1/transit/decrypt/vestibule", "hvs.of-the-login"),
    ];
    assert_eq!(
        transit.requests(),
        sent.map(|(path, token)| (path.to_owned(), token.to_owned()))
    );
    let error = loader("auth/other").load(&keys).await.unwrap_err();
    assert!(chain(&error).contains("auth/other/login answers 404"), "{error}");
    assert!(!error.is_final());
}

#[tokio::test]
async fn each_failure_names_its_cause_and_only_a_useless_retry_is_final() {
    let transit = ScriptedTransit::start().await;
    let elsewhere = ScriptedTransit::start().await;
    let good = wrapped(&[7; KEY_BYTES]);
    let redirect = Says::Redirect(
        elsewhere
            .address
            .join("/v1/transit/decrypt/vestibule")
            .unwrap()
            .to_string(),
    );
    let short = wrapped(&[7; 16]);
    for (says, key, is_final, expected) in [
        (
            Says::Plaintext,
            "vault:v1:AAAA",
            true,
            "key 1 cannot be unwrapped: transit/decrypt/vestibule answers 400 \"invalid ciphertext: unable to decrypt\"",
        ),
        (Says::Plaintext, &short, true, "no key of 32 bytes"),
        (
            Says::Status(400, r#"{"errors":["encryption key not found"]}"#),
            &good,
            true,
            "SESSION_VAULT_KEY",
        ),
        (
            Says::Status(404, r#"{"errors":["no handler for route"]}"#),
            &good,
            true,
            "nothing is mounted there",
        ),
        (
            Says::Status(404, "<html>no backend</html>"),
            &good,
            false,
            "answers 404",
        ),
        (
            Says::Status(
                403,
                "{\"errors\":[\"1 error occurred:\\n\\t* permission denied\\n\\n\"]}",
            ),
            &good,
            false,
            "403 \"1 error occurred: * permission denied\": renew the token",
        ),
        (
            Says::Status(503, r#"{"errors":["Vault is sealed"]}"#),
            &good,
            false,
            "503 \"Vault is sealed\"",
        ),
        (
            Says::Status(200, "<html>log in</html>"),
            &good,
            false,
            "check SESSION_VAULT_ADDR",
        ),
        (Says::Huge, &good, false, "check SESSION_VAULT_ADDR"),
        (redirect, &good, false, "redirects are not followed"),
    ] {
        transit.says(says);
        let error = transit.loader().load(&list(&[key])).await.unwrap_err();
        let text = chain(&error);
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains(TOKEN), "{text}");
        assert_eq!(error.is_final(), is_final, "{text}");
    }
    assert_eq!(elsewhere.requests(), []);

    std::fs::remove_file(transit.token_file()).unwrap();
    let error = transit.loader().load(&list(&[&good])).await.unwrap_err();
    assert!(chain(&error).contains("SESSION_VAULT_TOKEN_FILE"), "{error}");
    assert!(!error.is_final());
    let error = KeyLoader::new(None, None)
        .load(&list(&[&good]))
        .await
        .unwrap_err();
    assert!(
        error.is_final() && error.to_string().contains("SESSION_VAULT_ADDR"),
        "{error}"
    );
}

#[tokio::test]
async fn a_start_waits_for_vault_and_is_not_ready_meanwhile() {
    let transit = ScriptedTransit::start().await;
    transit.says(Says::Status(503, r#"{"errors":["Vault is sealed"]}"#));
    let readiness = Readiness::new();
    let ready = readiness.subscribe();
    let condition = readiness.condition("vault", Weight::Once);
    let mut loader = KeyLoader::new(Some(transit.settings()), Some(condition));
    let keys = list(&[&wrapped(&[7; KEY_BYTES])]);
    let loading = tokio::spawn(async move { loader.wait_for(&keys).await });
    until(|| !transit.requests().is_empty()).await;
    assert!(!*ready.borrow() && !loading.is_finished());

    // The agent renews the token meanwhile.
    std::fs::write(transit.token_file(), "hvs.renewed").unwrap();
    transit.says(Says::Plaintext);
    let ring = tokio::time::timeout(ENOUGH, loading).await.unwrap().unwrap();
    assert!(opens(&Reloading::new(ring.unwrap()), 7));
    assert!(*ready.borrow());
    assert_eq!(transit.requests().last().unwrap().1, "hvs.renewed");
}

#[tokio::test]
async fn a_start_ends_if_no_retry_can_help() {
    let transit = ScriptedTransit::start().await;
    let keys = list(&["vault:v1:AAAA"]);
    let mut loader = transit.loader();
    let loaded = tokio::time::timeout(ENOUGH, loader.wait_for(&keys)).await;
    assert!(matches!(loaded.unwrap(), Err(KeysError::Unwrap(1, _))));
    assert_eq!(transit.requests().len(), 1);
}

#[tokio::test]
async fn known_keys_move_and_go_without_vault() {
    let transit = ScriptedTransit::start().await;
    let mut loader = transit.loader();
    let [one, two] = [7, 9].map(|key| wrapped(&[key; KEY_BYTES]));
    loader.load(&list(&[&one, &two])).await.unwrap();
    transit.says(Says::Status(503, ""));
    for keys in [list(&[&two, &one]), list(&[&two])] {
        loader.load(&keys).await.unwrap();
    }
    assert_eq!(transit.requests().len(), 2);
    // A key that left the list is forgotten.
    assert!(loader.load(&list(&[&one])).await.is_err());
}

#[tokio::test]
async fn a_changed_list_waits_for_vault_while_the_old_ring_serves() {
    let transit = ScriptedTransit::start().await;
    let path = transit.folder.path().join("keys");
    let write = |texts: &[&str]| std::fs::write(&path, texts.join("\n")).unwrap();
    let [one, two, three] = [7, 9, 11].map(|key| wrapped(&[key; KEY_BYTES]));
    write(&[&one]);
    let mut loader = transit.loader();
    let ring = Reloading::new(loader.load(&list(&[&one])).await.unwrap());
    loader.follow(
        ring.clone(),
        Duration::from_millis(10),
        &path,
        Arc::new(SystemClock),
    );

    transit.says(Says::Status(503, ""));
    let before = transit.requests().len();
    write(&[&one, &two]);
    until(|| transit.requests().len() > before).await;
    assert!(opens(&ring, 7) && !opens(&ring, 9));
    // A newer list replaces the one that waits.
    transit.says(Says::Plaintext);
    write(&[&one, &three]);
    until(|| opens(&ring, 11)).await;
    assert!(opens(&ring, 7) && !opens(&ring, 9));

    let before = transit.requests().len();
    write(&[&one, "vault:v1:AAAA"]);
    until(|| transit.requests().len() > before).await;
    write(&[&one, &two]);
    until(|| opens(&ring, 9)).await;
    assert!(opens(&ring, 7) && !opens(&ring, 11));
}
