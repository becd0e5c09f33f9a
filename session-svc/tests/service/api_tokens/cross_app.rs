//! Tokens of an API's own authorization server, for an assertion of the provider (ID-JAG).

use std::collections::BTreeSet;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oidc::DpopKey;
use scripted_provider::{Answer, CLIENT_ID, Endpoint};
use serde_json::json;
use session_proto::v1::ErrorReason;

use super::support::*;
use crate::refresh::support::*;
use crate::transmitter::support::claims_of;

const CALLERS: usize = 100;

#[tokio::test]
async fn the_requests_to_both_servers_are_those_of_the_draft_and_the_token_is_kept() {
    let both = two_domains("resource = \"https://api.chat.example\"", None).await;
    let signed_in = both.world.sign_in().await;
    let request = for_audience(&signed_in.id, "chat", &["write", "read"]);
    let answer = ask(&both.world.one, request.clone()).await.unwrap();
    assert_eq!(
        (
            answer.token_type.as_str(),
            answer.scope.as_str(),
            answer.audience.as_str()
        ),
        ("Bearer", "read write", "chat")
    );
    let sent = both.world.provider.last_request(Endpoint::Token);
    for (name, value) in [
        ("grant_type", EXCHANGE),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("audience", both.chat.issuer()),
        ("resource", "https://api.chat.example"),
        ("scope", "read write"),
        ("subject_token", signed_in.id_token.as_str()),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
    ] {
        assert_eq!(sent.param(name), Some(value), "{name}");
    }
    let sent = both.chat.last_request(Endpoint::Token);
    assert_eq!(sent.param("grant_type"), Some(JWT_BEARER));
    let sent_fields: BTreeSet<&str> = sent.form.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(sent_fields, BTreeSet::from(["assertion", "grant_type"]));
    assert!(sent.header("authorization").unwrap().starts_with("Basic "));
    assert_eq!(token(&both.world.two, request).await, answer.access_token);
    assert_eq!(both.legs(), (1, 1));
    let own = both.world.one.token(&signed_in.id).await.unwrap().access_token;
    assert_eq!(own, signed_in.access_token);
}

