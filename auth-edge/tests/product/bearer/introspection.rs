//! Opaque tokens: the provider's introspection answer decides, and is cached for a while (RFC 7662).

use std::time::Duration;

use futures_util::future::join_all;
use scripted_provider::{Answer, Endpoint};
use serde_json::json;

use super::{Machines, ORDERS, challenges};

fn questions(machines: &Machines) -> usize {
    machines.provider().calls(Endpoint::Introspection)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opaque_token_passes_where_the_provider_is_asked_and_says_yes() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS }));
    let token = machines.opaque();
    assert_eq!(
        machines.bearer("/orders/7", &token).await.status,
        401,
        "nobody asks for this route"
    );
    assert_eq!(questions(&machines), 0);
    let answer = machines.bearer("/opaque/a", &token).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = &machines.upstream.requests()[0];
    assert_eq!(
        (seen.all("x-auth-subject"), seen.all("x-auth-client")),
        (vec!["alice".to_owned()], vec!["machine".to_owned()])
    );
    assert_eq!(
        machines
            .bearer("/opaque/a", &machines.token(json!({})))
            .await
            .status,
        200
    );
    assert_eq!(questions(&machines), 1, "a JWT is judged by its signature");
    machines.say(json!({ "aud": "https://other.example" }));
    assert_eq!(machines.bearer("/opaque/a", &machines.opaque()).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_said_counts_for_ten_seconds_yes_and_no_alike() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS }));
    let (token, unknown) = (machines.opaque(), "nobody-knows-me");
    for _ in 0..5 {
        assert_eq!(machines.bearer("/opaque/a", &token).await.status, 200);
        assert_eq!(machines.bearer("/opaque/a", unknown).await.status, 401);
    }
    assert_eq!(questions(&machines), 2);
    machines.say(json!({ "aud": ORDERS, "active": false }));
    machines.stack.advance(9);
    assert_eq!(machines.bearer("/opaque/a", &token).await.status, 200);
    machines.stack.advance(1);
    assert_eq!(
        machines.bearer("/opaque/a", &token).await.status,
        401,
        "revoked, and noticed"
    );
    assert_eq!(questions(&machines), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_the_provider_said_outlives_the_token() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS, "exp": machines.stack.now_secs() + 5 }));
    let token = machines.opaque();
    assert_eq!(machines.bearer("/opaque/a", &token).await.status, 200);
    machines.stack.advance(5);
    machines.say(json!({ "active": false }));
    assert_eq!(machines.bearer("/opaque/a", &token).await.status, 401);
    assert_eq!(questions(&machines), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_about_one_token_at_once_shares_one_question() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS }));
    let token = machines.opaque();
    let gate = machines.provider().hold(Endpoint::Introspection);
    let all = join_all((0..20).map(|_| machines.bearer("/opaque/a", &token)));
    let release = async {
        machines
            .provider()
            .wait_for_calls(Endpoint::Introspection, 1)
            .await;
        gate.release();
    };
    let (answers, ()) = tokio::join!(all, release);
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(questions(&machines), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_be_asked_lets_nobody_in_and_is_not_hammered() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS }));
    let token = machines.opaque();
    let script = |answer: Option<Answer>| {
        machines.provider().script(|script| {
            script.answers.clear();
            script
                .answers
                .extend(answer.map(|answer| (Endpoint::Introspection, answer)));
        });
    };
    script(Some(Answer::Hang));
    let began = std::time::Instant::now();
    let answers = join_all((0..10).map(|_| machines.bearer("/opaque/a", &token))).await;
    assert!(answers.iter().all(|answer| answer.status == 503), "{answers:?}");
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "those who waited share the failure: {:?}",
        began.elapsed()
    );
    assert!(
        answers
            .iter()
            .all(|answer| challenges(answer).is_empty() && !answer.header("retry-after").is_empty())
    );
    for broken in [
        Answer::status(500),
        Answer::status(401),
        Answer::text(200, "application/json", "{}"),
    ] {
        machines.stack.advance(1);
        script(Some(broken.clone()));
        assert_eq!(
            machines.bearer("/opaque/a", &token).await.status,
            503,
            "{broken:?}"
        );
    }
    script(None);
    machines.stack.advance(1);
    assert_eq!(
        machines.bearer("/opaque/a", &token).await.status,
        200,
        "and forgets nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_provider_is_always_asked_it_is_asked_about_jwts_too() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS }));
    assert_eq!(
        machines
            .bearer("/asked/a", &machines.token(json!({})))
            .await
            .status,
        401,
        "not one it knows"
    );
    assert_eq!(machines.bearer("/asked/a", &machines.opaque()).await.status, 200);
    assert_eq!(questions(&machines), 2);
    let foreign = machines.token(json!({ "iss": "https://evil.example" }));
    assert_eq!(machines.bearer("/asked/a", &foreign).await.status, 401);
    assert_eq!(
        questions(&machines),
        2,
        "another issuer's token is shown to nobody"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_or_a_bound_token_without_its_proof_is_no_access_token() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS, "token_type": "refresh_token" }));
    assert_eq!(machines.bearer("/opaque/a", &machines.opaque()).await.status, 401);
    machines.say(json!({ "aud": ORDERS, "token_type": "DPoP", "cnf": { "jkt": "key" } }));
    let answer = machines.bearer("/opaque/a", &machines.opaque()).await;
    assert_eq!(answer.status, 401);
    assert!(answer.body.contains("bound to a key"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_makes_up_tokens_is_told_to_wait_before_the_provider_is() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS }));
    let known = machines.opaque();
    assert_eq!(machines.bearer("/opaque/a", &known).await.status, 200);
    for number in 0..120 {
        let made_up = format!("made-up-{number}");
        assert_eq!(
            machines.bearer("/opaque/a", &made_up).await.status,
            401,
            "{number}"
        );
    }
    assert_eq!(machines.bearer("/opaque/a", "another").await.status, 429);
    assert_eq!(
        machines.bearer("/opaque/a", &known).await.status,
        200,
        "it is known"
    );
    assert_eq!(questions(&machines), 121);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_the_provider_answers_with_an_error_count_for_who_causes_them() {
    let machines = Machines::start().await;
    machines.provider().script(|script| {
        script
            .answers
            .insert(Endpoint::Introspection, Answer::status(500));
    });
    for number in 0..120 {
        let token = format!("made-up-{number}");
        assert_eq!(machines.bearer("/opaque/a", &token).await.status, 503, "{number}");
    }
    assert_eq!(machines.bearer("/opaque/a", "another").await.status, 429);
    assert_eq!(questions(&machines), 120);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_a_person_names_its_client_alone() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS, "sub": null, "username": "Alice" }));
    assert_eq!(machines.bearer("/opaque/a", &machines.opaque()).await.status, 401);
    machines.say(json!({ "aud": ORDERS, "sub": null }));
    assert_eq!(machines.bearer("/opaque/a", &machines.opaque()).await.status, 200);
    let seen = &machines.upstream.requests()[0];
    assert_eq!(seen.all("x-auth-subject"), Vec::<&str>::new());
    assert_eq!(seen.all("x-auth-client").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_weighs_too_much_is_not_remembered() {
    let machines = Machines::start().await;
    machines.say(json!({ "aud": ORDERS, "groups": vec![0; 10_000] }));
    let token = machines.opaque();
    for asked in 1..3 {
        assert_eq!(machines.bearer("/opaque/a", &token).await.status, 200);
        assert_eq!(questions(&machines), asked);
    }
}
