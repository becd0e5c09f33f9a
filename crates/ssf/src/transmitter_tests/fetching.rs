//! When the configuration and keys are fetched, and the behaviour while they are unavailable.

use super::*;

#[tokio::test]
async fn many_events_make_one_fetch_of_the_configuration_and_of_the_keys() {
    let bench = bench().await;
    let raw = bench.event(&json!({}));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (transmitter, raw) = (bench.transmitter.clone(), raw.clone());
        all.spawn(async move { transmitter.verify(&raw, &[OURS.to_owned()], NOW).await.is_ok() });
    }
    assert!(all.join_all().await.into_iter().all(|is_ok| is_ok));
    assert_eq!((bench.fetches(), bench.configuration_reads()), (1, 1));
}

#[tokio::test]
async fn a_new_key_is_followed_by_the_event_that_meets_it() {
    let bench = bench().await;
    assert!(bench.verify(&bench.event(&json!({}))).await.is_ok());
    bench.keys.rotate_keys();
    assert!(bench.verify(&bench.event(&json!({}))).await.is_ok());
    assert_eq!(bench.fetches(), 2);
    later(BETWEEN_FETCHES).await;
    bench.keys.remake_keys();
    let token = bench.verify(&bench.event(&json!({}))).await;
    assert!(token.is_ok(), "a new key under the name of the old one");
    assert_eq!(bench.fetches(), 3);
}

#[tokio::test]
async fn keys_that_moved_are_followed_to_their_new_address() {
    let bench = bench().await;
    assert!(bench.verify(&bench.event(&json!({}))).await.is_ok());
    bench.keys.rotate_keys_unpublished();
    let elsewhere = ScriptedProvider::start();
    let old = bench.keys.published_keys();
    bench.keys.script(|script| script.jwks = None);
    let new = bench.keys.published_keys();
    bench.keys.script(|script| script.jwks = Some(old));
    elsewhere.script(|script| script.jwks = Some(new));
    bench.configure("jwks_uri", json!(elsewhere.url(Endpoint::Jwks)));
    assert!(bench.verify(&bench.event(&json!({}))).await.is_ok());
}

#[tokio::test]
async fn invented_keys_cost_one_fetch_an_interval_and_no_event_its_verdict() {
    const PASSED: Duration = Duration::from_secs(3);
    let bench = bench().await;
    assert!(bench.verify(&bench.event(&json!({}))).await.is_ok());
    let (before, began) = (bench.fetches(), Instant::now());
    for number in 0..300 {
        let header = json!({ "kid": format!("invented-{number}") });
        let raw = bench.event_with_header(&header, &json!({}));
        let refused = bench.verify(&raw).await.expect_err("no such key");
        assert!(matches!(refused, SecurityEventError::UnknownKey) && refused.code().is_none());
        if number == 150 {
            later(PASSED).await;
        }
    }
    let most = 1 + usize::try_from((began.elapsed() + PASSED).as_secs() / 10).expect("few");
    let fetched = bench.fetches() - before;
    assert!((1..=most).contains(&fetched), "{fetched} of {most}");
    assert!(bench.verify(&bench.event(&json!({}))).await.is_ok());
}

#[tokio::test]
async fn while_the_keys_cannot_be_had_there_is_no_verdict_and_known_ones_outlive_an_outage() {
    let bench = bench().await;
    bench
        .keys
        .script(|script| _ = script.answers.insert(Endpoint::Jwks, Answer::status(503)));
    let raw = bench.event(&json!({}));
    let undecided = bench.verify(&raw).await.expect_err("no keys");
    assert!(undecided.code().is_none(), "{undecided:?}");
    bench.keys.script(|script| script.answers.clear());
    later(BETWEEN_FETCHES).await;
    assert!(bench.verify(&raw).await.is_ok(), "the very same token");
    bench.keys.stop();
    later(Duration::from_secs(3_600)).await;
    assert!(bench.verify(&raw).await.is_ok(), "by the keys that are known");
}