#[tokio::test]
async fn a_route_names_another_resource_and_other_audiences_go_to_the_provider() {
    let both = two_domains(
        "resource = \"https://api.chat.example\"\nscope = \"chat.read\"",
        None,
    )
    .await;
    let signed_in = both.world.sign_in().await;
    let mut other = for_audience(&signed_in.id, "chat", &[]);
    other.resource = ORDERS.to_owned();
    let tokens = [
        token(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await,
        token(&both.world.one, other).await,
        token(&both.world.one, for_audience(&signed_in.id, "orders", &[])).await,
    ];
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), 3);
    let sent = of_grant(&both.world.provider, EXCHANGE);
    let named: Vec<_> = sent
        .iter()
        .map(|sent| ["audience", "resource", "scope"].map(|name| sent.param(name)))
        .collect();
    let chat = Some(both.chat.issuer());
    assert_eq!(
        named,
        [
            [chat, Some("https://api.chat.example"), Some("chat.read")],
            [chat, Some(ORDERS), Some("chat.read")],
            [Some("orders"), None, None],
        ]
    );
    assert_eq!(both.legs(), (3, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_at_two_replicas_cost_one_assertion_at_each_expiry() {
    let both = two_domains("", None).await;
    let signed_in = both.world.sign_in().await;
    let mut seen = BTreeSet::new();
    for expiry in 1..=2 {
        let gate = both.chat.hold(Endpoint::Token);
        let callers: Vec<_> = (0..CALLERS)
            .map(|nth| {
                let replica = if nth % 2 == 0 {
                    &both.world.one
                } else {
                    &both.world.two
                };
                asking(replica, for_audience(&signed_in.id, "chat", &[]))
            })
            .collect();
        eventually("all callers to wait", || {
            both.world.one.waiting() + both.world.two.waiting() == CALLERS as u64
        })
        .await;
        gate.release();
        let mut tokens = BTreeSet::new();
        for caller in callers {
            tokens.insert(within(caller).await.unwrap().unwrap().access_token);
        }
        assert_eq!((tokens.len(), both.legs()), (1, (expiry, expiry)));
        seen.append(&mut tokens);
        // Within the last minute of the token, in which the ID token has not expired yet.
        both.advance_ms(3_570_000);
    }
    assert_eq!(seen.len(), 2);
    let assertions = of_grant(&both.chat, JWT_BEARER);
    assert_ne!(assertions[0].param("assertion"), assertions[1].param("assertion"));
}

#[tokio::test]
async fn an_expired_id_token_is_refreshed_before_it_is_exchanged() {
    let both = two_domains("", None).await;
    both.world
        .provider
        .script(|script| _ = script.claims.insert("exp".into(), json!(START_MS / 1_000 + 60)));
    let signed_in = both.world.sign_in().await;
    both.world.provider.script(|script| script.claims.clear());
    both.advance_ms(60_000);
    token(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    assert_eq!(
        (both.world.provider.grants("refresh_token"), both.legs()),
        (1, (1, 1))
    );
    let sent = both.world.provider.last_request(Endpoint::Token);
    assert_ne!(sent.param("subject_token"), Some(signed_in.id_token.as_str()));
}

#[tokio::test]
async fn without_a_new_id_token_a_refresh_is_not_repeated_and_the_user_signs_in_again() {
    let both = two_domains("", None).await;
    both.world.provider.script(|script| {
        script.claims.insert("exp".into(), json!(START_MS / 1_000 + 60));
        script.refresh_id_token = false;
    });
    let signed_in = both.world.sign_in().await;
    both.advance_ms(60_000);
    for _ in 0..3 {
        let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
        assert_eq!(reason(refused), ErrorReason::ErrExpiredAccessToken);
    }
    assert_eq!(
        (both.world.provider.grants("refresh_token"), both.legs()),
        (1, (0, 0))
    );
}

#[tokio::test]
async fn while_the_provider_is_away_an_expired_id_token_is_an_outage_and_no_reason_to_sign_in() {
    let both = two_domains("", None).await;
    both.world
        .provider
        .script(|script| _ = script.claims.insert("exp".into(), json!(START_MS / 1_000 + 60)));
    let signed_in = both.world.sign_in().await;
    both.advance_ms(60_000);
    let away = Answer::status(503);
    both.world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, away));
    let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    assert_eq!(reason(refused), ErrorReason::ErrProviderUnavailable);
}

#[tokio::test]
async fn a_session_without_an_id_token_sends_nothing() {
    let both = two_domains("", None).await;
    let mut request = request(
        &both.world.provider.sign_in(SCOPE),
        both.world.provider.issuer(),
        START_MS + 300_000,
    );
    request.tokens.as_mut().unwrap().id_token = String::new();
    let signed_in = signed_in(&both.world.one.client, request).await;
    let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    let status = refused.unwrap_err();
    assert!(status.message().contains("EDGE_STORE_ID_TOKEN"), "{status:?}");
    assert_eq!(reason(Err::<(), _>(status)), ErrorReason::ErrFailedTokenExchange);
    assert_eq!(both.legs(), (0, 0));
}

#[tokio::test]
async fn each_server_revokes_its_own_token_at_sign_out() {
    let both = two_domains("", None).await;
    let signed_in = both.world.sign_in().await;
    let chat = token(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    // The first request fails, so the later one comes from the note.
    both.chat
        .script(|script| _ = script.answers.insert(Endpoint::Revocation, Answer::status(503)));
    assert!(both.world.one.end(&signed_in.id).await.ended);
    both.chat.wait_for_calls(Endpoint::Revocation, 1).await;
    both.chat.script(|script| script.answers.clear());
    both.advance_ms(10_000);
    eventually("the note to go", || {
        both.world.store.holdings().unwrap().index_entries == 0
    })
    .await;
    let revoked = |server: &scripted_provider::ScriptedProvider| -> BTreeSet<String> {
        let sent = server.requests(Endpoint::Revocation);
        sent.iter()
            .map(|sent| sent.param("token").unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(revoked(&both.chat), BTreeSet::from([chat]));
    assert_eq!(
        revoked(&both.world.provider),
        BTreeSet::from([signed_in.refresh_token])
    );
}

#[tokio::test]
async fn a_session_that_ends_during_the_grant_has_the_token_revoked_where_it_was_issued() {
    let both = two_domains("", None).await;
    let signed_in = both.world.sign_in().await;
    let gate = both.chat.hold_answers(Endpoint::Token);
    let caller = asking(&both.world.one, for_audience(&signed_in.id, "chat", &[]));
    both.chat.wait_for_held(Endpoint::Token, 1).await;
    assert!(both.world.two.end(&signed_in.id).await.ended);
    gate.release();
    assert_eq!(
        reason(within(caller).await.unwrap()),
        ErrorReason::ErrMissingSession
    );
    both.chat.wait_for_calls(Endpoint::Revocation, 1).await;
    both.world.wait_for_revocations(1).await;
}

#[tokio::test]
async fn with_a_dpop_key_both_requests_prove_it_and_the_token_is_bound() {
    let both = two_domains("", Some(dpop_key())).await;
    both.chat
        .script(|script| script.dpop_nonce = Some("a-nonce".to_owned()));
    let signed_in = both.world.sign_in().await;
    let answer = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[]))
        .await
        .unwrap();
    assert_eq!(answer.token_type, "DPoP");
    for server in [&both.world.provider, &both.chat] {
        assert!(server.last_request(Endpoint::Token).header("dpop").is_some());
    }
    both.chat
        .script(|script| _ = script.jwt_bearer.insert("token_type".into(), json!("Bearer")));
    let unbound = ask(&both.world.one, for_audience(&signed_in.id, "chat", &["read"])).await;
    assert_eq!(reason(unbound), ErrorReason::ErrFailedTokenExchange);
    let (_, before) = both.legs();
    both.world.provider.script(|script| {
        _ = script
            .id_jag
            .insert("cnf".into(), json!({ "jkt": "another key" }))
    });
    let other_key = ask(&both.world.one, for_audience(&signed_in.id, "chat", &["write"])).await;
    assert_eq!(reason(other_key), ErrorReason::ErrFailedTokenExchange);
    assert_eq!(both.legs().1, before, "the assertion of another key is not sent");
}

#[tokio::test]
async fn a_private_key_proves_this_service_to_the_server_in_place_of_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.pem");
    std::fs::write(&file, private_key()).unwrap();
    let both = two_domains(&format!("client_key_file = {file:?}"), None).await;
    let signed_in = both.world.sign_in().await;
    token(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    let sent = both.chat.last_request(Endpoint::Token);
    assert_eq!(sent.header("authorization"), None);
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    assert_eq!(sent.param("client_assertion_type"), Some(kind));
    let claims = claims_of(sent.param("client_assertion").unwrap());
    for (name, value) in [
        ("iss", CLIENT_ID),
        ("sub", CLIENT_ID),
        ("aud", both.chat.issuer()),
    ] {
        assert_eq!(claims[name], value, "{name}");
    }
    let at_provider = both.world.provider.last_request(Endpoint::Token);
    assert_eq!(at_provider.param("client_assertion"), None);
}

fn dpop_key() -> DpopKey {
    DpopKey::from_pem(&private_key()).unwrap()
}

/// A P-256 key in PKCS#8 PEM.
fn private_key() -> String {
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let text = STANDARD.encode(der.as_ref());
    format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
}
