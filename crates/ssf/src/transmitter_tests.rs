//! A transmitter with real keys: which of its events are accepted.

#[path = "transmitter_tests/fetching.rs"]
mod fetching;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scripted_provider::{Answer, CLIENT_ID, Endpoint, ScriptedProvider};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use oidc::{
    AccessTokenError, ExpectedIdToken, IdTokenError, ProviderSettings, RelyingParty, SigningAlgorithm,
};

use super::*;

const NOW: u64 = 1_800_000_000;
const OURS: &str = "https://edge.example";
const REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
/// Longer than any interval between two forced fetches, shorter than keys are kept.
const BETWEEN_FETCHES: Duration = Duration::from_secs(11);

/// A transmitter: this test serves its configuration; its keys are the scripted provider's.
struct Bench {
    keys: ScriptedProvider,
    issuer: String,
    configuration: Arc<Mutex<Value>>,
    requests: Arc<Mutex<Vec<String>>>,
    reads: Arc<AtomicUsize>,
    transmitter: Transmitter,
}

/// Advances time for caches. The network works only while the clock runs.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn bench_with(path: &str, change: impl FnOnce(&mut TransmitterSettings)) -> Bench {
    let keys = ScriptedProvider::start();
    keys.script(|script| script.now = Some(NOW));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let issuer = format!("http://127.0.0.1:{port}{path}");
    let document = json!({ "issuer": issuer, "jwks_uri": keys.url(Endpoint::Jwks) });
    let configuration = Arc::new(Mutex::new(document));
    let (requests, reads) = (Arc::default(), Arc::default());
    tokio::spawn(serve(
        listener,
        configuration.clone(),
        Arc::clone(&requests),
        Arc::clone(&reads),
    ));
    let mut settings = TransmitterSettings::new(issuer.clone());
    change(&mut settings);
    let transmitter = Transmitter::new(settings).expect("usable settings");
    Bench {
        keys,
        issuer,
        configuration,
        requests,
        reads,
        transmitter,
    }
}

async fn bench() -> Bench {
    bench_with("", |_| {}).await
}

/// Serves the configuration at every path.
async fn serve(
    listener: TcpListener,
    configuration: Arc<Mutex<Value>>,
    requests: Arc<Mutex<Vec<String>>>,
    reads: Arc<AtomicUsize>,
) {
    while let Ok((mut connection, _)) = listener.accept().await {
        let mut head = [0; 4_096];
        let length = connection.read(&mut head).await.unwrap_or_default();
        let head = String::from_utf8_lossy(&head[..length]);
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(target);
        reads.fetch_add(1, Ordering::SeqCst);
        let body = configuration
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = connection.write_all(answer.as_bytes()).await;
    }
}

impl Bench {
    /// Valid claims, patched; `null` removes a member.
    fn claims(&self, patch: &Value) -> Value {
        let mut right = json!({
            "iss": self.issuer,
            "jti": "one",
            "iat": NOW,
            "aud": OURS,
            "sub_id": { "format": "iss_sub", "iss": self.keys.issuer(), "sub": "alice" },
            "events": { (REVOKED): { "event_timestamp": NOW - 10 } },
        });
        for (name, value) in patch.as_object().expect("a patch") {
            right[name] = value.clone();
        }
        let members = right.as_object_mut().expect("members");
        members.retain(|_, value| !value.is_null());
        right
    }

    fn event_with_header(&self, header: &Value, patch: &Value) -> String {
        let mut own = json!({ "typ": "secevent+jwt" });
        for (name, value) in header.as_object().expect("a patch") {
            own[name] = value.clone();
        }
        self.keys.sign_with_header(own, self.claims(patch))
    }

    fn event(&self, patch: &Value) -> String {
        self.event_with_header(&json!({}), patch)
    }

    async fn verify(&self, raw: &str) -> Result<SecurityEventToken, SecurityEventError> {
        self.transmitter.verify(raw, &[OURS.to_owned()], NOW).await
    }

    async fn refusal(&self, raw: &str) -> String {
        let refused = self.verify(raw).await.expect_err("a refusal");
        refused.to_string()
    }

    fn configure(&self, name: &str, value: Value) {
        let mut document = self.configuration.lock().unwrap_or_else(PoisonError::into_inner);
        document[name] = value;
    }

    fn fetches(&self) -> usize {
        self.keys.calls(Endpoint::Jwks)
    }

