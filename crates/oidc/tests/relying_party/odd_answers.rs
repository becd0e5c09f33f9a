//! Nonstandard answers of providers with the standard meaning.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use oidc::{GrantError, IdTokenError, ProviderError, UserinfoError};
use scripted_provider::{Answer, CLIENT_ID, Endpoint};
use serde_json::{Value, json};

use super::support::*;

/// The additional audience of a token, as Zitadel's project or Keycloak's audience mapper adds it.
const PROJECT: &str = "project";

#[tokio::test]
async fn a_further_audience_counts_if_azp_is_this_client_or_the_operator_trusts_it() {
    let both = json!([PROJECT, CLIENT_ID]);
    for (trusted, azp, accepted) in [
        (vec![], json!(null), false),
        (vec![], json!(CLIENT_ID), true),
        (vec![], json!("other"), false),
        (vec![PROJECT], json!(null), true),
        (vec![PROJECT], json!("other"), false),
        (vec!["another"], json!(null), false),
    ] {
        let bench = bench_with(|settings| {
            settings.trusted_audiences = trusted.iter().map(|&name| name.to_owned()).collect();
        });
        let change = |claims: &mut serde_json::Map<String, Value>| {
            claims.insert("aud".to_owned(), both.clone());
            claims.insert("azp".to_owned(), azp.clone());
        };
        bench.provider.script(|script| {
            change(&mut script.claims);
            change(&mut script.userinfo);
            script.userinfo_jwt = true;
        });
        let tokens = bench.exchange().await.expect("tokens");
        let id_token = bench.judge(&tokens).await;
        assert_eq!(id_token.is_ok(), accepted, "{trusted:?} {azp}: {id_token:?}");
        let userinfo = bench
            .party
            .userinfo("Bearer", &tokens.access_token, "alice", NOW)
            .await;
        assert_eq!(userinfo.is_ok(), accepted, "userinfo {trusted:?} {azp}");
        let logout = bench
            .provider
            .logout_token(json!({ "sub": "alice", "aud": both, "azp": azp }));
        let logout = bench.party.validate_logout_token(&logout, NOW).await;
        let refused = matches!(
            logout,
            Err(IdTokenError::Audience | IdTokenError::AuthorizedParty)
        );
        assert_eq!(
            (logout.is_ok(), refused),
            (accepted, !accepted),
            "logout {trusted:?} {azp}"
        );
    }
}

/// The ways a provider may send JSON.
fn ways(json: &Value) -> Vec<(&'static str, Answer)> {
    let text = json.to_string();
    let with = |headers: &[(&str, &str)], body: Vec<u8>| Answer::Http {
        status: 200,
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body,
    };
    vec![
        (
            "page",
            Answer::text(200, "text/html; charset=utf-8", text.clone()),
        ),
        ("plain text", Answer::text(200, "text/plain", text.clone())),
        (
            "any bytes",
            Answer::text(200, "application/octet-stream", text.clone()),
        ),
        ("no type", with(&[], text.clone().into_bytes())),
        (
            "byte order mark",
            Answer::text(200, "application/json", format!("\u{feff}{text}")),
        ),
        (
            "gzip",
            with(&[("content-encoding", "gzip")], gzip(text.as_bytes())),
        ),
    ]
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text).expect("written to memory");
    packed.finish().expect("written to memory")
}

