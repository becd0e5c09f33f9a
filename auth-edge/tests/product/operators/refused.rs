//! Calls that the edge refuses: none reaches the session service.

use serde_json::json;
use session_proto::error::{metadata_of, reason_of};
use session_proto::v1::session_filter::By;
use session_proto::v1::{
    EndFoundSessionsRequest, EndFoundSessionsResponse, ErrorReason, ListEndingsRequest, ListEndingsResponse,
    ListProvidersRequest, ListProvidersResponse, SearchSessionsRequest,
};
use tonic::{Code, Status};

use super::{Console, ISSUER_OF_B, OURS, Page, RULE, filter, operator, search, subject};
use crate::device_bound::device::Device;
use crate::support::{Browser, Log};

/// The status of each call about this issuer.
async fn every_call(page: &Page, issuer: &str) -> Vec<Option<Status>> {
    let end = EndFoundSessionsRequest {
        operator: operator("ticket 7"),
        filter: filter(issuer, subject("person-1")),
        ..EndFoundSessionsRequest::default()
    };
    let list = ListEndingsRequest {
        operator: operator("ticket 7"),
        issuer: issuer.to_owned(),
        subject: "person-1".to_owned(),
    };
    let watch = session_proto::v1::WatchActivityRequest {
        operator: operator("ticket 7"),
        issuer: issuer.to_owned(),
    };
    let watched = page
        .watch(&watch)
        .await
        .next::<session_proto::v1::Activity>()
        .await;
    vec![
        page.search(&search(issuer, subject("person-1"))).await.err(),
        page.call::<EndFoundSessionsResponse>("EndFoundSessions", &end)
            .await
            .err(),
        page.call::<ListEndingsResponse>("ListEndings", &list).await.err(),
        watched.err(),
    ]
}

#[tokio::test]
async fn a_person_without_the_right_gets_the_same_words_whatever_is_missing() {
    let log = Log::begin();
    let rule = "[operator]\nclaims = { groups = \"support\" }\norganization = \"org_1\"\nmax_age = 60\n\
                allow = { emails = [\"olga@a.example\"], unverified_emails = true }\n";
    let console = Console::start(rule).await;
    let right = json!({ "sub": "olga", "groups": ["support"], "org_id": "org_1", "email": "olga@a.example" });
    let search = console.search(subject("person-1"));
    assert!(console.page(right.clone()).await.search(&search).await.is_ok());
    let mut words = Vec::new();
    for (name, value) in [
        ("groups", json!(["sales"])),
        ("groups", json!("support-emeritus")),
        ("org_id", json!("org_2")),
        ("email", json!("eve@a.example")),
    ] {
        let mut user = right.clone();
        user["sub"] = json!("eve");
        user[name] = value;
        let page = console.page(user).await;
        let providers = page.call::<ListProvidersResponse>("ListProviders", &ListProvidersRequest {});
        let refused = providers.await.err();
        for status in every_call(&page, console.issuer())
            .await
            .into_iter()
            .chain([refused])
        {
            let status = status.expect("refused");
            assert_eq!(status.code(), Code::PermissionDenied);
            assert_eq!(reason_of(&status), Some(ErrorReason::ErrCallerNotAllowed));
            assert!(metadata_of(&status).is_empty());
            words.push(status.message().to_owned());
        }
    }
    // An old sign-in comes after the right: a person without it is not sent to the login.
    let eve = console.page(json!({ "sub": "eve" })).await;
    console.stack.clock.advance_ms(61_000);
    let status = eve.search(&search).await.unwrap_err();
    words.push(status.message().to_owned());
    words.dedup();
    assert_eq!(words.len(), 1, "{words:?}");
    assert_eq!(console.service.operators().len(), 1, "the operator's own");
    log.wait_for(&[
        "api.call",
        "failure",
        "reason=\"right\"",
        "eve",
        "SearchSessions",
        "PERMISSION_DENIED",
    ])
    .await;
}

#[tokio::test]
async fn an_operator_of_one_provider_cannot_reach_another_ones_people_by_any_filter() {
    let log = Log::begin();
    let console = Console::start(RULE).await;
    let olga = console.operator().await;
    let text = || "x".to_owned();
    for by in [
        By::Handle(text()),
        By::Subject(text()),
        By::ProviderSid(text()),
        By::Email(text()),
        By::Address("10.0.0.0/8".to_owned()),
        By::Name(text()),
        By::Everyone(true),
    ] {
        for issuer in [
            ISSUER_OF_B,
            "",
            "https://unknown.example",
            &format!("{}/", console.issuer()),
        ] {
            let end = EndFoundSessionsRequest {
                operator: operator("ticket 7"),
                filter: filter(issuer, by.clone()),
                ..EndFoundSessionsRequest::default()
            };
            let ended = olga
                .call::<EndFoundSessionsResponse>("EndFoundSessions", &end)
                .await;
            for refused in [olga.search(&search(issuer, by.clone())).await.err(), ended.err()] {
                let reason = reason_of(&refused.expect("refused"));
                assert_eq!(reason, Some(ErrorReason::ErrCallerNotAllowed), "{issuer} {by:?}");
            }
        }
    }
    let without_filter = SearchSessionsRequest {
        operator: operator("ticket 7"),
        ..SearchSessionsRequest::default()
    };
    assert!(olga.search(&without_filter).await.is_err());
    for refused in every_call(&olga, ISSUER_OF_B).await {
        assert_eq!(refused.expect("refused").code(), Code::PermissionDenied);
    }
    assert!(console.service.operators().is_empty());
    log.wait_for(&["api.call", "reason=\"provider\"", "olga"]).await;
}

