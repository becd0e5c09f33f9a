//! A decision point that permits, denies, misbehaves and is away, for guards, checks and access tokens.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::gateway::Gateway;
use crate::support::{Answer, Browser};

/// An answer that permits nothing.
type WrongAnswer = fn() -> Response;

/// What the decision point answers.
type Script = Box<dyn Fn(&Value) -> Response + Send>;

/// A question: path, headers and body.
type Question = (String, HeaderMap, Value);

#[derive(Clone)]
struct Questions(Arc<Mutex<(Vec<Question>, Script)>>);

/// A decision point that ends with the test's runtime.
struct DecisionPoint {
    url: String,
    questions: Questions,
}

impl DecisionPoint {
    async fn start() -> Self {
        let questions = Questions(Arc::new(Mutex::new((Vec::new(), permit_ada()))));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let kept = questions.clone();
        let answer = move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let kept = kept.clone();
            async move {
                let question: Value = serde_json::from_slice(&body).unwrap();
                let (asked, script) = &mut *kept.0.lock().unwrap();
                let answer = script(&question);
                asked.push((uri.path().to_owned(), headers, question));
                answer
            }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        Self { url, questions }
    }

    fn script(&self, script: impl Fn(&Value) -> Response + Send + 'static) {
        self.questions.0.lock().unwrap().1 = Box::new(script);
    }

    fn asked(&self) -> Vec<Question> {
        self.questions.0.lock().unwrap().0.clone()
    }

