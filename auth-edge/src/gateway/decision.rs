//! Asks a policy decision point whether a request may pass (OpenID AuthZEN Authorization API 1.0).
//!
//! Invariants
//! - A request passes only by `"decision": true`. Without a readable answer in time it does not pass: 503.
//! - An answer counts again only for the same question, and only for the time that its `Cache-Control` allows.
//!   A permit counts longer while the decision point does not answer, if the rule says so (`decide_stale`).
//! - Memory is bounded: an answer has a largest size, and the cache keeps no text of an answer but its reason.

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use prometheus::IntCounterVec;
use quick_cache::sync::Cache;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use url::Url;

use super::bearer::digest::digest_of;
use crate::gateway::Gateway;
use crate::http::errors::HttpError;
use crate::route_table::Route;
use crate::route_table::decision::DecisionRule;
use crate::route_table::principal::Principal;

/// The longest wait for an answer. A request waits for it, so it is shorter than a person's patience.
const DEADLINE: Duration = Duration::from_secs(2);

/// The largest answer in bytes: decisions with explanations.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The longest time an answer counts, even if the decision point allows more.
const AGE_MAX: Duration = Duration::from_secs(300);

/// Cached answers: a few megabytes.
const ANSWERS_MAX: usize = 16_384;

/// The longest reason in bytes.
const REASON_BYTES_MAX: usize = 64;

/// The request that a question is about.
#[derive(Clone, Copy)]
pub(super) struct AskedRequest<'a> {
    /// The method; `None` if the proxy does not send it.
    pub(super) method: Option<&'a Method>,
    /// Scheme and host, as the browser names them.
    pub(super) origin: &'a str,
    /// The path.
    pub(super) path: &'a str,
    /// The client's address.
    pub(super) client: IpAddr,
}

/// Answers of decision points.
pub(crate) struct Decisions {
    /// Created by the first question, so that it takes no memory without decision points.
    answers: LazyLock<Cache<[u8; 32], Answer>>,
    counted: IntCounterVec,
}

/// A cached answer.
#[derive(Clone)]
struct Answer {
    verdict: Verdict,
    until_ms: u64,
    stale_until_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Permit,
    Deny { reason: Option<String> },
}

/// Why a decision point gave no answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("the decision point did not answer within {} s", DEADLINE.as_secs())]
    Late,
    #[error("the file of decide_authorization_file cannot be read")]
    Authorization(#[source] std::io::Error),
    #[error("the question cannot be sent")]
    Question(#[source] axum::http::Error),
    #[error("the decision point cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the decision point answered with status {0}")]
    Status(StatusCode),
    #[error(
        "the answer cannot be read: it breaks off, is no JSON, lacks a decision, or has more than 64 KiB"
    )]
    Unreadable,
}

impl Decisions {
    /// Starts without answers.
    pub(crate) fn new(counted: IntCounterVec) -> Self {
        Self {
            answers: LazyLock::new(|| Cache::new(ANSWERS_MAX)),
            counted,
        }
    }

    fn count(&self, result: &str) {
        self.counted.with_label_values(&[result]).inc();
    }
}

/// Asks the decision point of a rule.
///
/// # Errors
/// The decision point denies the request, or gives no answer.
pub(super) async fn ask(
    gateway: &Gateway,
    (route, rule): (&Route, &DecisionRule),
    who: Principal<'_>,
    asked: AskedRequest<'_>,
) -> Result<(), HttpError> {
    let (decisions, now_ms) = (&gateway.decisions, gateway.clock.now_ms());
    let question = question(route, rule, who, asked).to_string();
    let key = digest_of(&["vestibule decision v1", rule.url.as_str(), &question]);
    let cached = decisions.answers.get(&key);
    if let Some(answer) = cached.as_ref().filter(|answer| now_ms < answer.until_ms) {
        decisions.count("cached");
        return judge(route, &answer.verdict);
    }
    let answered = timeout(DEADLINE, fetch(gateway, rule, question)).await;
    let failure = match answered.unwrap_or(Err(NoAnswer::Late)) {
        Ok((verdict, age)) => {
            decisions.count(if verdict == Verdict::Permit {
                "permit"
            } else {
                "deny"
            });
            let stale = if verdict == Verdict::Permit {
                rule.stale
            } else {
                Duration::ZERO
            };
            let until_ms = now_ms.saturating_add(millis(age));
            let answer = Answer {
                verdict: verdict.clone(),
                until_ms,
                stale_until_ms: now_ms.saturating_add(millis(age.max(stale))),
            };
            // Also replaces an earlier permit, which must not count any more.
            decisions.answers.insert(key, answer);
            return judge(route, &verdict);
        }
        Err(failure) => failure,
    };
    let is_stale = |answer: &Answer| answer.verdict == Verdict::Permit && now_ms < answer.stale_until_ms;
    let is_permitted = cached.as_ref().is_some_and(is_stale);
    decisions.count(if is_permitted { "stale" } else { "unavailable" });
    tracing::warn!(
        http.route = &*route.name,
        error = &failure as &dyn std::error::Error,
        permitted = is_permitted,
        "the decision point gave no answer"
    );
    if is_permitted {
        Ok(())
    } else {
        Err(HttpError::DecisionPointDown)
    }
}

