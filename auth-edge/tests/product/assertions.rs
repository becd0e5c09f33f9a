//! Signed assertions for upstreams, verified with the key set the edge publishes, as upstreams do.

use std::io::Write as _;
use std::time::{Duration, Instant};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::gateway::Gateway;
use crate::support::{Browser, Log};

const RULE: &str =
    "[[route]]\npath = \"/signed/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\nupstream_jwt = true\n";
const JWKS: &str = "/.well-known/vestibule/jwks.json";

fn key() -> String {
    let rng = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
    let body = STANDARD.encode(document.as_ref());
    format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
}

fn key_file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Header and claims of a token signed by one of these keys.
fn verified(token: &str, jwks: &Value) -> (Value, Value) {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let header = decoded(header);
    let keys = jwks["keys"].as_array().unwrap();
    let key = keys.iter().find(|key| key["kid"] == header["kid"]).unwrap();
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .expect("the signature verifies");
    (header, decoded(claims))
}

fn last_assertion(gateway: &Gateway) -> String {
    let requests = gateway.upstream.requests();
    let sent = requests.last().unwrap().all("x-auth-assertion");
    assert_eq!(sent.len(), 1, "exactly one, ours");
    sent[0].clone()
}

async fn jwks(browser: &mut Browser) -> Value {
    browser.get(JWKS).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_can_verify_who_asks() {
    let file = key_file(&key());
    let path = file.path().to_str().unwrap().to_owned();
    let gateway = Gateway::start(RULE, &[("EDGE_UPSTREAM_JWT_KEY_FILE", &path)]).await;
    let user = json!({"sub": "person-7", "acr": "gold", "groups": ["admin"], "address": "nobody's business"});
    let mut browser = gateway.signed_in_as(user, "openid").await;
    let forged = [("x-auth-assertion", "forged"), ("x_auth_assertion", "forged")];
    assert_eq!(browser.get_with("/signed/a", &forged).await.status, 200);
    let token = last_assertion(&gateway);
    let published = gateway.stack.browser().get(JWKS).await;
    assert_eq!(published.header("cache-control"), "public, max-age=300");
    assert_eq!(published.header("content-type"), "application/jwk-set+json");
    let (header, mut claims) = verified(&token, &published.json());
    assert_eq!((&header["alg"], &header["typ"]), (&json!("ES256"), &json!("JWT")));
    let now = gateway.stack.now_secs();
    let seen = gateway.upstream.requests();
    let jti = claims.as_object_mut().unwrap().remove("jti").unwrap();
    assert_eq!(
        claims,
        json!({
            "iss": gateway.stack.base(), "aud": gateway.upstream.url(), "sub": "person-7",
            "idp": gateway.stack.provider.issuer(), "sid": seen[0].all("x-auth-session")[0],
            "iat": now, "exp": now + 60, "auth_time": now, "acr": "gold", "groups": ["admin"],
        })
    );
    browser.get("/signed/a").await;
    let (_, again) = verified(&last_assertion(&gateway), &published.json());
    assert_ne!(again["jti"], jti, "an assertion never comes twice");

    browser.get("/api/orders").await;
    let unsigned = gateway.upstream.requests();
    assert_eq!(
        unsigned.last().unwrap().all("x-auth-assertion"),
        Vec::<String>::new(),
        "only where the rule says so"
    );
    assert_eq!(gateway.stack.browser().get("/signed/a").await.status, 401);
    assert_eq!(gateway.upstream.requests().len(), 3);
}

#[tokio::test]
async fn keys_change_without_a_restart_and_a_wrong_file_changes_nothing() {
    let log = Log::begin();
    let (old, new) = (key(), key());
    let file = key_file(&old);
    let path = file.path().to_str().unwrap().to_owned();
    let gateway = Gateway::start(RULE, &[("EDGE_UPSTREAM_JWT_KEY_FILE", &path)]).await;
    let mut browser = gateway.signed_in().await;
    browser.get("/signed/a").await;
    let before = last_assertion(&gateway);
    let (first, _) = verified(&before, &jwks(&mut browser).await);

    std::fs::write(&path, format!("{new}{old}")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while jwks(&mut browser).await["keys"].as_array().unwrap().len() != 2 {
        assert!(Instant::now() < deadline, "the changed file is taken over");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let published = jwks(&mut browser).await;
    browser.get("/signed/a").await;
    let (second, _) = verified(&last_assertion(&gateway), &published);
    assert_ne!(first["kid"], second["kid"], "the first key signs");
    verified(&before, &published);

    std::fs::write(
        &path,
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    )
    .unwrap();
    log.wait_for(&["EDGE_UPSTREAM_JWT_KEY_FILE", &path, "the old value stays in use"])
        .await;
    assert_eq!(jwks(&mut browser).await, published);
    browser.get("/signed/a").await;
    let (third, _) = verified(&last_assertion(&gateway), &published);
    assert_eq!(third["kid"], second["kid"], "the key before it still signs");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_nothing_is_published() {
    let gateway = Gateway::start("", &[]).await;
    assert_eq!(gateway.stack.browser().get(JWKS).await.status, 404);
}
