//! Code, refresh, userinfo and revocation: unusual responses are accepted, useless ones rejected.

use std::time::Duration;

use oidc::{
    ExpectedRefreshedIdToken, GrantError, IdTokenError, ProviderError, RevocationResult, TokenHint,
    UserinfoError,
};
use scripted_provider::{Answer, CLIENT_ID, Endpoint};
use serde_json::{Value, json};

use crate::support::{BACK, DEADLINE, NOW, bench, bench_with, dpop_key};

// conformance: B-101 B-103
#[tokio::test]
async fn odd_but_legal_token_answers_are_taken() {
    let bench = bench();
    for (member, value, lifetime) in [
        ("expires_in", json!(null), 300),
        ("expires_in", json!("120"), 120),
        ("expires_in", json!(-5), 0),
        ("expires_in", json!(1e300), 365 * 86_400),
        ("token_type", json!("bEARER"), 3600),
        ("unknown", json!({ "x": 1 }), 3600),
    ] {
        bench.provider.reset();
        bench.provider.script(|script| {
            script.token.insert(member.into(), value.clone());
        });
        let tokens = bench
            .exchange()
            .await
            .unwrap_or_else(|error| panic!("{member} {value}: {error}"));
        assert_eq!(tokens.expires_at, NOW + lifetime, "{member} {value}");
    }
    bench.provider.reset();
    bench.provider.script(|script| {
        script.token.insert("scope".into(), json!(null));
        script.token.insert("refresh_token".into(), json!(null));
    });
    let tokens = bench.exchange().await.expect("tokens");
    assert_eq!(
        (tokens.scope.as_str(), tokens.refresh_token),
        ("openid profile email", None)
    );
}

// conformance: B-101 B-103
#[tokio::test]
async fn useless_token_answers_are_refused() {
    let bench = bench();
    let exchange = async |name: &str, value: Value| {
        bench.provider.reset();
        bench.provider.script(|script| {
            script.token.insert(name.to_owned(), value);
        });
        bench.exchange().await
    };
    assert!(matches!(
        exchange("access_token", json!(null)).await,
        Err(GrantError::Unusable(_))
    ));
    assert!(matches!(
        exchange("id_token", json!(null)).await,
        Err(GrantError::Unusable(_))
    ));
    assert!(matches!(
        exchange("token_type", json!("mac")).await,
        Err(GrantError::Unusable(_))
    ));
    bench.provider.reset();
    let code = bench.code().await;
    let wrong = bench
        .party
        .exchange_code(&code, "another-verifier", BACK, NOW)
        .await;
    assert!(matches!(wrong, Err(GrantError::Refused(refusal)) if refusal.is_final()));
}

// conformance: B-031
#[tokio::test]
async fn refreshes_tell_dead_grants_from_passing_trouble() {
    let bench = bench();
    let first = bench
        .exchange()
        .await
        .expect("tokens")
        .refresh_token
        .expect("a refresh token");
    let second = bench.party.refresh(&first, NOW).await.expect("refreshed");
    let rotated = second.refresh_token.expect("rotated");
    assert_ne!(rotated, first);
    let id_token = second.id_token.expect("an ID token");
    let issuer = bench.provider.issuer();
    let judge = async |iss: &str, sub: &str| {
        let expected = ExpectedRefreshedIdToken {
            iss,
            sub,
            nonce: None,
            access_token: &second.access_token,
        };
        bench
            .party
            .validate_refreshed_id_token(&id_token, &expected, NOW)
            .await
    };
    judge(issuer, "alice").await.expect("the same person");
    assert!(matches!(judge(issuer, "bob").await, Err(IdTokenError::Subject)));
    let elsewhere = judge("https://other.example", "alice").await;
    assert!(matches!(elsewhere, Err(IdTokenError::Issuer)));

    for answer in [
        Answer::status(500),
        Answer::status(429),
        Answer::text(400, "text/html", "no"),
        Answer::Hang,
    ] {
        bench.provider.script(|script| {
            script.answers.insert(Endpoint::Token, answer.clone());
        });
        let error = bench.party.refresh(&rotated, NOW).await.expect_err("trouble");
        assert!(matches!(error, GrantError::Transient(_)), "{answer:?}: {error:?}");
    }
    bench.provider.reset();
    for (error, is_final) in [("invalid_grant", true), ("invalid_client", false)] {
        bench
            .provider
            .script(|script| script.refresh_error = Some(error.into()));
        let refused = bench.party.refresh(&rotated, NOW).await;
        assert!(matches!(refused, Err(GrantError::Refused(refusal)) if refusal.is_final() == is_final));
    }
    bench.provider.reset();
    bench.provider.script(|script| {
        script.refresh.insert("access_token".into(), json!(null));
    });
    assert!(matches!(
        bench.party.refresh(&rotated, NOW).await,
        Err(GrantError::Unusable(_))
    ));
}

