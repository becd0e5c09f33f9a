//! Sessions bound to a device (W3C DBSC): a browser with the key continues, copied cookies do not.

mod demanded;
pub(crate) mod device;
mod several_edges;
mod stolen;

use auth_edge::sessions::device_binding::DeviceBound;
use serde_json::json;

use self::device::{Device, UNTIL_RENEWED_MS};
use crate::support::{Browser, Stack};

const HTTPS: (&str, &str) = ("EDGE_BASE_URL", "https://app.example.test");
const LIFETIME_MS: u64 = 600_000;
const GRACE_MS: u64 = 30_000;

async fn stack() -> Stack {
    Stack::with(&[HTTPS]).await
}

/// A user who signed in a while ago with a browser that binds sessions.
async fn bound(stack: &Stack) -> (Browser, Device) {
    let mut browser = stack.browser();
    let device = Device::bind(&mut browser).await;
    stack.clock.advance_ms(GRACE_MS);
    (browser, device)
}

async fn is_signed_in(browser: &mut Browser) -> bool {
    let answer = browser.get("/api/auth/me").await;
    assert!(matches!(answer.status, 200 | 204), "{answer:?}");
    answer.status == 200
}

#[tokio::test]
async fn a_sign_in_offers_to_bind_and_the_browser_goes_on_for_as_long_as_it_proves_its_key() {
    let stack = stack().await;
    let mut browser = stack.browser();
    let callback = browser.sign_in().await;
    let offer = callback.header("secure-session-registration").to_owned();
    assert!(
        offer.starts_with("(ES256 RS256);path=\"/api/auth/device/register\";challenge=\""),
        "{offer}"
    );
    let device = Device::new();
    let registered = device.register(&mut browser.clone(), &offer).await;
    assert_eq!(registered.status, 200, "{registered:?}");
    assert_eq!(registered.header("cache-control"), "no-store");
    let instructions = registered.json();
    assert_eq!(instructions["scope"], json!({ "include_site": false }));
    assert_eq!(
        instructions["credentials"],
        json!([{
            "type": "cookie",
            "name": "__Host-session_bound",
            "attributes": "Path=/; HttpOnly; Secure; SameSite=Lax",
        }])
    );
    let cookie = registered.set_cookie("session_bound").unwrap();
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=540"),
        "{cookie}"
    );

    // A browser that missed the answer repeats the registration: nothing changes.
    assert_eq!(device.register(&mut browser, &offer).await.status, 200);
    let device = device.named(&instructions);
    for _ in 0..4 {
        stack.clock.advance_ms(UNTIL_RENEWED_MS);
        browser.jar.remove("__Host-session_bound"); // its time is over
        assert_eq!(device.refresh(&mut browser).await.status, 200);
        assert!(is_signed_in(&mut browser).await);
    }
}

#[tokio::test]
async fn a_refresh_is_asked_for_with_a_challenge_and_only_its_answer_by_the_key_counts() {
    let stack = stack().await;
    let (mut browser, device) = bound(&stack).await;
    let asked = device.ask(&mut browser, None).await;
    assert_eq!((asked.status, asked.set_cookies().len()), (403, 0), "{asked:?}");
    let challenge = device.challenge_of(&asked);
    assert!(
        asked
            .header("secure-session-challenge")
            .ends_with(&format!("\";id=\"{}\"", device.handle())),
        "{asked:?}"
    );

    let calls = stack.sessions.calls();
    for proof in ["", "no proof", "a.b.c", &device.proof("another challenge")] {
        let refused = device.ask(&mut browser, Some(proof)).await;
        assert_eq!((refused.status, refused.set_cookies().len()), (403, 0), "{proof}");
        device.challenge_of(&refused);
    }
    assert_eq!(
        stack.sessions.calls(),
        calls,
        "a wrong challenge is read by nobody"
    );
    let other = Device::new().proof(&challenge);
    let refused = device.ask(&mut browser, Some(&other)).await;
    assert_eq!((refused.status, refused.set_cookies().len()), (403, 0));

    let calls = stack.sessions.calls();
    let proved = device.ask(&mut browser, Some(&device.proof(&challenge))).await;
    assert_eq!(
        (proved.status, proved.set_cookies().len()),
        (200, 1),
        "{proved:?}"
    );
    assert_eq!(stack.sessions.calls(), calls + 1, "a refresh costs one read");
    stack.clock.advance_ms(60_000);
    let late = device.ask(&mut browser, Some(&device.proof(&challenge))).await;
    assert_eq!(late.status, 403, "a challenge is good for a minute");
}

