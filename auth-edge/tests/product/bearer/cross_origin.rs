//! Clients with tokens in a browser at another origin: every refusal is readable, without cookies.

use reqwest::Method;
use scripted_provider::Endpoint;
use serde_json::json;

use super::{Machines, challenges};
use crate::support::Answer;

const FOREIGN: [(&str, &str); 3] = [
    ("origin", "https://swagger.example"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "cors"),
];

/// Whether a script of another origin can read the answer and the headers it needs.
fn is_readable(answer: &Answer) -> bool {
    assert_eq!(
        answer.header("access-control-allow-credentials"),
        "",
        "{answer:?}"
    );
    let exposed = answer
        .header("access-control-expose-headers")
        .to_ascii_lowercase();
    let all = ["www-authenticate", "dpop-nonce", "retry-after"];
    answer.header("access-control-allow-origin") == "*" && all.iter().all(|name| exposed.contains(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_token_and_a_cookie_is_invited_by_any_method() {
    let machines = Machines::start().await;
    let mut client = machines.stack.browser();
    for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
        let answer = client.send(method.clone(), "/orders/7", &FOREIGN, None).await;
        assert_eq!(answer.status, 401, "{method}: {answer:?}");
        assert!(
            challenges(&answer)[0].contains("resource_metadata="),
            "{answer:?}"
        );
        assert!(is_readable(&answer), "{method}: {answer:?}");
    }
    let mut person = machines.person().await;
    let answer = person.send(Method::POST, "/orders/7", &FOREIGN, None).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(!is_readable(&answer), "{answer:?}");
    let answer = client.send(Method::POST, "/people/7", &FOREIGN, None).await;
    assert_eq!(answer.status, 403, "no token would help there: {answer:?}");
    assert!(!is_readable(&answer), "{answer:?}");
    assert_eq!(machines.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_outages_can_be_read_and_the_upstream_decides_about_its_answers() {
    let machines = Machines::with(
        "[[route]]\npath = \"/gone/*\"\nguard = \"api\"\nupstream = \"http://127.0.0.1:9\"\n[route.bearer]\n\
         audience = \"https://orders.example\"\n",
        &[],
    )
    .await;
    let bearer = |token: &str| format!("Bearer {token}");
    let (good, poor) = (machines.token(json!({})), machines.token(json!({ "scope": "" })));
    let mut client = machines.stack.browser();
    for (path, authorization, status) in [
        ("/orders/7", bearer("forged"), 401),
        ("/bound/7", bearer(&good), 401),
        ("/orders/7", bearer(&poor), 403),
        ("/orders/7", "Bearer".to_owned(), 400),
        ("/gone/7", bearer(&good), 502),
    ] {
        let headers = [&FOREIGN[..], &[("authorization", authorization.as_str())]].concat();
        let answer = client.get_with(path, &headers).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(is_readable(&answer), "{path}: {answer:?}");
    }
    let authorization = bearer(&good);
    let headers = [&FOREIGN[..], &[("authorization", authorization.as_str())]].concat();
    let answer = client.get_with("/orders/7", &headers).await;
    assert_eq!((answer.status, is_readable(&answer)), (200, false), "{answer:?}");

    let mut limited = 0;
    for number in 0..200 {
        let authorization = format!("Bearer unknown-{number}");
        let headers = [&FOREIGN[..], &[("authorization", authorization.as_str())]].concat();
        let answer = client.get_with("/opaque/a", &headers).await;
        assert!(is_readable(&answer), "{answer:?}");
        limited += u32::from(answer.status == 429);
    }
    assert!(limited > 0, "the limit of one address was not reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_introspection_that_is_down_can_be_read() {
    let machines = Machines::start().await;
    let opaque = machines.opaque();
    machines.provider().script(|script| {
        script
            .answers
            .insert(Endpoint::Introspection, scripted_provider::Answer::status(500));
    });
    let authorization = format!("Bearer {opaque}");
    let headers = [&FOREIGN[..], &[("authorization", authorization.as_str())]].concat();
    let answer = machines.stack.browser().get_with("/opaque/a", &headers).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(is_readable(&answer), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_another_proxy_answers_alike() {
    let checks = "[[check]]\nhost = \"orders.localhost\"\nguard = \"api\"\n[check.bearer]\n\
         [[check]]\nhost = \"people.localhost\"\nguard = \"api\"\n";
    let machines = Machines::with(checks, &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let ask = |host: &'static str, more: Vec<(&'static str, &'static str)>| {
        let mut client = machines.stack.browser();
        async move {
            let about = [
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", host),
                ("x-forwarded-method", "POST"),
                ("x-forwarded-uri", "/orders"),
            ];
            let headers = [&FOREIGN[..], &about, &more].concat();
            client.get_with("/api/auth/check", &headers).await
        }
    };
    for more in [vec![], vec![("authorization", "Bearer forged")]] {
        let answer = ask("orders.localhost", more).await;
        assert_eq!((answer.status, is_readable(&answer)), (401, true), "{answer:?}");
    }
    let answer = ask("orders.localhost", vec![("cookie", "session=x")]).await;
    assert_eq!((answer.status, is_readable(&answer)), (401, false), "{answer:?}");
    let answer = ask("people.localhost", vec![]).await;
    assert_eq!((answer.status, is_readable(&answer)), (401, false), "{answer:?}");
}
