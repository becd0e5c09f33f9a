//! Token exchange: one exchange for all waiting callers, one token per API, and the provider's refusals.

use scripted_provider::{Answer, Endpoint};
use serde_json::json;
use session_proto::error::metadata_of;
use session_proto::v1::ErrorReason;
use tonic::Code;

use super::support::*;
use crate::refresh::support::*;

const CALLERS: usize = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_callers_at_two_replicas_cost_one_exchange_at_each_expiry() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let mut before = String::new();
    for expiry in 1..=2 {
        let gate = world.provider.hold(Endpoint::Token);
        let callers: Vec<_> = (0..CALLERS)
            .map(|nth| {
                let replica = if nth % 2 == 0 { &world.one } else { &world.two };
                asking(replica, for_audience(&signed_in.id, "orders", &["read"]))
            })
            .collect();
        eventually("all callers to wait", || {
            world.one.waiting() + world.two.waiting() == CALLERS as u64
        })
        .await;
        gate.release();
        let mut tokens = Vec::new();
        for caller in callers {
            tokens.push(within(caller).await.unwrap().unwrap().access_token);
        }
        tokens.dedup();
        assert_eq!(tokens.len(), 1, "all get the winner's token");
        assert_eq!(exchanges(&world), expiry);
        assert_ne!(tokens[0], before);
        before = tokens.remove(0);
        // One call refreshes the session's own token before the token for the API expires.
        world.advance_ms(3_500_000);
        world.one.token(&signed_in.id).await.unwrap();
        world.advance_ms(100_000);
    }
    assert_eq!(world.provider.reuses(), 0);
}

#[tokio::test]
async fn each_api_has_its_own_token_which_is_kept_and_no_other_ever_gets_it() {
    let world = world().await;
    let (alice, bob) = (world.sign_in().await, world.sign_in().await);
    let requests = |id: &str| {
        [
            for_audience(id, "orders", &[]),
            for_audience(id, "orders", &["read"]),
            for_audience(id, "orders", &["read", "write"]),
            for_audience(id, "billing", &["read"]),
            for_resource(id, ORDERS),
            for_resource(id, BILLING),
        ]
    };
    let mut all = Vec::new();
    for request in requests(&alice.id).into_iter().chain(requests(&bob.id)) {
        let first = token(&world.one, request.clone()).await;
        assert_eq!(first, token(&world.two, request).await, "kept, for all replicas");
        all.push(first);
    }
    all.extend([alice.access_token.clone(), bob.access_token]);
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!((all.len(), exchanges(&world)), (count, 12));
    assert_eq!(
        world.one.token(&alice.id).await.unwrap().access_token,
        alice.access_token
    );
    // Neither the order of scopes nor a repeated scope requests another token.
    token(
        &world.one,
        for_audience(&alice.id, "orders", &["write", "read", "write"]),
    )
    .await;
    assert_eq!(exchanges(&world), 12);
}

#[tokio::test]
async fn the_request_is_the_one_of_the_standard() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let mut request = for_audience(&signed_in.id, "orders", &["write", "read"]);
    request.resource = ORDERS.to_owned();
    let answer = ask(&world.one, request).await.unwrap();
    assert_eq!(
        (answer.token_type.as_str(), answer.scope.as_str()),
        ("Bearer", "read write")
    );
    assert_eq!(
        (answer.audience.as_str(), answer.resource.as_str()),
        ("orders", ORDERS),
        "what it is for, for callers of a later release"
    );
    let sent = world.provider.last_request(Endpoint::Token);
    let kind = "urn:ietf:params:oauth:token-type:access_token";
    for (name, value) in [
        ("grant_type", EXCHANGE),
        ("subject_token", signed_in.access_token.as_str()),
        ("subject_token_type", kind),
        ("requested_token_type", kind),
        ("audience", "orders"),
        ("resource", ORDERS),
        ("scope", "read write"),
    ] {
        assert_eq!(sent.param(name), Some(value), "{name}");
    }
}

#[tokio::test]
async fn an_expired_session_token_is_refreshed_once_before_it_is_exchanged() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world.advance_ms(300_000);
    let callers: Vec<_> = ["orders", "billing", "orders"]
        .iter()
        .zip([&world.one, &world.two, &world.two])
        .map(|(audience, replica)| asking(replica, for_audience(&signed_in.id, audience, &[])))
        .collect();
    for caller in callers {
        within(caller).await.unwrap().unwrap();
    }
    assert_eq!(
        (world.provider.grants("refresh_token"), exchanges(&world)),
        (1, 2)
    );
    let own = world.one.token(&signed_in.id).await.unwrap().access_token;
    for sent in of_grant(&world.provider, EXCHANGE) {
        assert_eq!(sent.param("subject_token"), Some(own.as_str()));
    }
}

