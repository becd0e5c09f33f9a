//! A provider switches to another listed algorithm: cached metadata does not reject its tokens.

use oidc::{IdTokenError, RefreshedTokens};
use scripted_provider::{Endpoint, Script};
use serde_json::json;

use crate::support::{Bench, NOW, bench};

/// A script that signs with one algorithm, and lists the same or another one.
fn signs(script: &mut Script, algorithm: &'static str, listed: &str) {
    script.algorithm = algorithm;
    let name = "id_token_signing_alg_values_supported";
    script.metadata.insert(name.to_owned(), json!([listed]));
}

/// A user signed in while the provider signed with RS256; then it signs with ES256.
async fn signed_in_before(listed_now: &str) -> (Bench, String) {
    let bench = bench();
    bench.provider.script(|script| {
        script.refresh_id_token = true;
        signs(script, "RS256", "RS256");
    });
    let tokens = bench.exchange().await.expect("tokens");
    bench.judge(&tokens).await.expect("the algorithm is listed");
    bench.provider.script(|script| signs(script, "ES256", listed_now));
    (bench, tokens.refresh_token.expect("a refresh token"))
}

impl Bench {
    async fn refreshed(&self, refresh_token: &str) -> RefreshedTokens {
        self.party.refresh(refresh_token, NOW).await.expect("refreshed")
    }

    async fn logout_told(&self) -> Result<(), IdTokenError> {
        let raw = self.provider.logout_token(json!({ "sub": "alice" }));
        self.party.validate_logout_token(&raw, NOW).await.map(drop)
    }
}

#[tokio::test]
async fn a_refresh_and_a_logout_in_a_newly_listed_algorithm_are_taken_at_once() {
    let (bench, refresh_token) = signed_in_before("ES256").await;
    let tokens = bench.refreshed(&refresh_token).await;
    bench
        .judge_refreshed(&tokens, |_| ())
        .await
        .expect("it is listed now");
    let (bench, _) = signed_in_before("ES256").await;
    bench.logout_told().await.expect("it is listed now");
    let (bench, _) = signed_in_before("ES256").await;
    bench.login().await.expect("it is listed now");
}

#[tokio::test]
async fn an_algorithm_that_is_not_listed_yet_is_no_verdict_but_for_a_sign_in() {
    let (bench, refresh_token) = signed_in_before("RS256").await;
    let tokens = bench.refreshed(&refresh_token).await;
    let judged = bench.judge_refreshed(&tokens, |_| ()).await;
    assert!(
        judged.as_ref().is_err_and(IdTokenError::is_undecided),
        "{judged:?}"
    );
    let told = bench.logout_told().await;
    assert!(matches!(told, Err(IdTokenError::UnknownKey)), "{told:?}");
    let login = bench.login().await;
    assert!(matches!(login, Err(IdTokenError::Algorithm)), "{login:?}");
}

#[tokio::test]
async fn logout_tokens_in_odd_algorithms_cost_one_fetch_an_interval() {
    let (bench, _) = signed_in_before("RS256").await;
    let before = bench.provider.calls(Endpoint::Discovery);
    for algorithm in ["ES256", "EdDSA", "PS512", "ES384"].into_iter().cycle().take(40) {
        bench.provider.script(|script| script.algorithm = algorithm);
        assert!(bench.logout_told().await.is_err(), "{algorithm}");
    }
    assert_eq!(bench.provider.calls(Endpoint::Discovery), before + 1);
}