#[tokio::test]
async fn a_refresh_keeps_to_the_organization() {
    let bench = bench_with(|settings| settings.organization = Some("org_1".into()));
    let refreshed = async |organization: &str| {
        bench.provider.script(|script| {
            script.claims.insert("org_id".into(), json!(organization));
        });
        let tokens = bench.exchange().await.expect("tokens");
        let token = tokens.refresh_token.expect("a refresh token");
        let tokens = bench.party.refresh(&token, NOW).await.expect("refreshed");
        bench.judge_refreshed(&tokens, |_| ()).await
    };
    refreshed("org_1").await.expect("the organization requested");
    assert!(matches!(
        refreshed("org_2").await,
        Err(IdTokenError::Organization)
    ));
}

// conformance: A-004 B-104 B-106
#[tokio::test]
async fn userinfo_is_about_the_same_person_and_says_nothing_protected() {
    let bench = bench();
    for signed in [false, true] {
        bench.provider.reset();
        bench.provider.script(|script| script.userinfo_jwt = signed);
        let token = bench.exchange().await.expect("tokens").access_token;
        bench.provider.script(|script| {
            script.userinfo.insert("acr".into(), json!("gold"));
        });
        let claims = bench
            .party
            .userinfo("Bearer", &token, "alice", NOW)
            .await
            .expect("userinfo");
        assert_eq!(claims.get("email"), Some(&json!("alice@example.com")));
        assert_eq!(claims.get("acr"), None);
        assert!(matches!(
            bench.party.userinfo("Bearer", &token, "bob", NOW).await,
            Err(UserinfoError::Subject)
        ));
        assert!(matches!(
            bench.party.userinfo("Bearer", "forged", "alice", NOW).await,
            Err(UserinfoError::Unauthorized)
        ));
        assert!(bench.provider.last_request(Endpoint::Userinfo).query.is_empty());
    }
    for (name, value) in [("iss", "https://evil.example"), ("aud", "other")] {
        bench.provider.reset();
        bench.provider.script(|script| {
            script.userinfo_jwt = true;
            script.userinfo.insert(name.into(), json!(value));
        });
        let token = bench.exchange().await.expect("tokens").access_token;
        let claims = bench.party.userinfo("Bearer", &token, "alice", NOW).await;
        assert!(
            matches!(claims, Err(UserinfoError::Token(_))),
            "{name}: {claims:?}"
        );
    }
}

#[tokio::test]
async fn signed_userinfo_has_an_algorithm_the_metadata_lists_for_it() {
    for (listed, accepted) in [
        (json!(null), true),
        (json!(["RS256"]), true),
        (json!(["ES256"]), false),
        (json!(["none", "HS256"]), false),
    ] {
        let bench = bench();
        bench.provider.script(|script| {
            let name = "userinfo_signing_alg_values_supported";
            script.metadata.insert(name.into(), listed.clone());
            script.userinfo_jwt = true;
        });
        let token = bench.exchange().await.expect("tokens").access_token;
        let claims = bench.party.userinfo("Bearer", &token, "alice", NOW).await;
        let refused = matches!(claims, Err(UserinfoError::Token(IdTokenError::Algorithm)));
        assert_eq!((claims.is_ok(), refused), (accepted, !accepted), "{listed}");
    }
}

/// An answer that only asks for its nonce.
fn wants(status: u16, header: (&str, &str)) -> Answer {
    Answer::Http {
        status,
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("dpop-nonce".into(), "another".into()),
            (header.0.into(), header.1.into()),
        ],
        body: json!({ "error": "use_dpop_nonce" }).to_string().into_bytes(),
    }
}