#[tokio::test]
async fn each_answer_of_a_refresh_is_for_its_own_origin_alone_and_none_leads_elsewhere() {
    let stack = stack().await;
    let (mut browser, device) = bound(&stack).await;
    let asked = device.ask(&mut browser, None).await;
    let proof = device.proof(&device.challenge_of(&asked));
    let proved = device.ask(&mut browser, Some(&proof)).await;
    let cookie = proved.set_cookie("session_bound").unwrap().to_owned();
    assert!(
        cookie.contains("; Path=/; HttpOnly; Secure; SameSite=Lax"),
        "as the instructions of the registration say: {cookie}"
    );
    let refused = device.ask(&mut browser, Some("no proof")).await;
    stack.sessions.stop().await;
    let proof = device.proof(&device.challenge_of(&refused));
    let away = device.ask(&mut browser, Some(&proof)).await;
    stack.sessions.start_again().await;
    for (answer, status) in [(&asked, 403), (&proved, 200), (&refused, 403), (&away, 503)] {
        assert_eq!((answer.status, answer.location()), (status, ""), "{answer:?}");
        assert_eq!(
            answer.header("cross-origin-resource-policy"),
            "same-origin",
            "{answer:?}"
        );
        assert_eq!(answer.header("access-control-allow-origin"), "", "{answer:?}");
    }
}

#[tokio::test]
async fn neither_cookies_nor_the_origin_are_needed_and_values_are_read_as_structured_strings() {
    let stack = stack().await;
    let mut browser = stack.browser();
    let callback = browser.sign_in().await;
    let offer = callback.header("secure-session-registration").to_owned();
    let device = Device::new();
    let proof = device.registration(&offer);
    let mut without = stack.browser();
    for sent in [
        proof.clone(),
        format!("\"{proof}\""),
        format!("\"{proof}\";a=1"),
        format!("{proof};a=1"),
    ] {
        let headers = [("secure-session-response", sent.as_str())];
        let registered = without.post("/api/auth/device/register", &headers, "").await;
        assert_eq!(registered.status, 200, "{registered:?}");
        assert_eq!(registered.header("content-type"), "application/json");
    }
    let headers = [("secure-session-response", proof.as_str())];
    let instructions = without
        .post("/api/auth/device/register", &headers, "")
        .await
        .json();
    assert_eq!(instructions["allowed_refresh_initiators"], json!(["*"]));
    let device = device.named(&instructions);
    let asked = device.ask(&mut without, None).await;
    let proof = device.proof(&device.challenge_of(&asked));
    let handle = device.handle();
    for (handle, proof) in [
        (handle.to_owned(), proof.clone()),
        (format!("\"{handle}\";a=1"), format!("\"{proof}\";a=1")),
    ] {
        for origin in [None, Some("https://idp.example.test")] {
            without.jar.clear();
            let mut headers = vec![
                ("sec-secure-session-id", handle.as_str()),
                ("secure-session-response", &proof),
            ];
            headers.extend(origin.map(|origin| ("origin", origin)));
            let refreshed = without.post(device.refresh_url(), &headers, "").await;
            assert_eq!(refreshed.status, 200, "the same proof again, too: {refreshed:?}");
            let cookie = refreshed.set_cookie("session_bound").unwrap();
            assert!(
                cookie.ends_with("; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=540"),
                "{cookie}"
            );
            assert_eq!(refreshed.body, "");
        }
    }
    let unnamed = without
        .post(device.refresh_url(), &[("secure-session-response", &proof)], "")
        .await;
    assert_eq!(
        (unnamed.status, unnamed.set_cookies().len()),
        (400, 0),
        "no script can send the name"
    );
    for path in ["/api/auth/device/register", device.refresh_url()] {
        assert_eq!(without.get(path).await.status, 405);
    }
}

#[tokio::test]
async fn what_was_sent_before_the_binding_was_known_is_honest() {
    let stack = stack().await;
    let mut browser = stack.browser();
    let device = Device::bind(&mut browser).await;
    let mut early = browser.clone();
    early.jar.remove("__Host-session_bound");
    stack.clock.advance_ms(GRACE_MS - 1);
    assert!(is_signed_in(&mut early).await);
    stack.clock.advance_ms(1);
    assert!(!is_signed_in(&mut early).await);
    assert!(is_signed_in(&mut browser).await, "{}", device.handle());
}

