//! A rejected sign-in shows the operator why: one record with the page's request ID, the reason and every
//! cause, and the same reason in the metric. The user sees none of it.

use scripted_provider::{Answer as Script, Endpoint, IdTokenShape, Script as Says};
use serde_json::json;

use crate::support::{Answer, Log, Stack};

/// The edge's only record of this refusal, found by the ID in the answer.
fn record(log: &Log, answer: &Answer) -> String {
    let text = log.text();
    let id = answer.header("x-request-id");
    let mut records = text
        .lines()
        // The session service's records have the same ID, but no step.
        .filter(|line| line.contains("outcome=\"failure\"") && line.contains("step=") && line.contains(id));
    let record = records.next().unwrap_or_else(|| panic!("{id} is not in {text}"));
    assert_eq!(records.next(), None, "one record");
    record.to_owned()
}

fn says(record: &str, step: &str, reason: &str) {
    assert!(
        record.contains(&format!("step=\"{step}\"")) && record.contains(&format!("reason=\"{reason}\"")),
        "{record}"
    );
}

type Case = (&'static str, &'static str, fn(&mut Says));

#[tokio::test]
async fn a_refused_callback_is_found_by_the_id_on_its_page_with_reason_and_causes() {
    let log = Log::begin();
    let stack = Stack::with(&[
        ("EDGE_USERINFO_AT_LOGIN", "always"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "RS256"),
    ])
    .await;
    let cases: [Case; 11] = [
        ("token_algorithm", "another algorithm", |script| {
            script.algorithm = "ES256";
        }),
        ("token_signature", "signature does not verify", |script| {
            script.id_token = IdTokenShape::BadSignature;
        }),
        ("token_audience", "aud is not this client alone", |script| {
            script.claims.insert("aud".into(), json!("another"));
        }),
        ("token_expired", "exp is absent or has passed", |script| {
            script.claims.insert("exp".into(), json!(1));
        }),
        (
            "client_refused",
            "OIDC_CLIENT_AUTH_METHOD=client_secret_post",
            |script| {
                let refusal = Script::json(401, &json!({ "error": "invalid_client" }));
                script.answers.insert(Endpoint::Token, refusal);
            },
        ),
        (
            "client_refused",
            "status 401: it rejects this client (check OIDC_CLIENT_ID",
            |script| {
                script.answers.insert(Endpoint::Token, Script::status(401));
            },
        ),
        (
            "client_refused",
            "status 403: it rejects this client (check OIDC_CLIENT_ID",
            |script| {
                let page = Script::text(403, "text/html", "<p>Forbidden");
                script.answers.insert(Endpoint::Token, page);
            },
        ),
        ("code_refused", "invalid_grant", |script| {
            let refusal = Script::json(400, &json!({ "error": "invalid_grant" }));
            script.answers.insert(Endpoint::Token, refusal);
        }),
        (
            "provider_answer",
            "token_endpoint answered with status 500",
            |script| {
                script.answers.insert(Endpoint::Token, Script::status(500));
            },
        ),
        ("userinfo_subject", "another subject", |script| {
            script.userinfo.insert("sub".into(), json!("mallory"));
        }),
        ("token_response", "no ID token", |script| {
            script.token.insert("id_token".into(), json!(null));
        }),
    ];
    for (reason, cause, misbehave) in cases {
        let counted = stack.counter("sign_in_refusals_total", reason);
        let mut browser = stack.browser();
        let callback = browser.until_callback("/api/auth/login").await;
        stack.provider.script(misbehave);
        let answer = browser.visit(&callback).await;
        stack.provider.reset();
        assert_eq!(answer.status, 400, "{reason}");
        let id = answer.header("x-request-id");
        assert!(answer.body.contains(id), "the page shows {id}");
        for kept in [reason, cause] {
            assert!(!answer.body.contains(kept), "the page says {kept}");
        }
        let record = record(&log, &answer);
        says(&record, "callback", reason);
        assert!(record.contains(cause), "{cause}: {record}");
        assert_eq!(
            stack.counter("sign_in_refusals_total", reason),
            counted + 1,
            "{reason}"
        );
    }
}

