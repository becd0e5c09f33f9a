//! Failures of the two servers of a cross-app token: none costs the session its own tokens.

use std::time::Duration;

use scripted_provider::{Answer, Claims, Endpoint, Script};
use serde_json::{Value, json};
use session_proto::v1::ErrorReason;

use super::support::*;
use crate::refresh::support::*;

fn patch(name: &str, value: Value) -> Claims {
    Claims::from_iter([(name.to_owned(), value)])
}

#[tokio::test]
async fn a_wrong_assertion_is_not_sent_to_the_server() {
    let both = two_domains("", None).await;
    let signed_in = both.world.sign_in().await;
    let chat = both.chat.issuer();
    for (name, value) in [
        ("iss", json!(chat)),
        ("sub", json!(null)),
        ("aud", json!("https://other.example")),
        ("aud", json!([chat, "https://other.example"])),
        ("aud", json!(null)),
        ("exp", json!(START_MS / 1_000 - 61)),
        ("exp", json!(null)),
        ("iat", json!(null)),
        ("client_id", json!("another client")),
        ("client_id", json!(null)),
        ("cnf", json!({ "jkt": "a key" })),
    ] {
        both.world
            .provider
            .script(|script| script.id_jag = patch(name, value.clone()));
        check_rejected(&both, &signed_in.id, &format!("{name} {value}")).await;
    }
    both.world.provider.script(|script| script.id_jag = Claims::new());
    for typ in [json!("JWT"), json!("at+jwt"), json!(null)] {
        both.world
            .provider
            .script(|script| script.id_jag_header = patch("typ", typ.clone()));
        check_rejected(&both, &signed_in.id, &format!("typ {typ}")).await;
    }
    both.world
        .provider
        .script(|script| script.id_jag_header = Claims::new());
    for (name, value) in [
        (
            "issued_token_type",
            json!("urn:ietf:params:oauth:token-type:access_token"),
        ),
        ("issued_token_type", json!(null)),
        ("token_type", json!("Bearer")),
        ("access_token", json!("not a JWT")),
        ("access_token", json!(null)),
    ] {
        both.world
            .provider
            .script(|script| script.exchange = patch(name, value.clone()));
        check_rejected(&both, &signed_in.id, &format!("{name} {value}")).await;
    }
    assert_eq!(both.legs().1, 0);
    both.world
        .provider
        .script(|script| script.exchange = patch("token_type", json!("n_a")));
    both.world
        .provider
        .script(|script| script.id_jag = patch("aud", json!([chat])));
    token(&both.world.one, for_audience(&signed_in.id, "chat", &["last"])).await;
}

async fn check_rejected(both: &TwoDomains, id: &str, what: &str) {
    // A scope of its own: a refusal is remembered for its target.
    let scope: String = what.chars().filter(char::is_ascii_alphanumeric).collect();
    let request = for_audience(id, "chat", &[&scope]);
    let refused = ask(&both.world.one, request).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedTokenExchange, "{what}");
}

#[tokio::test]
async fn what_either_server_refuses_has_its_reason_and_touches_nothing_else() {
    use ErrorReason as R;
    for (error, expected) in [
        ("invalid_target", R::ErrInvalidTarget),
        ("invalid_scope", R::ErrInsufficientScope),
        ("unauthorized_client", R::ErrFailedTokenExchange),
        ("unsupported_grant_type", R::ErrFailedTokenExchange),
        ("insufficient_user_authentication", R::ErrFailedTokenExchange),
    ] {
        for of_server in [false, true] {
            let both = two_domains("", None).await;
            let signed_in = both.world.sign_in().await;
            let error_of = |script: &mut Script| match of_server {
                false => script.exchange_error = Some(error.to_owned()),
                true => script.jwt_bearer_error = Some(error.to_owned()),
            };
            let server = if of_server {
                &both.chat
            } else {
                &both.world.provider
            };
            server.script(error_of);
            for _ in 0..2 {
                let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &["read"])).await;
                assert_eq!(reason(refused), expected, "{error} {of_server}");
            }
            assert_eq!(both.legs(), (1, usize::from(of_server)), "{error}: remembered");
            let own = both.world.one.token(&signed_in.id).await.unwrap().access_token;
            assert_eq!(own, signed_in.access_token, "{error}");
        }
    }
}