#[tokio::test]
async fn a_call_from_elsewhere_is_403_and_reaches_nothing() {
    let console = Console::start(RULE).await;
    let olga = console.operator().await;
    let before = console.stack.sessions.calls();
    for headers in [
        &[OURS[0]][..],
        &[OURS[1]],
        &[OURS[0], ("sec-fetch-site", "same-site")],
        &[OURS[0], OURS[1], ("origin", "https://evil.example")],
    ] {
        let search = console.search(subject("person-1"));
        let answer = olga.send("SearchSessions", &search, headers).await;
        assert_eq!(answer.status(), 403, "{headers:?}");
        assert_eq!(answer.headers()["grpc-status"], "7");
    }
    assert_eq!(console.stack.sessions.calls(), before);
}

#[tokio::test]
async fn without_a_session_no_call_is_answered() {
    let console = Console::start(RULE).await;
    let page = Page::of(console.stack.address(), String::new());
    for refused in every_call(&page, console.issuer()).await {
        assert_eq!(reason_of(&refused.unwrap()), Some(ErrorReason::ErrMissingSession));
    }
}

#[tokio::test]
async fn an_old_or_weak_sign_in_names_the_parameters_of_the_next_one() {
    let log = Log::begin();
    let console = Console::start(&format!("{RULE}max_age = 60\nacr = [\"gold\"]\n")).await;
    let user = json!({ "sub": "olga", "groups": ["support"], "acr": "gold" });
    let olga = console.page(user.clone()).await;
    let search = console.search(subject("person-1"));
    assert!(olga.search(&search).await.is_ok());
    let weak = console
        .page(json!({ "sub": "olga", "groups": ["support"], "acr": "bronze" }))
        .await;
    console.stack.clock.advance_ms(61_000);
    for page in [olga, weak] {
        let status = page.search(&search).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        assert_eq!(reason_of(&status), Some(ErrorReason::ErrFailedRefreshGrant));
        let named = metadata_of(&status);
        let named = ["max_age", "acr_values", "connection"].map(|name| named[name].as_str());
        assert_eq!(named, ["60", "gold", "a"]);
    }
    assert!(
        console.page(user).await.search(&search).await.is_ok(),
        "after a new sign-in"
    );
    log.wait_for(&["api.call", "reason=\"sign_in\"", "FAILED_PRECONDITION"])
        .await;
}

/// The `grpc-status` of a call by a browser with its own cookies.
async fn listed(browser: &mut Browser) -> String {
    let headers = [("content-type", "application/grpc-web+proto"), OURS[0], OURS[1]];
    let path = "/session.v1.OperatorSessionService/ListProviders";
    let answer = browser.post(path, &headers, "\0\0\0\0\0").await;
    match answer.header("grpc-status") {
        "" if answer.body.contains("grpc-status:0") => "0".to_owned(),
        status => status.to_owned(),
    }
}

#[tokio::test]
async fn the_copied_cookie_of_a_bound_session_admits_nobody_and_an_unbound_one_too() {
    let rule = "[operator]\nclaims = { sub = \"alice\" }\ndevice_bound = true\n";
    let console = Console::with(rule, &[("EDGE_BASE_URL", "https://app.example.test")]).await;
    let mut unbound = console.stack.browser();
    unbound.sign_in().await;
    assert_eq!(listed(&mut unbound).await, "9");
    let mut browser = console.stack.browser();
    Device::bind(&mut browser).await;
    assert_eq!(listed(&mut browser).await, "0");
    let mut thief = browser.clone();
    thief.jar.remove("__Host-session_bound");
    console.stack.clock.advance_ms(30_000);
    assert_eq!(listed(&mut thief).await, "5");
    assert_eq!(listed(&mut browser).await, "0");
}

#[tokio::test]
async fn a_purpose_is_a_text_of_500_bytes_at_most() {
    let console = Console::start(RULE).await;
    let olga = console.operator().await;
    let long = "ü".repeat(250);
    for (purpose, is_taken) in [
        ("", false),
        ("  ", false),
        ("a\nb", false),
        ("a\u{7f}", false),
        ("a\u{85}", false),
        (&format!("{long}a"), false),
        (&long, true),
        ("ticket 7", true),
    ] {
        let search = SearchSessionsRequest {
            operator: operator(purpose),
            ..console.search(subject("person-1"))
        };
        let reason = olga
            .search(&search)
            .await
            .err()
            .and_then(|status| reason_of(&status));
        let expected = (!is_taken).then_some(ErrorReason::ErrInvalidArgument);
        assert_eq!(reason, expected, "{purpose:?}");
    }
    let without = SearchSessionsRequest {
        operator: None,
        ..console.search(subject("person-1"))
    };
    assert!(olga.search(&without).await.is_err());
    assert_eq!(console.service.operators().len(), 2);
}

#[tokio::test]
async fn a_message_of_17_kb_is_too_large() {
    let console = Console::start(RULE).await;
    let olga = console.operator().await;
    let status = olga
        .search(&console.search(By::Name("a".repeat(17 * 1024))))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    assert!(console.service.operators().is_empty());
}

#[tokio::test]
async fn without_a_rule_there_is_no_such_service() {
    let console = Console::start("").await;
    let olga = console.operator().await;
    let search = console.search(subject("person-1"));
    let answer = olga.send("SearchSessions", &search, &OURS).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["grpc-status"]),
        (404, &"12".parse().unwrap())
    );
    let mut browser = console.stack.browser();
    let plain = browser
        .get("/session.v1.OperatorSessionService/SearchSessions")
        .await;
    let unknown = browser.get("/api/auth/unknown").await;
    assert_eq!(
        (plain.status, plain.json()["error"].clone()),
        (404, unknown.json()["error"].clone())
    );
}
