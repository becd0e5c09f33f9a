//! A thousand people at once through one edge: each upstream call carries its own user's token.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use auth_edge::sessions::cookies::{CookieSettings, SameSite, SessionCookies, SessionId};
use auth_edge::sessions::keys::DerivedKeys;
use axum::response::IntoResponse as _;
use chassis::clock::Clock as _;
use chassis::secret::Secret;
use scripted_provider::Endpoint;
use serde_json::{Value, json};
use session_proto::timestamp;
use session_proto::v1::{CreateSessionRequest, TokenSet};

use crate::gateway::Gateway;
use crate::support::SECRET;

const PEOPLE: usize = 1_000;

/// Concurrent requests; more would only wait for the test's two cores.
const AT_ONCE: usize = 250;

/// The longest one person waits on a busy machine.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// One session per user, with an expired access token. Returns cookie values by subject.
async fn sessions(gateway: &Gateway) -> Vec<(String, String)> {
    let stack = &gateway.stack;
    let client = stack.sessions.client();
    let settings = CookieSettings {
        name: "session".to_owned(),
        secure: false,
        domain: None,
        same_site: SameSite::Lax,
        partitioned: false,
    };
    let cookies = SessionCookies::new(settings, DerivedKeys::new(&[Secret::new(SECRET.to_owned())]));
    let mut people = Vec::new();
    for number in 0..PEOPLE {
        let subject = format!("person-{number}");
        stack.provider.script(|script| script.sub.clone_from(&subject));
        let tokens = stack.provider.sign_in("openid profile");
        let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
        let user = json!({"sub": subject});
        let made = client
            .create_session(CreateSessionRequest {
                issuer: stack.provider.issuer().to_owned(),
                user: user.to_string(),
                tokens: Some(TokenSet {
                    access_token: text("access_token"),
                    refresh_token: text("refresh_token"),
                    scope: "openid profile".to_owned(),
                    expires_at: Some(timestamp::from_ms(stack.clock.now_ms())),
                    ..TokenSet::default()
                }),
                ..CreateSessionRequest::default()
            })
            .await
            .unwrap();
        let line = cookies
            .issue(
                &reqwest::header::HeaderMap::new(),
                &SessionId::parse(&made.session_id).unwrap(),
                60,
            )
            .unwrap();
        let pair = line.to_str().unwrap().split(';').next().unwrap().to_owned();
        people.push((subject, pair));
    }
    people
}

/// The upstream's answer; a busy machine may answer "later" first.
async fn echoed(request: &reqwest::RequestBuilder) -> Value {
    let until = Instant::now() + LONGEST_WAIT;
    loop {
        let answer = request.try_clone().unwrap().send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        if status == 503 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        assert_eq!(status, 200, "{text}");
        return serde_json::from_str(&text).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_people_at_once_each_bring_their_own_token() {
    let rule =
        "[[route]]\npath = \"/own/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\naccess_token = true\n";
    let gateway = Gateway::start(rule, &[]).await;
    gateway.upstream.answer_by(|seen| {
        let echoed = json!({"subject": seen.all("x-auth-subject"), "token": seen.all("authorization")});
        Some(axum::Json(echoed).into_response())
    });
    let people = sessions(&gateway).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let address = gateway.stack.address().to_owned();
    let mut token_of: HashMap<String, String> = HashMap::new();
    for round in 0..2 {
        let requests = people.iter().map(|(subject, cookie)| {
            let request = client
                .get(format!("http://{address}/own/a"))
                .header("cookie", cookie);
            async move { (subject.clone(), echoed(&request).await) }
        });
        use futures_util::StreamExt as _;
        let answers: Vec<(String, Value)> = futures_util::stream::iter(requests)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for (subject, echoed) in answers {
            assert_eq!(echoed["subject"], json!([subject]), "round {round}");
            let token = echoed["token"][0]
                .as_str()
                .unwrap()
                .strip_prefix("Bearer ")
                .unwrap();
            let issued = token_of
                .entry(subject.clone())
                .or_insert_with(|| token.to_owned());
            assert_eq!(issued, token, "{subject} in round {round}");
        }
    }
    assert_eq!(gateway.stack.provider.grants("refresh_token"), PEOPLE);
    // The provider itself names the owner of each token.
    let userinfo = gateway.stack.provider.url(Endpoint::Userinfo);
    for (subject, token) in &token_of {
        let answer = client.get(&userinfo).bearer_auth(token).send().await.unwrap();
        let echoed: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(echoed["sub"], json!(subject));
    }
    assert_eq!(token_of.len(), PEOPLE);
}