/// A used or revoked assertion: neither a refresh nor a new sign-in helps.
#[tokio::test]
async fn an_assertion_the_server_refuses_is_one_error_and_no_refresh() {
    let both = two_domains("", None).await;
    let signed_in = both.world.sign_in().await;
    both.chat
        .script(|script| script.jwt_bearer_error = Some("invalid_grant".to_owned()));
    let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedTokenExchange);
    assert_eq!(
        (both.legs(), both.world.provider.grants("refresh_token")),
        ((1, 1), 0)
    );
}

#[tokio::test]
async fn an_id_token_the_provider_refuses_costs_one_refresh() {
    let both = two_domains("", None).await;
    let signed_in = both.world.sign_in().await;
    both.world
        .provider
        .script(|script| script.exchange_error = Some("invalid_grant".to_owned()));
    for _ in 0..3 {
        let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
        assert_eq!(reason(refused), ErrorReason::ErrFailedTokenExchange);
    }
    assert_eq!((both.legs(), both.world.provider.rotations()), ((2, 0), 1));
}

#[tokio::test]
async fn a_scope_that_the_assertion_lacks_is_not_granted() {
    let both = two_domains("", None).await;
    let signed_in = both.world.sign_in().await;
    both.world
        .provider
        .script(|script| script.id_jag = patch("scope", json!("read")));
    let refused = ask(
        &both.world.one,
        for_audience(&signed_in.id, "chat", &["read", "write"]),
    )
    .await;
    assert_eq!(reason(refused), ErrorReason::ErrInsufficientScope);
}

#[tokio::test]
async fn a_failing_server_is_an_outage_that_is_not_remembered() {
    let both = two_domains("", None).await;
    let signed_in = both.world.sign_in().await;
    for answer in [
        Answer::status(503),
        Answer::text(200, "application/json", "{"),
        Answer::text(200, "application/json", vec![b' '; 2 << 20]),
        Answer::redirect("http://127.0.0.1:9/token"),
    ] {
        both.chat
            .script(|script| _ = script.answers.insert(Endpoint::Token, answer.clone()));
        let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
        assert_eq!(reason(refused), ErrorReason::ErrProviderUnavailable, "{answer:?}");
    }
    both.chat.script(|script| script.answers.clear());
    token(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    assert_eq!(both.world.provider.grants("refresh_token"), 0);
}

#[tokio::test]
async fn callers_do_not_wait_longer_for_a_hanging_server_than_for_the_provider() {
    let both = two_domains_of("", None, |settings| {
        settings.http_timeout = Duration::from_millis(500)
    })
    .await;
    let signed_in = both.world.sign_in().await;
    both.chat
        .script(|script| _ = script.answers.insert(Endpoint::Token, Answer::Hang));
    let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    assert_eq!(reason(refused), ErrorReason::ErrProviderUnavailable);
}

#[tokio::test]
async fn metadata_of_another_issuer_or_with_an_unsafe_address_are_not_used() {
    for (name, value) in [
        ("issuer", json!("https://other.example")),
        ("token_endpoint", json!("http://192.0.2.1/token")),
        ("token_endpoint", json!(null)),
    ] {
        let both = two_domains("", None).await;
        both.chat
            .script(|script| script.metadata = patch(name, value.clone()));
        let signed_in = both.world.sign_in().await;
        let refused = ask(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
        assert_eq!(
            reason(refused),
            ErrorReason::ErrProviderUnavailable,
            "{name} {value}"
        );
        assert_eq!(both.legs().1, 0);
    }
}

#[tokio::test]
async fn metadata_are_those_of_rfc_8414_or_a_configured_endpoint_replaces_them() {
    let both = two_domains("", None).await;
    let at = format!("{}{}", both.chat.issuer(), Endpoint::Token.path());
    let document = Answer::json(
        200,
        &json!({ "issuer": both.chat.issuer(), "token_endpoint": at }),
    );
    both.chat
        .script(|script| _ = script.answers.insert(Endpoint::OauthMetadata, document));
    let signed_in = both.world.sign_in().await;
    token(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    assert_eq!(both.chat.calls(Endpoint::Discovery), 0);

    let configured = format!("token_endpoint = \"CHAT{}\"", Endpoint::Token.path());
    let both = two_domains(&configured, None).await;
    let signed_in = both.world.sign_in().await;
    token(&both.world.one, for_audience(&signed_in.id, "chat", &[])).await;
    for document in [Endpoint::OauthMetadata, Endpoint::Discovery] {
        assert_eq!(both.chat.calls(document), 0);
    }
}