#[tokio::test]
async fn a_server_that_wants_one_nonce_after_the_other_is_asked_twice() {
    let bench = bench_with(|settings| settings.credentials.dpop_key = Some(dpop_key()));
    bench.provider.script(|script| {
        let challenge = ("www-authenticate", "DPoP error=\"use_dpop_nonce\"");
        script
            .answers
            .insert(Endpoint::Token, wants(400, ("cache-control", "no-store")));
        script.answers.insert(Endpoint::Userinfo, wants(401, challenge));
    });
    let calls = async {
        bench.party.refresh("a token", NOW).await.expect_err("no tokens");
        bench
            .party
            .userinfo("DPoP", "a token", "alice", NOW)
            .await
            .expect_err("no claims");
    };
    tokio::time::timeout(DEADLINE, calls)
        .await
        .expect("given up in time");
    for endpoint in [Endpoint::Token, Endpoint::Userinfo] {
        assert_eq!(bench.provider.calls(endpoint), 2, "{endpoint:?}");
    }
}

/// The first answer, which only asks for its nonce, takes most of the time; the second gets the rest.
#[tokio::test]
async fn a_repetition_with_the_nonce_takes_no_time_of_its_own() {
    const TIMEOUT: Duration = Duration::from_millis(1_000);
    let bench = bench_with(|settings| {
        settings.credentials.dpop_key = Some(dpop_key());
        settings.http_timeout = TIMEOUT;
        settings.refresh_timeout = TIMEOUT;
    });
    bench.provider.script(|script| {
        let answer = wants(400, ("cache-control", "no-store"));
        script.answers.insert(Endpoint::Token, answer);
        script.delays.insert(Endpoint::Token, TIMEOUT * 3 / 5);
    });
    let error = bench
        .party
        .refresh("a token", NOW)
        .await
        .expect_err("no time left");
    assert!(
        matches!(error, GrantError::Transient(ProviderError::Timeout { .. })),
        "{error:?}"
    );
}

// conformance: B-112
#[tokio::test]
async fn a_revoked_refresh_token_is_gone() {
    let bench = bench();
    let token = bench
        .exchange()
        .await
        .expect("tokens")
        .refresh_token
        .expect("a refresh token");
    let revoked = bench
        .party
        .revoke(&token, TokenHint::RefreshToken, NOW)
        .await
        .expect("revoked");
    assert_eq!(revoked, RevocationResult::Done);
    assert!(!bench.provider.knows_refresh_token(&token));
}

/// OpenID Connect Core 12.2, with `at_hash` as for a sign-in.
#[tokio::test]
async fn a_refresh_keeps_to_the_sign_in_it_came_from() {
    let cases: [(&str, Value, Value, fn(&IdTokenError) -> bool); 5] = [
        ("nonce", json!("nonce"), json!("other"), |e| {
            matches!(e, IdTokenError::Nonce)
        }),
        ("nonce", json!(null), json!(7), |e| {
            matches!(e, IdTokenError::Nonce)
        }),
        ("azp", json!(CLIENT_ID), json!("other"), |e| {
            matches!(e, IdTokenError::AuthorizedParty)
        }),
        ("aud", json!([CLIENT_ID]), json!("other"), |e| {
            matches!(e, IdTokenError::Audience)
        }),
        ("at_hash", json!(null), json!("AAAAAAAAAAAAAAAAAAAAAA"), |e| {
            matches!(e, IdTokenError::AccessTokenHash)
        }),
    ];
    // Without keys too, a token of another sign-in is rejected and not kept for later.
    for keys_are_away in [false, true] {
        for (claim, same, other, refused) in &cases {
            let bench = bench();
            let tokens = bench.exchange().await.expect("tokens");
            let token = tokens.refresh_token.expect("a refresh token");
            if keys_are_away {
                let away = Answer::status(503);
                bench
                    .provider
                    .script(|script| _ = script.answers.insert(Endpoint::Jwks, away));
            }
            let judge = async |token: &str, value: &Value| {
                bench
                    .provider
                    .script(|script| _ = script.claims.insert((*claim).to_owned(), value.clone()));
                let tokens = bench.party.refresh(token, NOW).await.expect("refreshed");
                let judged = bench.judge_refreshed(&tokens, |expected| {
                    expected.nonce = Some("nonce");
                });
                (judged.await, tokens.refresh_token.expect("rotated"))
            };
            let (kept, token) = judge(&token, same).await;
            let fits = |error: &IdTokenError| keys_are_away && error.is_undecided();
            assert!(
                kept.as_ref().err().is_none_or(fits) && kept.is_ok() != keys_are_away,
                "{claim}: {kept:?}"
            );
            let (changed, _) = judge(&token, other).await;
            assert!(
                changed.as_ref().is_err_and(refused),
                "{claim} {other}: {changed:?}"
            );
        }
    }
}