fn judge(route: &Route, verdict: &Verdict) -> Result<(), HttpError> {
    let Verdict::Deny { reason } = verdict else {
        return Ok(());
    };
    tracing::info!(
        http.route = &*route.name,
        reason,
        "the decision point denied a request"
    );
    Err(HttpError::Denied {
        reason: reason.clone(),
        message: route.denied_message.clone(),
    })
}

/// The question, as section 6.1 of the API describes it, or section 7.1 for several actions.
fn question(route: &Route, rule: &DecisionRule, who: Principal<'_>, asked: AskedRequest<'_>) -> Value {
    let claims: Map<String, Value> = rule
        .claims
        .iter()
        .filter_map(|name| Some((name.clone(), who.claims.get(name)?.clone())))
        .collect();
    let method = asked.method.map_or("", Method::as_str);
    let mut question = json!({
        "subject": {
            "type": "identity",
            "id": who.subject.or(who.client_id).unwrap_or_default(),
            "properties": { "issuer": who.issuer, "client_id": who.client_id, "claims": claims },
        },
        "resource": {
            "type": "route",
            "id": &*route.name,
            "properties": { "origin": asked.origin, "path": asked.path },
        },
        "context": { "method": method, "ip": asked.client },
    });
    match rule.actions.as_slice() {
        [] => question["action"] = json!({ "name": method }),
        [action] => question["action"] = json!({ "name": action }),
        actions => {
            let each = |action: &String| json!({ "action": { "name": action } });
            question["evaluations"] = actions.iter().map(each).collect();
            question["options"] = json!({ "evaluations_semantic": "deny_on_first_deny" });
        }
    }
    question
}

/// The endpoint below the address of the decision point (section 10.1).
fn endpoint(rule: &DecisionRule) -> Url {
    let name = if rule.actions.len() > 1 {
        "evaluations"
    } else {
        "evaluation"
    };
    let mut url = rule.url.clone();
    url.set_path(&format!("{}/access/v1/{name}", url.path().trim_end_matches('/')));
    url
}

/// The decision point's verdict, and how long it counts.
async fn fetch(
    gateway: &Gateway,
    rule: &DecisionRule,
    question: String,
) -> Result<(Verdict, Duration), NoAnswer> {
    let mut request = Request::post(endpoint(rule).as_str()).header(header::CONTENT_TYPE, "application/json");
    if let Some(file) = &rule.authorization_file {
        let value = tokio::fs::read_to_string(file).await;
        request = request.header(
            header::AUTHORIZATION,
            value.map_err(NoAnswer::Authorization)?.trim(),
        );
    }
    let request = request.body(Body::from(question)).map_err(NoAnswer::Question)?;
    let answer = gateway.proxy.ask(request).await;
    let (head, body) = answer
        .map_err(|error| NoAnswer::Unreachable(error.into()))?
        .into_parts();
    // A redirect is no answer: another server would decide.
    if head.status != StatusCode::OK {
        return Err(NoAnswer::Status(head.status));
    }
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|_unreadable| NoAnswer::Unreadable)?.to_bytes();
    let answer: Value = serde_json::from_slice(&body).map_err(|_unreadable| NoAnswer::Unreadable)?;
    let verdict = verdict(rule, &answer).ok_or(NoAnswer::Unreadable)?;
    Ok((verdict, max_age(&head.headers)))
}

