//! A key set that lags behind the key in use: late, unavailable, moved, or without names. A token that cannot
//! be verified now may be valid a moment later.

use std::time::Instant;

use oidc::{AcceptedAlgorithms, ExpectedIdToken, IdToken, IdTokenError, SigningAlgorithm};
use scripted_provider::{Answer, Endpoint, IdTokenShape, Script, ScriptedProvider};
use serde_json::{Value, json};

use crate::support::{Bench, DEADLINE, NOW, bench, bench_with};

/// A user signed in. Then the provider signs with a new key, but still publishes the old one.
async fn rotated_and_not_published(bench: &Bench) {
    bench.login().await.expect("the first key");
    bench.provider.rotate_keys_unpublished();
}

impl Bench {
    fn fetches(&self) -> usize {
        self.provider.calls(Endpoint::Jwks)
    }

    /// Validates a sign-in; the provider is repaired once its first key response is being sent.
    async fn judge_while(&self, mend: impl FnOnce(&mut Script)) -> Result<IdToken, IdTokenError> {
        let tokens = self.exchange().await.expect("tokens");
        let gate = self.provider.hold_answers(Endpoint::Jwks);
        let mended = async {
            self.provider.wait_for_held(Endpoint::Jwks, 1).await;
            self.provider.script(mend);
            gate.release();
        };
        tokio::join!(self.judge(&tokens), mended).0
    }

    async fn logout(&self, header: Value) -> Result<(), oidc::IdTokenError> {
        let raw = self
            .provider
            .logout_token_with_header(header, json!({ "sub": "alice" }));
        self.party.validate_logout_token(&raw, NOW).await.map(drop)
    }
}

#[tokio::test]
async fn a_key_that_is_published_while_a_sign_in_looks_for_it_is_found_by_that_sign_in() {
    for algorithm in [
        SigningAlgorithm::Rs256,
        SigningAlgorithm::Es256,
        SigningAlgorithm::EdDsa,
    ] {
        let bench = bench_with(|settings| {
            settings.signing_algs = AcceptedAlgorithms::Named(vec![algorithm]);
            settings.http_timeout = DEADLINE;
        });
        bench
            .provider
            .script(|script| script.algorithm = algorithm.name());
        rotated_and_not_published(&bench).await;
        let judged = bench.judge_while(|script| script.jwks = None).await;
        judged.expect("the key was there a second late");
    }
}

#[tokio::test]
async fn a_key_set_that_fails_right_after_a_rotation_is_asked_once_more() {
    let bench = bench_with(|settings| settings.http_timeout = DEADLINE);
    bench.login().await.expect("the first key");
    bench.provider.rotate_keys();
    bench
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Jwks, Answer::status(503)));
    let judged = bench.judge_while(|script| script.answers.clear()).await;
    judged.expect("the key set was away for a second");
}

#[tokio::test]
async fn the_first_sign_in_after_the_key_is_published_succeeds() {
    let bench = bench();
    rotated_and_not_published(&bench).await;
    for _ in 0..2 {
        let refused = bench.login().await.expect_err("its key is not published");
        assert!(matches!(refused, IdTokenError::UnknownKey), "{refused:?}");
        assert!(refused.is_undecided());
    }
    bench.provider.script(|script| script.jwks = None);
    bench.login().await.expect("its key is published");
}

#[tokio::test]
async fn many_sign_ins_under_a_key_that_lags_share_one_fetch_a_second() {
    let bench = bench();
    rotated_and_not_published(&bench).await;
    let tokens = bench.exchange().await.expect("tokens");
    let (before, began) = (bench.fetches(), Instant::now());
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (party, tokens) = (bench.party.clone(), tokens.clone());
        all.spawn(async move {
            let expected = ExpectedIdToken {
                nonce: "nonce",
                ..ExpectedIdToken::default()
            };
            party
                .validate_id_token(&tokens.id_token, &expected, NOW)
                .await
                .is_err()
        });
    }
    assert!(all.join_all().await.into_iter().all(|refused| refused));
    let most = 1 + usize::try_from(began.elapsed().as_secs()).expect("few");
    let fetched = bench.fetches() - before;
    assert!((1..=most).contains(&fetched), "{fetched} of {most}");
}

#[tokio::test]
async fn keys_that_moved_to_another_address_are_followed_there() {
    let bench = bench_with(|settings| settings.http_timeout = DEADLINE);
    rotated_and_not_published(&bench).await;
    let elsewhere = ScriptedProvider::start();
    let old = bench.provider.published_keys();
    bench.provider.script(|script| script.jwks = None);
    let new = bench.provider.published_keys();
    elsewhere.script(|script| script.jwks = Some(new));
    let moved = elsewhere.url(Endpoint::Jwks);
    bench.provider.script(|script| {
        script.jwks = Some(old);
        script.metadata.insert("jwks_uri".into(), json!(moved));
    });
    bench.login().await.expect("the key at its new address");
}

// conformance: B-115
#[tokio::test]
async fn invented_logout_tokens_cost_one_fetch_an_interval_and_nobody_a_sign_in() {
    let bench = bench();
    bench.login().await.expect("the keys are known");
    let (before, began) = (bench.fetches(), Instant::now());
    for number in 0..1_000 {
        let refused = bench.logout(json!({ "kid": format!("invented-{number}") })).await;
        assert!(
            matches!(refused, Err(oidc::IdTokenError::UnknownKey)),
            "{refused:?}"
        );
    }
    let most = 1 + usize::try_from(began.elapsed().as_secs() / 10).expect("few");
    let fetched = bench.fetches() - before;
    assert!((1..=most).contains(&fetched), "{fetched} of {most}");
    bench.provider.rotate_keys();
    bench
        .login()
        .await
        .expect("a rotation right after is followed all the same");
    bench
        .logout(json!({}))
        .await
        .expect("and so is a logout by the new key");
}

#[tokio::test]
async fn a_logout_token_that_would_not_count_costs_no_fetch() {
    let bench = bench();
    bench.login().await.expect("the keys are known");
    let before = bench.fetches();
    let header = json!({ "kid": "invented" });
    for claims in [
        json!({ "sub": "a", "aud": "other" }),
        json!({}),
        json!({ "sub": "a", "iat": NOW - 301 }),
    ] {
        let raw = bench.provider.logout_token_with_header(header.clone(), claims);
        let refused = bench.party.validate_logout_token(&raw, NOW).await;
        assert!(
            !matches!(refused, Ok(_) | Err(oidc::IdTokenError::UnknownKey)),
            "{refused:?}"
        );
    }
    assert_eq!(bench.fetches(), before);
}

/// Single keys without names: an unverifiable token may have a key that is not published yet.
#[tokio::test]
async fn without_names_a_key_that_lags_is_no_bad_signature() {
    let bench = bench();
    bench
        .provider
        .script(|script| script.id_token = IdTokenShape::NoKid);
    rotated_and_not_published(&bench).await;
    assert!(matches!(bench.login().await, Err(IdTokenError::UnknownKey)));
    bench.provider.script(|script| script.jwks = None);
    bench.login().await.expect("its key is published");
    let mut nameless = bench.provider.published_keys();
    for key in nameless["keys"].as_array_mut().expect("a list") {
        key.as_object_mut().expect("an object").remove("kid");
    }
    bench.provider.script(|script| {
        script.id_token = IdTokenShape::Right;
        script.jwks = Some(nameless);
    });
    bench.login().await.expect("the key itself is known by its name");
    bench.provider.rotate_keys();
    assert!(matches!(bench.login().await, Err(IdTokenError::UnknownKey)));
}
