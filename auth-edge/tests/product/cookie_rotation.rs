//! `EDGE_COOKIE_ROTATION`: the edge reissues the cookie; a later use of the old one shows a copy.

use futures_util::StreamExt as _;
use session_proto::client::WatchItem;
use session_proto::v1::{Cause, ListSessionsRequest, WatchSessionsRequest, session_event::Kind};

use crate::device_bound::device::Device;
use crate::grpc_web;
use crate::support::{Browser, NAVIGATION, Stack};

const ROTATES: (&str, &str) = ("EDGE_COOKIE_ROTATION", "300");
const INTERVAL_MS: u64 = 300_000;
const GRACE_MS: u64 = 60_000;

async fn stack() -> Stack {
    Stack::with(&[ROTATES]).await
}

async fn signed_in(stack: &Stack) -> Browser {
    let mut browser = stack.browser();
    browser.sign_in().await;
    browser
}

/// Uses the session. Returns the status, and whether there is a new cookie.
async fn used(browser: &mut Browser) -> (u16, bool) {
    let answer = browser.get("/api/auth/me").await;
    (answer.status, answer.set_cookie("session").is_some())
}

#[tokio::test]
async fn it_is_given_anew_when_it_is_due_and_used_and_lasts_as_long_as_its_session_can() {
    let stack = stack().await;
    let mut browser = stack.browser();
    let callback = browser.sign_in().await;
    let first = callback.set_cookie("session").unwrap().to_owned();
    assert!(first.ends_with("Max-Age=604800"), "use renews nothing: {first}");
    stack.clock.advance_ms(INTERVAL_MS - 1);
    assert_eq!(
        used(&mut browser).await,
        (200, false),
        "not due, though the session rolled"
    );
    stack.clock.advance_ms(1);
    let status = browser.get("/api/auth/status").await;
    assert_eq!(
        (status.status, status.set_cookies().len()),
        (200, 0),
        "only a use"
    );
    let answer = browser.get("/api/auth/me").await;
    let line = answer.set_cookie("session").unwrap();
    let pair = line.split(';').next().unwrap();
    assert!(pair.len() + "__Host-".len() <= 120, "{pair}");
    assert_ne!(pair, first.split(';').next().unwrap());
    let max_age: u64 = line.split_once("Max-Age=").unwrap().1.parse().unwrap();
    assert!((604_800 - 301..=604_800).contains(&max_age), "{line}");

    for _ in 0..5 {
        assert_eq!(used(&mut browser).await, (200, false), "it counts from now on");
        stack.clock.advance_ms(INTERVAL_MS);
        assert_eq!(used(&mut browser).await, (200, true));
    }
}

#[tokio::test]
async fn a_page_that_keeps_its_session_by_grpc_web_is_given_a_new_cookie_too() {
    let stack = stack().await;
    let mut browser = signed_in(&stack).await;
    let mut copy = browser.clone();
    stack.clock.advance_ms(INTERVAL_MS - 1);
    assert_eq!(kept(&mut browser).await, ("0".to_owned(), false));
    stack.clock.advance_ms(1);
    assert_eq!(kept(&mut browser).await, ("0".to_owned(), true));
    assert_eq!(kept(&mut browser).await, ("0".to_owned(), false), "it counts");
    stack.clock.advance_ms(GRACE_MS);
    assert_eq!(kept(&mut copy).await, ("5".to_owned(), false), "a copy");
    assert_eq!(kept(&mut browser).await, ("5".to_owned(), false));
}

/// Uses the session as a web app page does. Returns the call's status, and whether there is a new cookie.
async fn kept(browser: &mut Browser) -> (String, bool) {
    let own_page = [("x-csrf", "1"), ("sec-fetch-site", "same-origin")];
    let answer = grpc_web::call(browser, "RollCurrentSession", &own_page).await;
    let in_trailers = answer.body.split_once("grpc-status:");
    let in_trailers = in_trailers.map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect());
    let status = in_trailers.unwrap_or_else(|| answer.header("grpc-status").to_owned());
    (status, answer.set_cookie("session").is_some())
}

