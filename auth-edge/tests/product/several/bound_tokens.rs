//! Bound tokens (RFC 9449) of two providers: each has its own key and nonces.

use std::collections::BTreeSet;
use std::io::Write as _;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scripted_provider::{Endpoint, Recorded, ScriptedProvider};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::Two;
use crate::support::{Upstream, key_file};

/// The endpoints that receive proofs.
const PROVED: [Endpoint; 2] = [Endpoint::Token, Endpoint::Userinfo];

fn part(proof: &str, at: usize) -> Value {
    let part = proof.split('.').nth(at).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn thumbprint(proof: &str) -> String {
    let jwk = part(proof, 0)["jwk"].to_string();
    URL_SAFE_NO_PAD.encode(aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA256,
        jwk.as_bytes(),
    ))
}

fn proofs(provider: &ScriptedProvider) -> Vec<String> {
    let proof = |request: &Recorded| request.header("dpop").map(str::to_owned);
    let requests = PROVED
        .into_iter()
        .flat_map(|endpoint| provider.requests(endpoint));
    requests.filter_map(|request| proof(&request)).collect()
}

/// The thumbprints of a provider's received keys, and its received nonces.
fn shown(provider: &ScriptedProvider) -> (BTreeSet<String>, BTreeSet<String>) {
    let proofs = proofs(provider);
    let nonce = |proof: &String| part(proof, 1)["nonce"].as_str().map(str::to_owned);
    (
        proofs.iter().map(|proof| thumbprint(proof)).collect(),
        proofs.iter().filter_map(nonce).collect(),
    )
}

fn with_key(key: &NamedTempFile) -> String {
    format!("dpop = \"on\"\ndpop_key_file = \"{}\"", key.path().display())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_provider_is_shown_its_own_key_and_told_its_own_nonces() {
    let (key_of_a, key_of_b) = (key_file(), key_file());
    let upstream = Upstream::start().await;
    let mut table = NamedTempFile::new().unwrap();
    write!(
        table,
        "[[route]]\npath = \"/token/*\"\nguard = \"api\"\nupstream = \"{}\"\naccess_token = true\n",
        upstream.url()
    )
    .unwrap();
    let settings = [
        ("EDGE_ROUTES", table.path().to_str().unwrap()),
        ("EDGE_USERINFO_AT_LOGIN", "always"),
    ];
    let two = Two::with(&with_key(&key_of_a), &with_key(&key_of_b), &settings).await;
    for (provider, nonce) in [(two.a(), "nonce-of-a"), (&two.b, "nonce-of-b")] {
        provider.script(|script| {
            script.dpop = true;
            script.dpop_nonce = Some(nonce.to_owned());
        });
    }
    let (mut of_a, mut of_b) = (two.signed_in("a").await, two.signed_in("b").await);
    // The session service refreshes and the edge reads userinfo, in turns.
    two.stack.advance(3_600);
    let now = two.stack.now_secs();
    two.b.script(|script| script.now = Some(now));
    for _ in 0..2 {
        for browser in [&mut of_a, &mut of_b] {
            assert_eq!(browser.get("/api/auth/me?refetch=true").await.status, 200);
        }
    }
    let announced = |provider: &ScriptedProvider| {
        let authorize = provider.last_request(Endpoint::Authorize);
        authorize.param("dpop_jkt").unwrap().to_owned()
    };
    let (jkt_of_a, jkt_of_b) = (announced(two.a()), announced(&two.b));
    assert_ne!(jkt_of_a, jkt_of_b);
    for (provider, jkt, nonce) in [
        (two.a(), &jkt_of_a, "nonce-of-a"),
        (&two.b, &jkt_of_b, "nonce-of-b"),
    ] {
        assert_eq!(provider.grants("refresh_token"), 1);
        let expected = (BTreeSet::from([jkt.clone()]), BTreeSet::from([nonce.to_owned()]));
        assert_eq!(shown(provider), expected);
    }

    // An upstream of both gets each token with its bound key, and without a provider's nonce.
    upstream.answer_by(|seen| {
        let proof = seen.all("dpop").pop().unwrap_or_default();
        let refusal = [
            ("www-authenticate", "DPoP error=\"use_dpop_nonce\""),
            ("dpop-nonce", "nonce-of-upstream"),
        ];
        let wanted = part(&proof, 1)["nonce"] == "nonce-of-upstream";
        (!wanted).then(|| (StatusCode::UNAUTHORIZED, refusal).into_response())
    });
    for (browser, jkt) in [(&mut of_a, &jkt_of_a), (&mut of_b, &jkt_of_b)] {
        let before = upstream.requests().len();
        assert_eq!(browser.get("/token/x").await.status, 200);
        for request in &upstream.requests()[before..] {
            let proof = request.all("dpop").pop().unwrap();
            assert_eq!(&thumbprint(&proof), jkt);
            let nonce = &part(&proof, 1)["nonce"];
            assert!(nonce.is_null() || nonce == "nonce-of-upstream", "{nonce}");
        }
    }
    // A provider does not receive the upstream's nonce.
    for (browser, provider) in [(&mut of_a, two.a()), (&mut of_b, &two.b)] {
        assert_eq!(browser.get("/api/auth/me?refetch=true").await.status, 200);
        assert!(!shown(provider).1.contains("nonce-of-upstream"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_bound_tokens_is_shown_no_proof_beside_one_with_them() {
    let key = key_file();
    let two = Two::with(&with_key(&key), "", &[("EDGE_USERINFO_AT_LOGIN", "always")]).await;
    two.a().script(|script| script.dpop = true);
    two.signed_in("a").await;
    two.signed_in("b").await;
    assert_eq!(shown(two.a()).0.len(), 1);
    assert_eq!(proofs(&two.b), Vec::<String>::new());
    assert_eq!(two.b.last_request(Endpoint::Authorize).param("dpop_jkt"), None);
}