#[tokio::test]
async fn a_login_that_cannot_begin_says_why() {
    let log = Log::begin();
    let stack = Stack::start().await;
    let not_ours = stack
        .browser()
        .visit("/api/auth/login?iss=https://other.example")
        .await;
    says(&record(&log, &not_ours), "login", "unknown_issuer");
    let with_a_slash = format!("{}/", stack.provider.issuer());
    for said in ["https://other.example", &with_a_slash] {
        let stack = Stack::start().await;
        stack.provider.script(|script| {
            script.metadata.insert("issuer".into(), json!(said));
        });
        let answer = stack.browser().visit("/api/auth/login").await;
        assert_eq!(answer.status, 502);
        says(&record(&log, &answer), "login", "provider_issuer");
        assert!(
            answer.body.contains("tell the operator of this site"),
            "{}",
            answer.body
        );
        assert!(!answer.body.contains("right now"), "no promise: {}", answer.body);
    }
    let stack = Stack::start().await;
    stack.provider.stop();
    let answer = stack.browser().visit("/api/auth/login").await;
    let record = record(&log, &answer);
    says(&record, "login", "provider_unreachable");
    assert!(
        record.contains("Connection refused"),
        "down to the socket: {record}"
    );
}

#[tokio::test]
async fn a_refused_logout_token_says_why() {
    let log = Log::begin();
    let stack = Stack::start().await;
    let path = "/api/auth/backchannel-logout";
    for (body, reason) in [
        ("logout_token=e30.e30.", "token_algorithm"),
        ("logout_token=nonsense", "token_malformed"),
        ("other=x", "body"),
    ] {
        let answer = stack.browser().post(path, &[], body).await;
        assert_eq!(answer.status, 400);
        says(&record(&log, &answer), "logout_token", reason);
    }
    let token = stack
        .provider
        .logout_token(json!({ "sub": "alice", "sid": "sid-1" }));
    let body = format!("logout_token={token}");
    assert_eq!(stack.browser().post(path, &[], &body).await.status, 200);
    let again = stack.browser().post(path, &[], &body).await;
    says(&record(&log, &again), "logout_token", "token_replayed");
}

#[tokio::test]
async fn what_anybody_can_cause_is_counted_and_leaves_no_record_of_its_own() {
    let log = Log::begin();
    let stack = Stack::start().await;
    let image = [("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")];
    let answer = stack
        .browser()
        .get_with("/api/auth/callback?code=a", &image)
        .await;
    assert_eq!(answer.status, 403);
    assert_eq!(stack.counter("sign_in_refusals_total", "not_a_visit"), 1);
    let text = log.text();
    assert!(!text.contains("outcome=\"failure\""), "{text}");
    assert!(
        text.contains("reason=\"not_a_visit\""),
        "the access record says it: {text}"
    );
}

#[tokio::test]
async fn the_record_names_the_error_that_the_provider_answered_with() {
    let log = Log::begin();
    let stack = Stack::start().await;
    for (error, named, reason) in [
        ("invalid_scope", "invalid_scope", "provider_error"),
        ("invalid_request", "invalid_request", "provider_error"),
        ("access_denied", "access_denied", "denied"),
        ("login_required", "login_required", "interaction_needed"),
        ("made up%0Aevent=x", "another", "provider_error"),
    ] {
        let mut browser = stack.browser();
        let callback = browser.until_callback("/api/auth/login").await;
        let callback = callback.replace("code=", "error_description=secret+words&code=");
        let answer = browser.visit(&format!("{callback}&error={error}")).await;
        assert_eq!(answer.status, 400, "{error}");
        let record = record(&log, &answer);
        says(&record, "callback", reason);
        assert!(
            record.contains(&format!("provider.error=\"{named}\"")),
            "{record}"
        );
        assert!(
            !record.contains("secret words") && !answer.body.contains(named),
            "{record}"
        );
    }
    // Some providers lose the state.
    let answer = stack
        .browser()
        .visit("/api/auth/callback?error=invalid_scope")
        .await;
    let without_state = record(&log, &answer);
    says(&without_state, "callback", "state");
    assert!(
        without_state.contains("provider.error=\"invalid_scope\""),
        "{without_state}"
    );
    let answer = stack.browser().visit("/api/auth/callback?code=a").await;
    assert!(!record(&log, &answer).contains("provider.error"));
}