#[tokio::test]
async fn a_check_gives_a_new_cookie_only_for_what_is_answered_soon() {
    let stack = Stack::with(&[
        ROTATES,
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
        ("EDGE_SESSION_CACHE_SECS", "15"),
    ])
    .await;
    let browser = signed_in(&stack).await;
    stack.clock.advance_ms(INTERVAL_MS);
    for (method, is_given) in [
        ("POST", false),
        ("PUT", false),
        ("PATCH", false),
        ("DELETE", false),
        ("", false),
        ("GET", true),
        ("HEAD", true),
        ("OPTIONS", true),
    ] {
        let told: Vec<_> = [("x-forwarded-uri", "/a"), ("x-forwarded-method", method)]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let answer = browser.clone().get_with("/api/auth/check", &told).await;
        let is_new = answer.set_cookie("session").is_some();
        assert_eq!((answer.status, is_new), (200, is_given), "{method}");
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_costs_nothing() {
    let stack = stack().await;
    let mut browser = signed_in(&stack).await;
    stack.clock.advance_ms(INTERVAL_MS);
    for _ in 0..20 {
        let kept = browser.jar.clone();
        assert_eq!(used(&mut browser).await, (200, true));
        browser.jar = kept; // it never arrived
        stack.clock.advance_ms(10 * GRACE_MS);
    }
    assert_eq!(used(&mut browser).await, (200, true));
    assert_eq!(used(&mut browser).await, (200, false));
}

#[tokio::test]
async fn an_old_cookie_is_good_for_requests_on_their_way_and_then_ends_the_session_for_both() {
    let stack = stack().await;
    let mut watch = stack.sessions.client().watch(WatchSessionsRequest::default());
    assert_eq!(watch.next().await, Some(WatchItem::Connected));
    let mut browser = signed_in(&stack).await;
    let mut copy = browser.clone();
    stack.clock.advance_ms(INTERVAL_MS);
    assert_eq!(used(&mut browser).await, (200, true));
    assert_eq!(
        used(&mut copy).await,
        (200, true),
        "the new one has not been used"
    );
    let mut late = browser.clone();
    late.jar = copy.jar.clone();
    assert_eq!(used(&mut browser).await, (200, false));
    stack.clock.advance_ms(GRACE_MS - 1);
    assert_eq!(
        used(&mut late).await,
        (200, false),
        "both were given for the same one: nobody knows yet"
    );
    stack.clock.advance_ms(1);
    assert_eq!(used(&mut browser).await, (200, false));
    assert_eq!(
        used(&mut late).await,
        (200, false),
        "the other one is used for the first time"
    );
    assert_eq!(used(&mut browser).await, (204, false), "two browsers have it");
    assert_eq!(used(&mut late).await, (204, false));
    loop {
        let item = watch.next().await.unwrap();
        if let WatchItem::Event(event) = item
            && event.kind() == Kind::Ended
        {
            assert_eq!(event.cause(), Cause::Theft);
            break;
        }
    }
}

#[tokio::test]
async fn the_next_sign_in_of_the_person_is_told() {
    let stack = stack().await;
    let mut browser = signed_in(&stack).await;
    let mut copy = browser.clone();
    stack.clock.advance_ms(INTERVAL_MS);
    used(&mut browser).await;
    used(&mut browser).await;
    stack.clock.advance_ms(GRACE_MS);
    assert_eq!(used(&mut copy).await, (204, false));
    let ended_at = stack.clock_secs();
    assert_eq!(used(&mut browser).await, (204, false));
    stack.clock.advance_ms(1_000);
    browser.sign_in().await;
    let me = browser.get("/api/auth/me").await.json();
    let list = ListSessionsRequest {
        issuer: stack.provider.issuer().to_owned(),
        subject: me["sub"].as_str().unwrap().to_owned(),
        ..ListSessionsRequest::default()
    };
    let listed = stack
        .sessions
        .client()
        .list_sessions(list)
        .await
        .unwrap()
        .sessions;
    let told: Vec<_> = listed.iter().filter_map(|session| session.theft_at).collect();
    assert_eq!(
        (listed.len(), told.len(), told[0].seconds),
        (1, 1, i64::try_from(ended_at).unwrap())
    );
}

#[tokio::test]
async fn every_use_that_is_due_is_offered_a_cookie_of_its_own_so_that_nobody_takes_them_all() {
    let stack = Stack::with(&[ROTATES, ("EDGE_SESSION_CACHE_SECS", "15")]).await;
    let mut browser = signed_in(&stack).await;
    stack.clock.advance_ms(INTERVAL_MS);
    let mut thief = browser.clone();
    let mut offers = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let mut tab = thief.clone();
        assert_eq!(used(&mut tab).await, (200, true));
        offers.insert(tab.jar["session"].clone());
    }
    assert_eq!(offers.len(), 20, "no two are the same");
    // The thief uses no new cookie. The user's browser does, and the edge detects the copy of the old one.
    assert_eq!(used(&mut browser).await, (200, true));
    assert_eq!(used(&mut browser).await, (200, false));
    stack.clock.advance_ms(GRACE_MS);
    assert_eq!(used(&mut thief).await.0, 204);
    assert_eq!(used(&mut browser).await.0, 204, "it ends for both");
}

#[tokio::test]
async fn every_edge_goes_by_the_generation_that_another_one_gave() {
    let stack = stack().await;
    let mut here = signed_in(&stack).await;
    let mut beside = stack.beside().await;
    let copy = here.jar.clone();
    stack.clock.advance_ms(INTERVAL_MS);
    assert_eq!(used(&mut here).await, (200, true));
    beside.jar = here.jar.clone();
    assert_eq!(used(&mut beside).await, (200, false), "its first use, elsewhere");
    assert_eq!(used(&mut here).await, (200, false));
    stack.clock.advance_ms(GRACE_MS);
    beside.jar = copy;
    assert_eq!(used(&mut beside).await, (204, false));
    assert_eq!(used(&mut here).await, (204, false));
}

#[tokio::test]
async fn while_the_session_service_is_away_nobody_is_signed_out_and_nothing_is_lost() {
    let stack = stack().await;
    let mut browser = signed_in(&stack).await;
    stack.clock.advance_ms(INTERVAL_MS);
    assert_eq!(used(&mut browser).await, (200, true));
    stack.sessions.stop().await;
    assert_eq!(used(&mut browser).await, (503, false));
    stack.sessions.start_again().await;
    assert_eq!(used(&mut browser).await, (200, false));
}

#[tokio::test]
async fn a_generation_that_was_changed_is_no_cookie_of_ours() {
    let stack = stack().await;
    let mut browser = signed_in(&stack).await;
    let first = browser.jar["session"].clone();
    stack.clock.advance_ms(INTERVAL_MS);
    used(&mut browser).await;
    let given = browser.jar["session"].clone();
    let parts: Vec<&str> = given.split('.').collect();
    let signature_of_first = first.split('.').next_back().unwrap();
    for forged in [
        format!("{}.{}", parts[0], parts[2]),
        format!("{}.{}.{signature_of_first}", parts[0], parts[1]),
        format!("{}.{}.{}", parts[0], "A".repeat(22), parts[2]),
        format!("{}.{}A.{}", parts[0], parts[1], parts[2]),
        format!("{}..{}", parts[0], parts[2]),
        format!("{given}.{}", parts[2]),
    ] {
        browser.jar.insert("session".to_owned(), forged.clone());
        assert_eq!(used(&mut browser).await, (204, false), "{forged}");
    }
    browser.jar.insert("session".to_owned(), given);
    assert_eq!(used(&mut browser).await, (200, false), "forgeries end nothing");
}

#[tokio::test]
async fn a_session_that_is_bound_to_a_device_does_not_rotate() {
    let stack = Stack::with(&[ROTATES, ("EDGE_BASE_URL", "https://app.example.test")]).await;
    let mut browser = stack.browser();
    let device = Device::bind(&mut browser).await;
    for _ in 0..3 {
        stack.clock.advance_ms(INTERVAL_MS);
        device.refresh(&mut browser).await;
        let answer = browser.get("/api/auth/me").await;
        assert_eq!(
            (answer.status, answer.set_cookies().len()),
            (200, 0),
            "{answer:?}"
        );
    }
    let mut unbound = stack.browser();
    unbound.sign_in().await;
    stack.clock.advance_ms(INTERVAL_MS);
    let answer = unbound.get_with("/api/auth/me", &NAVIGATION).await;
    assert!(answer.set_cookie("__Host-session").is_some(), "{answer:?}");
}

#[tokio::test]
async fn an_edge_that_does_not_rotate_renews_the_generation_that_is_shown() {
    let stack = stack().await;
    let mut browser = signed_in(&stack).await;
    let mut off = stack
        .beside_with_settings(|settings| settings.cookie_rotation = None)
        .await;
    stack.clock.advance_ms(INTERVAL_MS);
    used(&mut browser).await;
    used(&mut browser).await;
    off.jar = browser.jar.clone();
    stack.clock.advance_ms(INTERVAL_MS / 2);
    assert_eq!(used(&mut off).await, (200, true), "the session rolls");
    assert_eq!(
        off.jar["session"], browser.jar["session"],
        "the same cookie, for longer"
    );
    stack.clock.advance_ms(INTERVAL_MS / 2 - 1);
    browser.jar = off.jar.clone();
    assert_eq!(used(&mut browser).await, (200, false));
}
