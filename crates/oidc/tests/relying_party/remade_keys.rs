//! A provider that replaces a key under the same name: the first such token makes the client fetch the keys
//! again. Forged signatures cause no more fetches than invented key names.

use std::time::{Duration, Instant};

use oidc::{AcceptedAlgorithms, IdTokenError, SigningAlgorithm, UserinfoError};
use scripted_provider::{Answer, Endpoint, IdTokenShape};
use serde_json::json;

use crate::support::{Bench, NOW, bench, bench_with, later};

const API: &str = "https://orders.example";
/// Longer than any interval between two forced fetches, shorter than keys are kept.
const BETWEEN_FETCHES: Duration = Duration::from_secs(11);

impl Bench {
    fn fetched(&self) -> usize {
        self.provider.calls(Endpoint::Jwks)
    }

    fn signed_access_token(&self) -> String {
        self.provider.access_token(json!({ "aud": API }))
    }

    fn signed_logout_token(&self) -> String {
        self.provider.logout_token(json!({ "sub": "alice" }))
    }

    fn forge(&self) {
        self.provider
            .script(|script| script.id_token = IdTokenShape::BadSignature);
    }
}

/// The token with another token's signature: the right key, over other content.
fn forged(raw: &str, other: &str) -> String {
    let (signed, _) = raw.rsplit_once('.').expect("a JWS");
    let (_, signature) = other.rsplit_once('.').expect("a JWS");
    format!("{signed}.{signature}")
}

fn at_most_one_each(interval_secs: u64, began: Instant) -> usize {
    1 + usize::try_from(began.elapsed().as_secs() / interval_secs).expect("few")
}

#[tokio::test]
async fn a_key_made_anew_under_the_old_name_is_followed_by_the_next_sign_in() {
    for algorithm in [
        SigningAlgorithm::Rs256,
        SigningAlgorithm::Es256,
        SigningAlgorithm::EdDsa,
    ] {
        let bench = bench_with(|settings| settings.signing_algs = AcceptedAlgorithms::Named(vec![algorithm]));
        bench
            .provider
            .script(|script| script.algorithm = algorithm.name());
        bench.login().await.expect("the first key");
        bench.provider.remake_keys();
        let fetched = bench.fetched();
        for _ in 0..2 {
            bench.login().await.expect("the new key under the old name");
        }
        assert_eq!(bench.fetched(), fetched + 1, "{algorithm}");
    }
}

#[tokio::test]
async fn a_key_made_anew_under_the_old_name_is_followed_by_tokens_of_every_kind() {
    let bench = bench();
    bench.provider.script(|script| script.userinfo_jwt = true);
    for kind in ["refresh", "userinfo", "logout token", "access token"] {
        let tokens = bench.exchange().await.expect("tokens");
        bench.judge(&tokens).await.expect("the key of now");
        later(BETWEEN_FETCHES).await;
        bench.provider.remake_keys();
        let fetched = bench.fetched();
        let party = &bench.party;
        match kind {
            "refresh" => {
                let refresh_token = tokens.refresh_token.as_deref().expect("a refresh token");
                let tokens = party.refresh(refresh_token, NOW).await.expect("tokens");
                let judged = bench.judge_refreshed(&tokens, |_| {}).await;
                judged.expect("a refreshed ID token");
            }
            "userinfo" => {
                let claims = party.userinfo("Bearer", &tokens.access_token, "alice", NOW).await;
                claims.expect("signed userinfo");
            }
            "logout token" => {
                let raw = bench.signed_logout_token();
                let judged = party.validate_logout_token(&raw, NOW).await;
                judged.expect("a logout token");
            }
            _ => {
                let raw = bench.signed_access_token();
                let judged = party
                    .validate_access_token(&raw, |audience| audience == API, &[], NOW)
                    .await;
                judged.expect("an access token");
            }
        }
        assert_eq!(bench.fetched(), fetched + 1, "{kind}");
    }
}

#[tokio::test]
async fn forged_signatures_anybody_sends_cost_one_fetch_an_interval_and_nobody_a_sign_in() {
    let bench = bench();
    bench.login().await.expect("the keys are known");
    let logout = forged(&bench.signed_logout_token(), &bench.signed_access_token());
    let access = forged(&bench.signed_access_token(), &bench.signed_logout_token());
    let (before, began) = (bench.fetched(), Instant::now());
    for _ in 0..500 {
        let refused = bench.party.validate_logout_token(&logout, NOW).await;
        assert!(matches!(refused, Err(IdTokenError::Signature)), "{refused:?}");
        let refused = bench
            .party
            .validate_access_token(&access, |audience| audience == API, &[], NOW)
            .await;
        assert_eq!(refused.expect_err("forged").reason(), "signature");
    }
    let (fetched, most) = (bench.fetched() - before, at_most_one_each(10, began));
    assert!((1..=most).contains(&fetched), "{fetched} of {most}");
    bench.provider.remake_keys();
    let login = bench.login().await;
    login.expect("a key made anew right after is followed all the same");
}

#[tokio::test]
async fn many_sign_ins_with_a_bad_signature_share_one_fetch_a_second() {
    let bench = bench();
    bench.login().await.expect("the keys are known");
    bench.forge();
    let tokens = bench.exchange().await.expect("tokens");
    let (before, began) = (bench.fetched(), Instant::now());
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (party, tokens) = (bench.party.clone(), tokens.clone());
        all.spawn(async move {
            let expected = oidc::ExpectedIdToken {
                nonce: "nonce",
                ..oidc::ExpectedIdToken::default()
            };
            party
                .validate_id_token(&tokens.id_token, &expected, NOW)
                .await
                .is_err()
        });
    }
    assert!(all.join_all().await.into_iter().all(|refused| refused));
    let (fetched, most) = (bench.fetched() - before, at_most_one_each(1, began));
    assert!((1..=most).contains(&fetched), "{fetched} of {most}");
}

#[tokio::test]
async fn a_bad_signature_is_no_verdict_while_the_keys_cannot_be_had_anew() {
    let bench = bench();
    bench.provider.script(|script| script.userinfo_jwt = true);
    bench.login().await.expect("the keys are known");
    later(BETWEEN_FETCHES).await;
    bench.provider.remake_keys();
    bench
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Jwks, Answer::status(503)));
    for _ in 0..2 {
        let undecided = bench.login().await.expect_err("no new keys");
        assert!(undecided.is_undecided(), "{undecided:?}");
    }
    let tokens = bench.exchange().await.expect("tokens");
    let claims = bench.party.userinfo("Bearer", &tokens.access_token, "alice", NOW);
    let undecided = claims.await.expect_err("no new keys");
    assert!(
        matches!(undecided, UserinfoError::Token(IdTokenError::UnknownKey)),
        "{undecided:?}"
    );
    let raw = bench.signed_logout_token();
    let undecided = bench.party.validate_logout_token(&raw, NOW).await;
    assert!(
        matches!(undecided, Err(IdTokenError::UnknownKey)),
        "{undecided:?}"
    );
    bench.provider.script(|script| script.answers.clear());
    later(BETWEEN_FETCHES).await;
    bench.judge(&tokens).await.expect("the very same token");
    bench.forge();
    let refused = bench.login().await;
    assert!(matches!(refused, Err(IdTokenError::Signature)), "{refused:?}");
}