#[tokio::test]
async fn what_the_provider_refuses_has_its_reason_and_touches_nothing_else() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    for (error, expected) in [
        ("invalid_target", ErrorReason::ErrInvalidTarget),
        ("invalid_scope", ErrorReason::ErrInsufficientScope),
        ("unsupported_grant_type", ErrorReason::ErrFailedTokenExchange),
        ("unauthorized_client", ErrorReason::ErrFailedTokenExchange),
    ] {
        world
            .provider
            .script(|script| script.exchange_error = Some(error.to_owned()));
        world.advance_ms(REMEMBERED_MS);
        let refused = ask(&world.one, for_audience(&signed_in.id, "orders", &["read"])).await;
        let status = refused.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{error}");
        if expected == ErrorReason::ErrInsufficientScope {
            assert_eq!(metadata_of(&status)["scopes"], "read");
        }
        assert_eq!(reason(Err::<(), _>(status)), expected, "{error}");
    }
    world.provider.script(|script| script.exchange_error = None);
    for patch in [
        (
            "issued_token_type",
            json!("urn:ietf:params:oauth:token-type:saml2"),
        ),
        ("token_type", json!("N_A")),
        ("access_token", json!(null)),
    ] {
        world
            .provider
            .script(|script| script.exchange = [(patch.0.to_owned(), patch.1.clone())].into_iter().collect());
        world.advance_ms(REMEMBERED_MS);
        let refused = ask(&world.one, for_audience(&signed_in.id, "orders", &[])).await;
        assert_eq!(reason(refused), ErrorReason::ErrFailedTokenExchange, "{patch:?}");
    }
    let session = world.one.session(&signed_in.id).await.unwrap();
    assert_eq!((session.version, session.state), (1, 1), "nothing was written");
    assert_eq!(
        world.one.token(&signed_in.id).await.unwrap().access_token,
        signed_in.access_token
    );
}

/// The provider revoked the token, or was restarted. The session has a refresh token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_access_token_that_died_before_its_time_is_refreshed_once_and_exchanged() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world.provider.forget_access_tokens();
    let callers: Vec<_> = (0..20)
        .map(|nth| {
            let replica = if nth % 2 == 0 { &world.one } else { &world.two };
            asking(replica, for_audience(&signed_in.id, "orders", &[]))
        })
        .collect();
    for caller in callers {
        within(caller).await.unwrap().unwrap();
    }
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (1, 0));
}

#[tokio::test]
async fn exchanges_that_go_on_failing_cost_one_refresh_and_no_sign_in() {
    for error in ["invalid_request", "invalid_grant", "invalid_token"] {
        let world = world().await;
        let signed_in = world.sign_in().await;
        world
            .provider
            .script(|script| script.exchange_error = Some(error.to_owned()));
        for replica in [&world.one, &world.two, &world.one] {
            let refused = ask(replica, for_audience(&signed_in.id, "orders", &[])).await;
            assert_eq!(reason(refused), ErrorReason::ErrFailedTokenExchange, "{error}");
        }
        assert_eq!(world.provider.rotations(), 1, "{error}");
    }
}

#[tokio::test]
async fn a_session_whose_tokens_are_all_dead_is_sent_to_sign_in() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world.provider.forget_access_tokens();
    world.provider.forget_refresh_tokens();
    for replica in [&world.one, &world.two] {
        let refused = ask(replica, for_audience(&signed_in.id, "orders", &[])).await;
        assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    }
    assert_eq!(world.provider.grants("refresh_token"), 1);
}

#[tokio::test]
async fn a_scope_that_is_not_granted_is_refused_and_not_asked_for_again() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| _ = script.exchange.insert("scope".into(), json!("read")));
    for replica in [&world.one, &world.two] {
        let refused = ask(replica, for_audience(&signed_in.id, "orders", &["read", "write"])).await;
        let status = refused.unwrap_err();
        assert_eq!(metadata_of(&status)["scopes"], "write");
        assert_eq!(reason(Err::<(), _>(status)), ErrorReason::ErrInsufficientScope);
    }
    assert_eq!(exchanges(&world), 1);
}

#[tokio::test]
async fn another_token_is_had_by_force_and_one_that_is_good_while_the_provider_is_away() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let request = for_audience(&signed_in.id, "orders", &[]);
    let first = token(&world.one, request.clone()).await;
    let mut forced = request.clone();
    forced.force_refresh = true;
    let second = token(&world.one, forced).await;
    assert_ne!(first, second);
    assert_eq!(token(&world.two, request.clone()).await, second);
    world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, Answer::status(503)));
    // Inside the margin of a minute.
    world.advance_ms(3_570_000);
    assert_eq!(token(&world.one, request.clone()).await, second);
    world.advance_ms(30_000);
    let refused = ask(&world.one, request).await;
    assert_eq!(reason(refused), ErrorReason::ErrProviderUnavailable);
}

#[tokio::test]
async fn what_names_no_api_is_a_mistake_that_says_so() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let long = "a".repeat(513);
    for (audience, resource, field) in [
        (long.as_str(), "", "audience"),
        ("a\nb", "", "audience"),
        ("", "orders", "resource"),
        ("", "https://orders.example/#a", "resource"),
        ("orders", "https://orders.example/\u{e4}", "resource"),
    ] {
        let mut request = for_audience(&signed_in.id, audience, &[]);
        request.resource = resource.to_owned();
        let status = ask(&world.one, request).await.unwrap_err();
        assert_eq!(metadata_of(&status)["field"], field, "{audience} {resource}");
    }
    assert_eq!(exchanges(&world), 0);
}
