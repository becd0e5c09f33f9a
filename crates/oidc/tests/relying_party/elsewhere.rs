//! A provider that redirects calls: no other server receives a code, a token or a secret.

use oidc::TokenHint;
use scripted_provider::{Answer, Endpoint, ScriptedProvider};

use crate::support::{NOW, bench, param, request};

const ALL: [Endpoint; 6] = [
    Endpoint::Discovery,
    Endpoint::Jwks,
    Endpoint::Par,
    Endpoint::Token,
    Endpoint::Userinfo,
    Endpoint::Revocation,
];

#[tokio::test]
async fn nothing_follows_where_a_provider_redirects_to() {
    // The last two demand the same request with its body (RFC 9110, sections 15.4.8 and 15.4.9).
    for status in [302, 307, 308] {
        let (bench, elsewhere) = (bench(), ScriptedProvider::start());
        let redirect = |endpoint| Answer::Http {
            status,
            headers: vec![("location".to_owned(), elsewhere.url(endpoint))],
            body: Vec::new(),
        };
        bench.provider.script(|script| {
            let answer = redirect(Endpoint::Discovery);
            script.answers.insert(Endpoint::Discovery, answer);
        });
        assert!(bench.party.metadata().await.is_err());

        let bench = self::bench();
        bench.provider.script(|script| script.offer_par = true);
        let (tokens, code) = (bench.exchange().await.expect("tokens"), bench.code().await);
        let refresh_token = tokens.refresh_token.clone().expect("a refresh token");
        bench.provider.script(|script| {
            for endpoint in ALL {
                script.answers.insert(endpoint, redirect(endpoint));
            }
        });
        let party = &bench.party;
        assert!(bench.judge(&tokens).await.is_err(), "keys");
        let url = party
            .authorization_url(&request())
            .await
            .expect("a sign-in without a push");
        assert_eq!(param(&url, "request_uri"), None);
        assert!(bench.redeem(&code).await.is_err());
        assert!(party.refresh(&refresh_token, NOW).await.is_err());
        assert!(
            party
                .userinfo("Bearer", &tokens.access_token, "alice", NOW)
                .await
                .is_err()
        );
        assert!(
            party
                .revoke(&refresh_token, TokenHint::RefreshToken, NOW)
                .await
                .is_err()
        );
        for endpoint in ALL {
            assert_eq!(elsewhere.calls(endpoint), 0, "{status} {endpoint:?}");
        }
    }
}