    fn configuration_reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

#[tokio::test]
async fn an_event_signed_by_the_transmitter_holds_in_every_algorithm_of_a_public_key() {
    for algorithm in SigningAlgorithm::PUBLIC_KEY {
        let bench = bench().await;
        bench.keys.script(|script| script.algorithm = algorithm.name());
        let token = bench.verify(&bench.event(&json!({}))).await;
        let token = token.unwrap_or_else(|error| panic!("{algorithm}: {error}"));
        assert_eq!((token.jti.as_str(), token.event.name), ("one", "session-revoked"));
    }
}

#[tokio::test]
async fn clocks_may_differ_by_a_minute() {
    let bench = bench().await;
    for (ahead, holds) in [(60, true), (61, false)] {
        let verified = bench.verify(&bench.event(&json!({ "iat": NOW + ahead }))).await;
        assert_eq!(verified.is_ok(), holds, "{ahead}");
    }
}

#[test]
fn settings_that_cannot_be_kept_to_are_refused_before_any_word_is_said() {
    let refused = |change: &dyn Fn(&mut TransmitterSettings)| {
        let mut settings = TransmitterSettings::new("https://tr.example.com");
        change(&mut settings);
        Transmitter::new(settings).err().map(|error| format!("{error:?}"))
    };
    assert_eq!(refused(&|_| {}), None);
    for (issuer, error) in [
        ("tr.example.com", "Issuer"),
        ("", "Issuer"),
        ("urn:example:tr", "Issuer"),
        ("https://tr.example.com?a=b", "Issuer"),
        ("https://tr.example.com#a", "Issuer"),
        ("http://tr.example.com", "InsecureIssuer"),
    ] {
        let refusal = refused(&|settings| settings.issuer = issuer.to_owned());
        assert_eq!(refusal.as_deref(), Some(error), "{issuer}");
    }
    let insecure = Url::parse("http://tr.example.com/ssf").expect("a URL");
    let refusal = refused(&|settings| settings.configuration_url = Some(insecure.clone()));
    assert_eq!(refusal.as_deref(), Some("InsecureIssuer"));
    let absent = Some(PathBuf::from("/nowhere/ca.pem"));
    assert!(refused(&|settings| settings.ca_file.clone_from(&absent)).is_some());
}

/// RFC 8417 section 2.3, SSF 1.0 section 4.1.1.
#[tokio::test]
async fn the_type_is_there_and_says_security_event() {
    let bench = bench().await;
    for typ in ["secevent+jwt", "SecEvent+JWT", "application/secevent+jwt"] {
        let raw = bench.event_with_header(&json!({ "typ": typ }), &json!({}));
        assert!(bench.verify(&raw).await.is_ok(), "{typ}");
    }
    for (typ, refused) in [
        (json!(null), "typ is not secevent+jwt"),
        (json!(""), "typ is not secevent+jwt"),
        (json!("JWT"), "typ is not secevent+jwt"),
        (json!("logout+jwt"), "typ is not secevent+jwt"),
        (json!("at+jwt"), "typ is not secevent+jwt"),
        (json!("dpop+jwt"), "typ is not secevent+jwt"),
        (json!("secevent"), "typ is not secevent+jwt"),
        (json!("secevent+cwt"), "typ is not secevent+jwt"),
        (json!("x/secevent+jwt"), "typ is not secevent+jwt"),
        (json!(["secevent+jwt"]), "the token is malformed"),
    ] {
        let raw = bench.event_with_header(&json!({ "typ": typ }), &json!({}));
        assert_eq!(bench.refusal(&raw).await, refused, "{typ}");
    }
    let critical = bench.event_with_header(&json!({ "crit": ["exp"] }), &json!({}));
    assert_eq!(
        bench.refusal(&critical).await,
        "the header has members that cannot be understood"
    );
    assert_eq!(bench.fetches(), 1, "nobody looked for keys to refuse these");
}

#[tokio::test]
async fn no_other_kind_of_token_passes_for_a_security_event() {
    let bench = bench().await;
    let id_token = bench.keys.sign_in("openid");
    let id_token = id_token["id_token"].as_str().expect("an ID token");
    let logout = bench
        .keys
        .logout_token(json!({ "iss": bench.issuer, "aud": OURS, "sub": "alice" }));
    let access = bench
        .keys
        .access_token(json!({ "iss": bench.issuer, "aud": OURS }));
    for raw in [id_token, &logout, &access] {
        assert_eq!(bench.refusal(raw).await, "typ is not secevent+jwt");
    }
    // With the right type, such a token is rejected too.
    let called = |claims: Value| {
        let header = json!({ "typ": "secevent+jwt" });
        bench.keys.sign_with_header(header, claims)
    };
    let common = |more: Value| {
        let mut claims = json!({ "iss": bench.issuer, "aud": OURS, "iat": NOW, "jti": "one" });
        for (name, value) in more.as_object().expect("claims") {
            claims[name] = value.clone();
        }
        claims
    };
    let logged_out = json!({ "http://schemas.openid.net/event/backchannel-logout": {} });
    for (claims, refused) in [
        (
            json!({ "sub": "alice", "exp": NOW + 300, "nonce": "n" }),
            "exp is not a claim of a security event",
        ),
        (
            json!({ "sub": "alice", "client_id": "machine", "scope": "all" }),
            "sub is not a claim of a security event",
        ),
        (
            json!({ "sub": "alice", "events": logged_out }),
            "sub is not a claim of a security event",
        ),
        (
            json!({ "sid": "s", "events": logged_out }),
            "sub_id is absent or no object",
        ),
        (
            json!({ "nonce": "n" }),
            "nonce is not a claim of a security event",
        ),
    ] {
        let raw = called(common(claims.clone()));
        assert_eq!(bench.refusal(&raw).await, refused, "{claims}");
    }
}

#[tokio::test]
async fn a_security_event_passes_for_no_other_kind_of_token() {
    let bench = bench().await;
    let mut settings = ProviderSettings::new(bench.keys.issuer(), CLIENT_ID);
    settings.http_timeout = Duration::from_millis(1_500);
    let party = RelyingParty::new(settings).expect("usable settings");
    // Claims that the provider could send as a transmitter, and worse.
    let raw = bench.event(&json!({
        "iss": bench.keys.issuer(), "aud": CLIENT_ID, "sub": "alice", "sid": "s", "nonce": "nonce",
        "exp": NOW + 300, "client_id": "machine",
        "events": { "http://schemas.openid.net/event/backchannel-logout": {}, (REVOKED): {} },
    }));
    let logout = party.validate_logout_token(&raw, NOW).await;
    assert!(matches!(logout, Err(IdTokenError::LogoutType)), "{logout:?}");
    let access = party
        .validate_access_token(&raw, |audience| audience == CLIENT_ID, &[], NOW)
        .await;
    assert!(matches!(access, Err(AccessTokenError::Type)), "{access:?}");
    let expected = ExpectedIdToken {
        nonce: "nonce",
        ..ExpectedIdToken::default()
    };
    let id_token = party.validate_id_token(&raw, &expected, NOW).await;
    assert!(
        matches!(&id_token, Err(IdTokenError::Type(typ)) if typ == "secevent+jwt"),
        "{id_token:?}"
    );
}

#[tokio::test]
async fn an_event_that_nobody_signed_or_anybody_could_have_is_refused() {
    let bench = bench().await;
    let good = bench.event(&json!({}));
    assert!(bench.verify(&good).await.is_ok());
    let (signed, signature) = good.rsplit_once('.').expect("a JWS");
    let claims = part(&bench.claims(&json!({})));
    let kid = bench.keys.published_keys()["keys"][0]["kid"].clone();
    let under = |algorithm: &str| part(&json!({ "typ": "secevent+jwt", "alg": algorithm, "kid": kid }));
    for algorithm in ["none", "None", "NONE", "", "rs256", "ES256K"] {
        let header = under(algorithm);
        for raw in [
            format!("{header}.{claims}."),
            format!("{header}.{claims}.{signature}"),
        ] {
            assert_eq!(bench.refusal(&raw).await, "alg is not allowed", "{algorithm}");
        }
    }
    // The public key as a secret (RFC 8725 section 2.1), as text and as its modulus.
    let keys = bench.keys.published_keys();
    let modulus = keys["keys"][0]["n"].as_str().unwrap_or_default().to_owned();
    for secret in [keys.to_string(), keys["keys"][0].to_string(), modulus] {
        let signed = format!("{}.{claims}", under("HS256"));
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
        let signature = aws_lc_rs::hmac::sign(&key, signed.as_bytes());
        let raw = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        assert_eq!(bench.refusal(&raw).await, "alg is not allowed");
    }
    // A valid signature of other content, a wrong bit, no signature, and another algorithm of the same key.
    let (_, other) = bench
        .event(&json!({ "jti": "two" }))
        .rsplit_once('.')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("a JWS");
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
    bytes[7] ^= 1;
    let wrong = URL_SAFE_NO_PAD.encode(bytes);
    for signature in [other.as_str(), &wrong, ""] {
        let refused = bench.refusal(&format!("{signed}.{signature}")).await;
        assert_eq!(refused, "the signature does not verify");
    }
    let ps256 = format!("{}.{claims}.{signature}", under("PS256"));
    assert_eq!(bench.refusal(&ps256).await, "the signature does not verify");
    // A key inside the token is not trusted.
    let embedded = json!({ "jwk": keys["keys"][0], "jku": "https://evil.example/keys", "kid": "theirs" });
    let foreign = ScriptedProvider::start();
    foreign.rotate_keys();
    let mut header = json!({ "typ": "secevent+jwt" });
    for (name, value) in embedded.as_object().expect("members") {
        header[name] = value.clone();
    }
    let raw = foreign.sign_with_header(header, bench.claims(&json!({})));
    assert_eq!(
        bench.refusal(&raw).await,
        "no key of the transmitter fits the token"
    );
}

/// RFC 8417 section 2.4 and RFC 8935 section 2.1: their examples are unsigned, or signed with a secret.
#[tokio::test]
async fn the_examples_of_the_rfcs_are_not_signed_by_a_public_key() {
    let bench = bench().await;
    let unsecured = "eyJ0eXAiOiJzZWNldmVudCtqd3QiLCJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL3NjaW0uZXhhbXBsZS5jb20iLCJp\
        YXQiOjE0NTg0OTY0MDQsImp0aSI6IjRkMzU1OWVjNjc1MDRhYWJhNjVkNDBiMDM2M2ZhYWQ4IiwiYXVkIjpbImh0dHBzOi8vc2NpbS5leGFtcG\
        xlLmNvbS9GZWVkcy85OGQ1MjQ2MWZhNWJiYzg3OTU5M2I3NzU0IiwiaHR0cHM6Ly9zY2ltLmV4YW1wbGUuY29tL0ZlZWRzLzVkNzYwNDUxNmIx\
        ZDA4NjQxZDc2NzZlZTciXSwiZXZlbnRzIjp7InVybjppZXRmOnBhcmFtczpzY2ltOmV2ZW50OmNyZWF0ZSI6eyJyZWYiOiJodHRwczovL3NjaW\
        0uZXhhbXBsZS5jb20vVXNlcnMvNDRmNjE0MmRmOTZiZDZhYjYxZTc1MjFkOSIsImF0dHJpYnV0ZXMiOlsiaWQiLCJuYW1lIiwidXNlck5hbWUi\
        LCJwYXNzd29yZCIsImVtYWlscyJdfX19.";
    let by_a_secret = "eyJ0eXAiOiJzZWNldmVudCtqd3QiLCJhbGciOiJIUzI1NiJ9Cg.eyJpc3MiOiJodHRwczovL2lkcC5leGFtcGxlLmNvbS8i\
        LCJqdGkiOiI3NTZFNjk3MTc1NjUyMDY5NjQ2NTZFNzQ2OTY2Njk2NTcyIiwiaWF0IjoxNTA4MTg0ODQ1LCJhdWQiOiI2MzZDNjk2NTZFNzQ1Rj\
        Y5NjQiLCJldmVudHMiOnsiaHR0cHM6Ly9zY2hlbWFzLm9wZW5pZC5uZXQvc2VjZXZlbnQvcmlzYy9ldmVudC10eXBlL2FjY291bnQtZGlzYWJs\
        ZWQiOnsic3ViamVjdCI6eyJzdWJqZWN0X3R5cGUiOiJpc3Mtc3ViIiwiaXNzIjoiaHR0cHM6Ly9pZHAuZXhhbXBsZS5jb20vIiwic3ViIjoiNz\
        M3NTYyNkE2NTYzNzQifSwicmVhc29uIjoiaGlqYWNraW5nIn19fQ.Y4rXxMD406P2edv00cr9Wf3_XwNtLjB9n-jTqN1_lLc";
    assert_eq!(bench.refusal(unsecured).await, "alg is not allowed");
    assert_eq!(bench.refusal(by_a_secret).await, "alg is not allowed");
}

#[tokio::test]
async fn hostile_shapes_are_malformed_and_nothing_worse() {
    let bench = bench().await;
    let header = part(&json!({ "typ": "secevent+jwt", "alg": "RS256" }));
    let of = |payload: &str| format!("{header}.{}.{}", URL_SAFE_NO_PAD.encode(payload), "A".repeat(342));
    let text = bench.claims(&json!({})).to_string();
    let twice = |name: &str, again: &str| text.replacen(name, &format!("{again},{name}"), 1);
    let deep = format!("{}1{}", "[".repeat(20), "]".repeat(20));
    let endless = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    for payload in [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        format!("{text} {text}"),
        format!("\u{feff}{text}"),
        text.replacen('{', "{,", 1),
        // A repeated member: at the top, in the subject, in the events, in an event.
        twice(r#""iss":"#, r#""iss":"https://evil.example""#),
        twice(r#""sub":"alice""#, r#""sub":"mallory""#),
        twice(r#""format":"#, r#""format":"opaque","id":"1""#),
        twice(&format!(r#""{REVOKED}":"#), &format!(r#""{REVOKED}":{{}}"#)),
        twice(r#""event_timestamp":"#, r#""event_timestamp":1"#),
        text.replacen('{', &format!(r#"{{"deep":{deep},"#), 1),
        text.replacen('{', &format!(r#"{{"deep":{endless},"#), 1),
    ] {
        assert_eq!(
            bench.refusal(&of(&payload)).await,
            "the token is malformed",
            "{payload:.120}"
        );
    }
    let large = bench.event(&json!({ "padding": "x".repeat(MAX_BYTES) }));
    let none = [
        "",
        ".",
        "..",
        "...",
        "e30.e30",
        "e30.e30.e30.e30.e30",
        "\u{0}.\u{0}.\u{0}",
    ];
    for raw in none.into_iter().chain([large.as_str()]) {
        assert_eq!(bench.refusal(raw).await, "the token is malformed", "{raw:.60}");
    }
    let nearly = bench.event(&json!({ "padding": "x".repeat(MAX_BYTES / 2) }));
    assert!(bench.verify(&nearly).await.is_ok());
}

const MAX_BYTES: usize = 64 * 1024;

#[tokio::test]
async fn each_claim_wrong_is_refused_without_a_look_at_any_key() {
    let bench = bench().await;
    for (patch, refused) in [
        (
            json!({ "iss": "https://evil.example" }),
            "iss is not a trusted transmitter",
        ),
        (
            json!({ "iss": bench.keys.issuer() }),
            "iss is not a trusted transmitter",
        ),
        (
            json!({ "aud": "https://other.example" }),
            "aud does not name this receiver",
        ),
        (
            json!({ "exp": NOW + 300 }),
            "exp is not a claim of a security event",
        ),
        (json!({ "iat": NOW + 61 }), "iat is absent or in the future"),
        (json!({ "nbf": NOW + 61 }), "nbf has not been reached"),
        (json!({ "jti": "" }), "jti is absent or too long"),
        (json!({ "sub_id": null }), "sub_id is absent or no object"),
        (json!({ "events": {} }), "events does not hold one event"),
    ] {
        let invented = json!({ "kid": "invented" });
        let raw = bench.event_with_header(&invented, &patch);
        assert_eq!(bench.refusal(&raw).await, refused, "{patch}");
    }
    assert_eq!((bench.fetches(), bench.configuration_reads()), (0, 0));
}

#[tokio::test]
async fn the_configuration_is_read_where_the_specification_has_it_or_where_it_is_said_to_be() {
    let bench = bench_with("/tenant/", |_| {}).await;
    assert!(bench.verify(&bench.event(&json!({}))).await.is_ok());
    let asked = bench
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    assert_eq!(asked, ["/.well-known/ssf-configuration/tenant"]);
    let moved = bench_with("/tenant", |settings| {
        let mut url = Url::parse(&settings.issuer).expect("a URL");
        url.set_path("/elsewhere");
        settings.configuration_url = Some(url);
    })
    .await;
    assert!(moved.verify(&moved.event(&json!({}))).await.is_ok());
    let asked = moved
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    assert_eq!(asked, ["/elsewhere"]);
}

/// SSF 1.0 section 7.2.4.
#[tokio::test]
async fn a_configuration_of_somebody_else_or_without_keys_verifies_nothing() {
    for (name, value) in [
        ("issuer", json!("https://evil.example")),
        ("issuer", json!(null)),
        ("jwks_uri", json!(null)),
        ("jwks_uri", json!("http://evil.example/keys")),
    ] {
        let bench = bench().await;
        bench.configure(name, value.clone());
        let refused = bench.verify(&bench.event(&json!({}))).await.expect_err("no keys");
        assert!(
            matches!(refused, SecurityEventError::Keys(_)) && refused.code().is_none(),
            "{value}"
        );
        assert_eq!(bench.fetches(), 0, "{value}");
    }
}