    /// A stack whose rules ask this decision point.
    async fn gateway(&self, more: &str) -> Gateway {
        let rule = |kind: &str, lines: &str| {
            format!(
                "[[{kind}]]\nguard = \"api\"\ndecide = \"{}\"\n{lines}{more}\n",
                self.url
            )
        };
        let table = [
            rule("route", "path = \"/decided/*\"\nupstream = \"{upstream}\"\n"),
            rule(
                "check",
                "host = \"orders.localhost\"\nbearer.audience = \"https://orders.example\"\n",
            ),
        ];
        Gateway::start(&table.concat(), &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await
    }
}

/// Permits one person, and denies others with a reason.
fn permit_ada() -> Script {
    Box::new(|question| match question["subject"]["id"].as_str() {
        Some("ada-1") => json_answer(json!({"decision": true}), "max-age=60"),
        _ => json_answer(
            json!({"decision": false, "context": {"reason": "policy_denied", "reason_admin": {"en": "secret policy"}}}),
            "max-age=60",
        ),
    })
}

fn json_answer(answer: Value, cache: &'static str) -> Response {
    ([("cache-control", cache)], axum::Json(answer)).into_response()
}

async fn person(gateway: &Gateway, sub: &str) -> Browser {
    let user =
        json!({"sub": sub, "email": format!("{sub}@example.com"), "groups": ["staff"], "phone_number": "1"});
    gateway.signed_in_as(user, "openid").await
}

async fn check(browser: &mut Browser, more: &[(&str, &str)]) -> Answer {
    let about = [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "orders.localhost"),
        ("x-forwarded-method", "DELETE"),
        ("x-forwarded-uri", "/orders/7?x=1"),
    ];
    browser
        .get_with("/api/auth/check", &[&about[..], more].concat())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_and_a_check_pass_only_what_the_decision_point_permits() {
    let point = DecisionPoint::start().await;
    let gateway = point
        .gateway("decide_claims = [\"groups\", \"missing\"]\ndenied_message = \"Ask Grace.\"\n")
        .await;
    let mut ada = person(&gateway, "ada-1").await;
    assert_eq!(ada.get("/decided/a?b=c").await.status, 200);
    assert_eq!(ada.get("/decided/a?b=d").await.status, 200);
    assert_eq!(check(&mut ada, &[]).await.status, 200);
    let asked = point.asked();
    assert_eq!(asked.len(), 2, "the second answer came from the cache");
    let (path, _, question) = &asked[0];
    assert_eq!(path, "/access/v1/evaluation");
    assert_eq!(question["subject"]["type"], "identity");
    assert_eq!(
        question["subject"]["properties"]["claims"],
        json!({"groups": ["staff"]})
    );
    assert_eq!(
        question["subject"]["properties"]["issuer"],
        gateway.stack.provider.issuer()
    );
    assert_eq!(question["action"], json!({"name": "GET"}));
    assert_eq!(
        (
            &question["resource"]["id"],
            &question["resource"]["properties"]["path"]
        ),
        (&json!("/decided/*"), &json!("/decided/a"))
    );
    assert_eq!(question["context"], json!({"method": "GET", "ip": "127.0.0.1"}));
    let (_, _, checked) = &asked[1];
    assert_eq!(checked["action"], json!({"name": "DELETE"}));
    assert_eq!(
        checked["resource"]["properties"],
        json!({"origin": "https://orders.localhost", "path": "/orders/7"})
    );

    let mut bob = person(&gateway, "bob-2").await;
    for answer in [bob.get("/decided/a").await, check(&mut bob, &[]).await] {
        assert_eq!(answer.status, 403);
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (&body["error"], &body["reason"], &body["message"]),
            (
                &json!("access_denied"),
                &json!("policy_denied"),
                &json!("Ask Grace.")
            )
        );
        assert!(!answer.body.contains("secret policy"), "{answer:?}");
    }
    assert_eq!(gateway.stack.browser().get("/decided/a").await.status, 401);
    assert_eq!(gateway.upstream.requests().len(), 2);
    assert_eq!(point.asked().len(), 4, "without a session there is no question");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_needs_a_permit_too() {
    let point = DecisionPoint::start().await;
    let gateway = point.gateway("").await;
    gateway
        .stack
        .provider
        .script(|script| script.now = Some(gateway.stack.now_secs()));
    for (sub, status) in [("ada-1", 200), ("bob-2", 403)] {
        let claims = json!({"sub": sub, "aud": "https://orders.example"});
        let token = gateway.stack.provider.access_token(claims);
        let mut client = gateway.stack.browser();
        let answer = check(&mut client, &[("authorization", &format!("Bearer {token}"))]).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert!(point.asked()[0].2["subject"]["properties"]["client_id"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_actions_are_one_question_with_the_authorization_of_the_file() {
    let point = DecisionPoint::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "Bearer first\n").unwrap();
    let gateway = point
        .gateway(&format!(
            "decide_actions = [\"read\", \"audit\"]\ndecide_authorization_file = {:?}\n",
            file.path().display().to_string()
        ))
        .await;
    point.script(|_| {
        json_answer(
            json!({"evaluations": [{"decision": true}, {"decision": true}]}),
            "no-store",
        )
    });
    let mut ada = person(&gateway, "ada-1").await;
    assert_eq!(ada.get("/decided/a").await.status, 200);
    std::fs::write(file.path(), "Bearer second").unwrap();
    point.script(|_| {
        json_answer(
            json!({"evaluations": [{"decision": true}, {"decision": false}]}),
            "no-store",
        )
    });
    assert_eq!(ada.get("/decided/a").await.status, 403);
    let asked = point.asked();
    let authorization: Vec<_> = asked
        .iter()
        .map(|(_, headers, _)| headers["authorization"].clone())
        .collect();
    assert_eq!(authorization, ["Bearer first", "Bearer second"]);
    let (path, _, question) = &asked[0];
    assert_eq!(path, "/access/v1/evaluations");
    assert_eq!(
        question["evaluations"],
        json!([{"action": {"name": "read"}}, {"action": {"name": "audit"}}])
    );
    std::fs::remove_file(file.path()).unwrap();
    assert_eq!(ada.get("/decided/a").await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_point_that_lies_fails_or_answers_hugely_lets_nobody_in() {
    let point = DecisionPoint::start().await;
    let gateway = point.gateway("").await;
    let mut ada = person(&gateway, "ada-1").await;
    let wrong: [(&str, WrongAnswer); 7] = [
        ("text for true", || {
            json_answer(json!({"decision": "true"}), "max-age=60")
        }),
        ("no decision", || {
            json_answer(json!({"permit": true}), "max-age=60")
        }),
        ("no JSON", || "decision: true".into_response()),
        ("an error", || {
            (StatusCode::INTERNAL_SERVER_ERROR, "{\"decision\": true}").into_response()
        }),
        ("a redirect", || {
            (
                StatusCode::TEMPORARY_REDIRECT,
                [("location", "http://127.0.0.1:1/")],
                "{\"decision\": true}",
            )
                .into_response()
        }),
        ("a huge answer", || {
            let padding = "x".repeat(70_000);
            json_answer(json!({"decision": true, "context": {"x": padding}}), "max-age=60")
        }),
        ("an endless answer", || {
            let endless =
                futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(b" ")));
            Body::from_stream(endless).into_response()
        }),
    ];
    for (what, answer) in wrong {
        point.script(move |_| answer());
        let refused = ada.get("/decided/a").await;
        assert_eq!(refused.status, 503, "{what}");
        assert!(refused.body.contains("decision_point_unavailable"), "{refused:?}");
    }
    point.script(|_| {
        let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        Body::from_stream(never).into_response()
    });
    let began = Instant::now();
    assert_eq!(ada.get("/decided/a").await.status, 503);
    assert!(began.elapsed() >= Duration::from_secs(2), "the deadline ended it");
    assert_eq!(gateway.upstream.requests().len(), 0);
    point.script(permit_ada());
    assert_eq!(ada.get("/decided/a").await.status, 200, "no failure is cached");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permit_counts_its_own_time_and_in_an_outage_as_long_as_the_rule_says() {
    let point = DecisionPoint::start().await;
    let gateway = point.gateway("decide_stale = 600\n").await;
    let (mut ada, mut bob) = (person(&gateway, "ada-1").await, person(&gateway, "bob-2").await);
    assert_eq!(ada.get("/decided/a").await.status, 200);
    assert_eq!(bob.get("/decided/a").await.status, 403);
    point.script(|_| StatusCode::BAD_GATEWAY.into_response());
    gateway.stack.clock.advance_ms(59_000);
    assert_eq!(
        (
            ada.get("/decided/a").await.status,
            bob.get("/decided/a").await.status
        ),
        (200, 403)
    );
    assert_eq!(point.asked().len(), 2);
    gateway.stack.clock.advance_ms(2_000);
    assert_eq!(
        (
            ada.get("/decided/a").await.status,
            bob.get("/decided/a").await.status
        ),
        (200, 503)
    );
    assert_eq!(point.asked().len(), 4);
    gateway.stack.clock.advance_ms(600_000);
    assert_eq!(ada.get("/decided/a").await.status, 503);
    point.script(|_| json_answer(json!({"decision": false}), ""));
    assert_eq!(ada.get("/decided/a").await.status, 403);
    point.script(|_| StatusCode::BAD_GATEWAY.into_response());
    assert_eq!(
        ada.get("/decided/a").await.status,
        503,
        "a denial ends the permit"
    );
}