#[tokio::test]
async fn json_is_judged_by_its_bytes_at_every_endpoint() {
    for at in 0..6 {
        let bench = bench();
        let url = |endpoint| bench.provider.url(endpoint);
        let document = json!({
            "issuer": bench.provider.issuer(),
            "authorization_endpoint": url(Endpoint::Authorize),
            "token_endpoint": url(Endpoint::Token),
            "jwks_uri": url(Endpoint::Jwks),
            "userinfo_endpoint": url(Endpoint::Userinfo),
            "id_token_signing_alg_values_supported": ["RS256"],
        });
        let keys = bench.provider.published_keys();
        let userinfo = json!({ "sub": "alice", "name": "Alice" });
        let mut way = "";
        bench.provider.script(|script| {
            for (endpoint, json) in [
                (Endpoint::Discovery, &document),
                (Endpoint::Jwks, &keys),
                (Endpoint::Userinfo, &userinfo),
            ] {
                let (name, answer) = ways(json).swap_remove(at);
                way = name;
                script.answers.insert(endpoint, answer);
            }
        });
        let tokens = bench.exchange().await.expect(way);
        bench.judge(&tokens).await.expect(way);
        let claims = bench
            .party
            .userinfo("Bearer", &tokens.access_token, "alice", NOW)
            .await;
        assert_eq!(claims.expect(way)["name"], "Alice", "{way}");

        let tokens = json!({ "access_token": "fresh", "expires_in": 60 });
        let pushed = json!({ "request_uri": "urn:ietf:params:oauth:request_uri:1", "expires_in": 60 });
        let bench = super::support::bench();
        bench.provider.script(|script| {
            script.offer_par = true;
            let (_, answer) = ways(&tokens).swap_remove(at);
            script.answers.insert(Endpoint::Token, answer);
            if let (_, Answer::Http { headers, body, .. }) = ways(&pushed).swap_remove(at) {
                let created = Answer::Http {
                    status: 201,
                    headers,
                    body,
                };
                script.answers.insert(Endpoint::Par, created);
            }
        });
        let url = bench.party.authorization_url(&request()).await.expect(way);
        assert!(param(&url, "request_uri").is_some(), "{way}");
        let refreshed = bench.party.refresh("a refresh token", NOW).await.expect(way);
        assert_eq!(
            (refreshed.access_token.as_str(), refreshed.lifetime_secs),
            ("fresh", 60),
            "{way}"
        );
    }
}