#[tokio::test]
async fn a_browser_that_cannot_bind_is_served_as_ever_and_so_is_everybody_over_http() {
    let stack = stack().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    stack.clock.advance_ms(3 * LIFETIME_MS);
    assert!(is_signed_in(&mut browser).await);

    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let callback = browser.sign_in().await;
    assert_eq!(callback.header("secure-session-registration"), "");
    assert_eq!(
        browser.post("/api/auth/device/register", &[], "").await.status,
        404
    );
}

#[tokio::test]
async fn a_session_that_is_over_is_over_for_the_browser_and_never_for_an_outage() {
    let stack = stack().await;
    let (mut browser, device) = bound(&stack).await;
    stack.sessions.stop().await;
    let down = device.refresh(&mut browser).await;
    assert_eq!(down.status, 503, "{down:?}");
    let skipped = browser
        .get_with(
            "/api/auth/me",
            &[("secure-session-skipped", "server_error;session_identifier=\"a\"")],
        )
        .await;
    assert_eq!(skipped.status, 503, "{skipped:?}");
    stack.sessions.start_again().await;
    assert_eq!(device.refresh(&mut browser).await.status, 200);
    assert!(is_signed_in(&mut browser).await);

    let mut kept = browser.clone();
    browser.visit("/api/auth/logout").await;
    assert!(browser.jar.is_empty(), "both cookies are gone: {:?}", browser.jar);
    let over = device.refresh(&mut kept).await;
    let told = json!({ "session_identifier": device.handle(), "continue": false });
    assert_eq!((over.status, over.json()), (200, told));
    assert!(over.set_cookies().is_empty(), "{over:?}");
}

#[tokio::test]
async fn a_sign_in_over_a_binding_begins_a_new_one_and_the_old_one_sets_no_cookie() {
    let stack = stack().await;
    let (mut browser, old) = bound(&stack).await;
    let new = Device::bind(&mut browser).await;
    let proof = browser.jar["__Host-session_bound"].clone();
    let over = old.refresh(&mut browser).await;
    let told = json!({ "session_identifier": old.handle(), "continue": false });
    assert_eq!((over.status, over.json()), (200, told));
    assert_eq!(browser.jar["__Host-session_bound"], proof);
    stack.clock.advance_ms(UNTIL_RENEWED_MS);
    assert_eq!(new.refresh(&mut browser).await.status, 200);
    assert!(is_signed_in(&mut browser).await);
}

#[tokio::test]
async fn switched_off_it_offers_nothing_asks_for_nothing_and_lets_browsers_go_on() {
    let stack = stack().await;
    let (mut browser, device) = bound(&stack).await;
    let mut off = stack
        .beside_with_settings(|settings| settings.device_bound.as_mut().unwrap().mode = DeviceBound::Off)
        .await;
    let callback = off.sign_in().await;
    assert_eq!(callback.header("secure-session-registration"), "");
    off.jar = browser.jar.clone();
    assert_eq!(
        device.refresh(&mut off).await.status,
        200,
        "the browser keeps its binding for edges that ask"
    );
    off.jar.remove("__Host-session_bound");
    stack.clock.advance_ms(2 * LIFETIME_MS);
    assert!(is_signed_in(&mut off).await);
    assert!(!is_signed_in(&mut browser).await);
}

#[tokio::test]
async fn what_became_of_proofs_is_counted() {
    let stack = stack().await;
    let (mut browser, device) = bound(&stack).await;
    device.refresh(&mut browser).await;
    device.register(&mut browser, "challenge=\"none of ours\"").await;
    browser.jar.remove("__Host-session_bound");
    is_signed_in(&mut browser).await;
    browser
        .get_with("/api/auth/me", &[("secure-session-skipped", "unreachable")])
        .await;
    browser.visit("/api/auth/logout").await;
    device.refresh(&mut browser).await;
    let counted = |outcome: &str| {
        let families = stack.metrics.gather();
        let family = families
            .iter()
            .find(|family| family.name() == "device_proofs_total")
            .unwrap();
        let of = |metric: &&prometheus::proto::Metric| metric.get_label()[0].value() == outcome;
        family
            .get_metric()
            .iter()
            .find(of)
            .map_or(0.0, |metric| metric.get_counter().get_value())
    };
    let all = [
        "bound",
        "not_bound",
        "refreshed",
        "challenged",
        "over",
        "skipped",
        "missing",
    ];
    assert_eq!(all.map(counted), [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 2.0]);
}
