//! The edge's credentials at the provider, changed while it runs.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scripted_provider::{CLIENT_SECRET, Endpoint};
use serde_json::Value;

use crate::support::{Log, Stack, key_file};

const TAKEN_OVER: [&str; 2] = ["provider credentials", "the changed file is in use"];

/// Renames a file into place, as Kubernetes updates mounted secrets.
fn put(path: &Path, text: &str) {
    let next = path.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// The header of a token in the last token request.
fn header_of(token: &str) -> Value {
    decoded(token.split('.').next().unwrap())
}

/// Signs a user in. Returns the key that signed the client's assertion, and the tokens' bound key.
async fn used_keys(stack: &Stack) -> (Value, Value) {
    stack.browser().sign_in().await;
    let request = stack.provider.last_request(Endpoint::Token);
    let assertion = header_of(request.param("client_assertion").unwrap());
    let proof = header_of(request.header("dpop").unwrap());
    (assertion["kid"].clone(), proof["jwk"]["x"].clone())
}

// conformance: B-033
#[tokio::test]
async fn changed_keys_are_used_without_a_restart_and_a_wrong_file_changes_nothing() {
    let log = Log::begin();
    let (client, bound) = (key_file(), key_file());
    let path = |file: &tempfile::NamedTempFile| file.path().to_str().unwrap().to_owned();
    let stack = Stack::with(&[
        ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt"),
        ("OIDC_CLIENT_SECRET", ""),
        ("OIDC_CLIENT_KEY_FILE", &path(&client)),
        ("OIDC_DPOP", "on"),
        ("OIDC_DPOP_KEY_FILE", &path(&bound)),
    ])
    .await;
    stack.provider.script(|script| script.dpop = true);
    let published = async || {
        let answer = stack
            .browser()
            .get("/.well-known/vestibule/client-jwks.json")
            .await;
        answer.json()["keys"][0]["kid"].clone()
    };
    let before = used_keys(&stack).await;
    assert_eq!(published().await, before.0);

    for (setting, file) in [("OIDC_CLIENT_KEY_FILE", &client), ("OIDC_DPOP_KEY_FILE", &bound)] {
        let good = std::fs::read_to_string(file.path()).unwrap();
        put(file.path(), "no key at all");
        log.wait_for(&[setting, &path(file), "PKCS#8", "stays in use"])
            .await;
        assert_eq!(used_keys(&stack).await, before, "{setting}");
        put(file.path(), &good);
    }

    log.wait_for(&TAKEN_OVER).await;
    put(bound.path(), &std::fs::read_to_string(key_file().path()).unwrap());
    put(
        client.path(),
        &std::fs::read_to_string(key_file().path()).unwrap(),
    );
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let after = loop {
        let now = used_keys(&stack).await;
        if now.0 != before.0 && now.1 != before.1 {
            break now;
        }
        assert!(std::time::Instant::now() < deadline, "the changed keys are used");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_eq!(published().await, after.0);
}

// conformance: B-033
#[tokio::test]
async fn a_changed_secret_is_used_without_a_restart_and_one_that_is_none_changes_nothing() {
    let log = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    put(&file, CLIENT_SECRET);
    let path = file.to_str().unwrap();
    let stack = Stack::with(&[("OIDC_CLIENT_SECRET", ""), ("OIDC_CLIENT_SECRET_FILE", path)]).await;
    stack.browser().sign_in().await;

    put(&file, "short\n");
    log.wait_for(&["OIDC_CLIENT_SECRET", path, "8 characters", "stays in use"])
        .await;
    stack.browser().sign_in().await;

    put(&file, "another secret than the provider knows");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let mut browser = stack.browser();
        let callback = browser.until_callback("/api/auth/login").await;
        match browser.visit(&callback).await.status {
            400 => break,
            status => assert_eq!(status, 302),
        }
        let now = std::time::Instant::now();
        assert!(now < deadline, "the provider is shown the new one");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