#[tokio::test]
async fn the_reason_of_a_refusal_is_read_under_any_content_type() {
    for content_type in ["text/html", "text/html; charset=utf-8", "text/plain", "nonsense"] {
        let bench = bench();
        bench.provider.script(|script| {
            script.offer_par = true;
            for endpoint in [Endpoint::Token, Endpoint::Par] {
                let refusal = Answer::text(400, content_type, r#"{"error":"invalid_scope"}"#);
                script.answers.insert(endpoint, refusal);
            }
        });
        let pushed = bench
            .party
            .authorization_url(&request())
            .await
            .expect_err("refused");
        let of_push =
            matches!(&pushed, ProviderError::Refused(_, refusal) if refusal.code() == "invalid_scope");
        assert!(of_push, "{content_type}: {pushed:?}");
        let refreshed = bench.party.refresh("a refresh token", NOW).await;
        let of_refresh =
            matches!(&refreshed, Err(GrantError::Refused(refusal)) if refusal.code() == "invalid_scope");
        assert!(of_refresh, "{content_type}: {refreshed:?}");
    }
}

#[tokio::test]
async fn the_limit_counts_unpacked_bytes_and_a_page_is_no_document() {
    let document = |headers: &[(&str, &str)], body| {
        let bench = bench();
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let answer = Answer::Http {
            status: 200,
            headers: headers.collect(),
            body,
        };
        bench
            .provider
            .script(|script| drop(script.answers.insert(Endpoint::Discovery, answer)));
        bench
    };
    let bomb = document(&[("content-encoding", "gzip")], gzip(&vec![b' '; 2 << 20]));
    let refused = bomb.party.metadata().await;
    assert!(format!("{refused:?}").contains("TooLarge"), "{refused:?}");
    let page = document(
        &[("content-type", "application/json")],
        b"<html>sign in</html>".to_vec(),
    );
    let refused = page.party.metadata().await;
    assert!(format!("{refused:?}").contains("Malformed"), "{refused:?}");
}

#[tokio::test]
async fn one_redirect_inside_the_origin_is_followed_for_documents_alone() {
    let bench = bench();
    let keys = bench.provider.published_keys();
    let elsewhere = bench.provider.url(Endpoint::Userinfo);
    bench.provider.script(|script| {
        script
            .answers
            .insert(Endpoint::Jwks, Answer::redirect(&elsewhere));
        script
            .answers
            .insert(Endpoint::Userinfo, Answer::json(200, &keys));
    });
    bench.login().await.expect("the keys are behind a redirect");

    for elsewhere in [
        Some("https://elsewhere.example/jwks"),
        Some("//elsewhere.example/jwks"),
        None,
    ] {
        let bench = super::support::bench();
        let itself = bench.provider.url(Endpoint::Jwks);
        let elsewhere = elsewhere.unwrap_or(&itself);
        bench.provider.script(|script| {
            script.answers.insert(Endpoint::Jwks, Answer::redirect(elsewhere));
        });
        let refused = bench.login().await;
        let status = format!("{refused:?}").contains(", 302)");
        assert!(status, "{elsewhere}: {refused:?}");
    }

    let bench = super::support::bench();
    let elsewhere = bench.provider.url(Endpoint::Userinfo);
    bench.provider.script(|script| {
        script
            .answers
            .insert(Endpoint::Token, Answer::redirect(&elsewhere));
    });
    let refused = bench.exchange().await;
    let status = matches!(refused, Err(GrantError::Transient(ProviderError::Status(_, 302))));
    assert!(status, "no form follows a redirect: {refused:?}");
    assert_eq!(bench.provider.calls(Endpoint::Userinfo), 0);
}

#[tokio::test]
async fn a_token_response_without_a_type_is_of_bearer_tokens() {
    for (kind, accepted) in [
        (json!(null), true),
        (json!("bearer"), true),
        (json!("DPoP"), false),
        (json!(7), false),
    ] {
        let bench = bench();
        bench.provider.script(|script| {
            for response in [&mut script.token, &mut script.refresh] {
                response.insert("token_type".to_owned(), kind.clone());
            }
        });
        let tokens = bench.exchange().await;
        assert_eq!(tokens.is_ok(), accepted, "{kind}: {tokens:?}");
    }
    let bench = bench();
    let tokens = bench.exchange().await.expect("tokens");
    bench
        .provider
        .script(|script| drop(script.refresh.insert("token_type".to_owned(), json!(null))));
    let refresh_token = tokens.refresh_token.expect("a refresh token");
    let refreshed = bench.party.refresh(&refresh_token, NOW).await.expect("refreshed");
    assert_eq!(refreshed.token_type, "Bearer");
    let bound = bench_with(|settings| settings.credentials.dpop_key = Some(dpop_key()));
    bound
        .provider
        .script(|script| drop(script.token.insert("token_type".to_owned(), json!(null))));
    assert!(
        matches!(bound.exchange().await, Err(GrantError::Unusable(_))),
        "a bound token was asked for"
    );
}

#[tokio::test]
async fn signed_userinfo_counts_only_while_it_is_valid() {
    for (name, value, accepted) in [
        ("exp", json!(NOW - 61), false),
        ("exp", json!(NOW - 60), true),
        ("exp", json!("soon"), false),
        ("nbf", json!(NOW + 61), false),
        ("nbf", json!(NOW + 60), true),
    ] {
        let bench = bench();
        bench.provider.script(|script| {
            script.userinfo_jwt = true;
            script.userinfo.insert(name.to_owned(), value.clone());
        });
        let token = bench.exchange().await.expect("tokens").access_token;
        let claims = bench.party.userinfo("Bearer", &token, "alice", NOW).await;
        let refused = matches!(
            claims,
            Err(UserinfoError::Token(
                IdTokenError::Expired | IdTokenError::NotYetValid
            ))
        );
        assert_eq!((claims.is_ok(), refused), (accepted, !accepted), "{name} {value}");
    }
}

#[tokio::test]
async fn a_refusal_that_only_a_sign_in_mends_is_final_in_any_status() {
    for (status, code, is_final) in [
        (400, "invalid_grant", true),
        (400, "interaction_required", true),
        (400, "login_required", true),
        (403, "consent_required", true),
        (400, "account_selection_required", true),
        (200, "invalid_grant", true),
        (200, "bad_verification_code", true),
        (200, "invalid_client", false),
        (400, "invalid_request", false),
        (400, "unauthorized_client", false),
        (401, "invalid_client", false),
    ] {
        let bench = bench();
        let answer = Answer::json(status, &json!({ "error": code }));
        bench
            .provider
            .script(|script| drop(script.answers.insert(Endpoint::Token, answer)));
        match bench.party.refresh("a refresh token", NOW).await {
            Err(GrantError::Refused(refusal)) => {
                assert_eq!(refusal.is_final(), is_final, "{status} {code}")
            }
            other => panic!("{status} {code}: {other:?}"),
        }
    }
    let bench = bench();
    let busy = Answer::json(200, &json!({ "error": "temporarily_unavailable" }));
    bench
        .provider
        .script(|script| drop(script.answers.insert(Endpoint::Token, busy)));
    let refused = bench.party.refresh("a refresh token", NOW).await;
    assert!(matches!(refused, Err(GrantError::Transient(_))), "{refused:?}");
}