/// The verdict of an answer; `None` if it lacks a decision.
fn verdict(rule: &DecisionRule, answer: &Value) -> Option<Verdict> {
    if rule.actions.len() < 2 {
        return decision(answer);
    }
    // A decision point may stop at the first denial (section 7.1.2.1).
    let all = answer["evaluations"].as_array()?;
    let mut permits = 0;
    for one in all {
        match decision(one)? {
            Verdict::Permit => permits += 1,
            denied @ Verdict::Deny { .. } => return Some(denied),
        }
    }
    (permits == rule.actions.len()).then_some(Verdict::Permit)
}

fn decision(answer: &Value) -> Option<Verdict> {
    if answer["decision"].as_bool()? {
        return Some(Verdict::Permit);
    }
    let plain = |text: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        (1..=REASON_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain)
    };
    let reason = answer["context"]["reason"].as_str().filter(plain);
    Some(Verdict::Deny {
        reason: reason.map(str::to_owned),
    })
}

/// The time for which an answer counts (RFC 9111, section 5.2.2).
fn max_age(headers: &axum::http::HeaderMap) -> Duration {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    let text: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    let text = text.join(",").to_ascii_lowercase();
    let mut age = Duration::ZERO;
    for directive in text.split(',').map(str::trim) {
        match directive.split_once('=') {
            Some(("max-age", secs)) => age = secs.parse().map(Duration::from_secs).unwrap_or_default(),
            None if matches!(directive, "no-store" | "no-cache") => return Duration::ZERO,
            _ => {}
        }
    }
    age.min(AGE_MAX)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::*;

    fn rule(actions: &[&str]) -> DecisionRule {
        DecisionRule {
            url: Url::parse("https://pdp.example/tenant/").unwrap(),
            actions: actions.iter().map(|action| (*action).to_owned()).collect(),
            claims: Vec::new(),
            authorization_file: None,
            stale: Duration::ZERO,
        }
    }

    #[test]
    fn only_a_decision_that_is_true_permits() {
        let denied = |reason: Option<&str>| Verdict::Deny {
            reason: reason.map(str::to_owned),
        };
        for (answer, expected) in [
            (json!({"decision": true}), Some(Verdict::Permit)),
            (json!({"decision": false}), Some(denied(None))),
            (
                json!({"decision": false, "context": {"reason": "policy_denied"}}),
                Some(denied(Some("policy_denied"))),
            ),
            (
                json!({"decision": false, "context": {"reason": "<b>no</b>"}}),
                Some(denied(None)),
            ),
            (json!({"decision": "true"}), None),
            (json!({"decision": 1}), None),
            (json!({}), None),
            (json!([true]), None),
        ] {
            assert_eq!(verdict(&rule(&[]), &answer), expected, "{answer}");
        }
    }

    #[test]
    fn several_actions_all_need_a_permit() {
        let two = rule(&["read", "audit"]);
        assert_eq!(
            endpoint(&two).as_str(),
            "https://pdp.example/tenant/access/v1/evaluations"
        );
        let (yes, no) = (json!({"decision": true}), json!({"decision": false}));
        for (evaluations, expected) in [
            (json!([yes, yes]), Some(Verdict::Permit)),
            (json!([yes, no]), Some(Verdict::Deny { reason: None })),
            (json!([no]), Some(Verdict::Deny { reason: None })),
            (json!([yes]), None),
            (json!([yes, yes, yes]), None),
            (json!([]), None),
        ] {
            assert_eq!(verdict(&two, &json!({ "evaluations": evaluations })), expected);
        }
        assert_eq!(verdict(&two, &yes), None, "the answer to one question");
    }

    #[test]
    fn an_answer_counts_as_long_as_it_says_and_no_longer_than_five_minutes() {
        for (value, secs) in [
            ("max-age=60", 60),
            ("private, MAX-AGE=60", 60),
            ("max-age=86400", 300),
            ("no-store, max-age=60", 0),
            ("no-cache", 0),
            ("max-age=-1", 0),
            ("s-maxage=60", 0),
            ("", 0),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(value));
            assert_eq!(max_age(&headers).as_secs(), secs, "{value}");
        }
    }
}
