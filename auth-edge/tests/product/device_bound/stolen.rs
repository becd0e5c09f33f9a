//! An attacker with the cookies of a bound session.

use super::device::{Device, between};
use super::{HTTPS, LIFETIME_MS, bound, is_signed_in, stack};
use crate::gateway::Gateway;
use crate::support::{Log, NAVIGATION, Stack};

/// The reason in the record of an invalid proof.
const NO_PROOF: &str = "reason=\"proof\"";

#[tokio::test]
async fn copied_cookies_are_worth_nothing_after_their_lifetime_and_the_person_goes_on() {
    let stack = stack().await;
    let (mut browser, device) = bound(&stack).await;
    device.refresh(&mut browser).await;
    let mut thief = browser.clone();
    stack.clock.advance_ms(LIFETIME_MS - 1);
    assert!(
        is_signed_in(&mut thief).await,
        "until then they are as good as the person's own"
    );
    device.refresh(&mut browser).await;
    stack.clock.advance_ms(1);
    assert!(!is_signed_in(&mut thief).await);
    assert!(is_signed_in(&mut browser).await);
    // No `Secure-Session-Skipped` header gives the thief the session.
    for skipped in ["unreachable", "server_error", "quota_exceeded"] {
        let answer = thief
            .get_with("/api/auth/me", &[("secure-session-skipped", skipped)])
            .await;
        assert_eq!((answer.status, answer.set_cookies().len()), (503, 0));
    }
    let own = Device::new().named(&serde_json::json!({
        "session_identifier": device.handle(), "refresh_url": device.refresh_url(),
    }));
    assert_eq!(own.refresh(&mut thief).await.status, 403, "another key");
    assert!(!is_signed_in(&mut thief).await);
}

#[tokio::test]
async fn the_session_cookie_alone_is_worth_nothing_at_any_route() {
    let gateway = Gateway::start(
        "[[route]]\npath = \"/form/*\"\nguard = \"page\"\nupstream = \"{upstream}\"\nkeep_form = true\n",
        &[HTTPS, ("EDGE_ACCESS_TOKEN_ENDPOINT", "true")],
    )
    .await;
    let (browser, _device) = bound(&gateway.stack).await;
    let mut thief = browser.clone();
    thief.jar.remove("__Host-session_bound");
    for (path, status) in [
        ("/api/orders", 401),
        ("/token/orders", 401),
        ("/account/", 307),
        ("/form/", 307),
        ("/api/auth/me", 204),
        ("/api/auth/check", 401),
    ] {
        let answer = thief.get_with(path, &NAVIGATION).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.set_cookies().is_empty(), "{path}: {answer:?}");
        let owner = browser.clone().get_with(path, &NAVIGATION).await;
        assert_eq!(owner.status, 200, "{path}: {owner:?}");
    }
    assert_eq!(gateway.upstream.requests().len(), 4, "the owner's requests");
    let script = [("sec-fetch-site", "same-origin"), ("x-csrf", "1")];
    let token = thief.get_with("/api/auth/access-token", &script).await;
    assert_eq!(
        (token.status, token.body.contains("access_token\":")),
        (401, false),
        "{token:?}"
    );
    assert_eq!(
        browser
            .clone()
            .get_with("/api/auth/access-token", &script)
            .await
            .status,
        200
    );
    let status = thief.get("/api/auth/status").await;
    assert_eq!(status.json()["state"], "signed_out");
    let watch = thief
        .post(
            "/session.v1.BrowserSessionService/ListMySessions",
            &[
                ("content-type", "application/grpc-web+proto"),
                ("sec-fetch-site", "same-origin"),
                ("x-csrf", "1"),
            ],
            "\0\0\0\0\0",
        )
        .await;
    assert!(watch.header("grpc-status") == "5", "{watch:?}");
}

#[tokio::test]
async fn a_sign_out_without_proof_tells_nothing_of_the_session() {
    let stack = Stack::with(&[HTTPS, ("EDGE_STORE_ID_TOKEN", "true")]).await;
    for (is_owner, has_hint) in [(false, false), (true, true)] {
        let (mut browser, _device) = bound(&stack).await;
        if !is_owner {
            browser.jar.remove("__Host-session_bound");
        }
        let signed_out = browser.visit("/api/auth/logout").await;
        let target = signed_out.location();
        assert!(target.starts_with(stack.provider.issuer()), "{signed_out:?}");
        assert_eq!(target.contains("id_token_hint="), has_hint, "{target}");
    }
}

#[tokio::test]
async fn nobody_binds_a_session_to_another_key_or_by_an_old_offer() {
    let stack = stack().await;
    let mut browser = stack.browser();
    let callback = browser.sign_in().await;
    let offer = callback.header("secure-session-registration").to_owned();
    let (device, other) = (Device::new(), Device::new());
    let registered = device.register(&mut browser, &offer).await;
    let device = device.named(&registered.json());
    let refused = other.register(&mut browser, &offer).await;
    assert_eq!(
        (refused.status, refused.set_cookies().len()),
        (403, 0),
        "{refused:?}"
    );
    assert_eq!(
        device.refresh(&mut browser).await.status,
        200,
        "the first key stays"
    );

    let mut late = stack.browser();
    let callback = late.sign_in().await;
    let offer = callback.header("secure-session-registration").to_owned();
    stack.clock.advance_ms(60_000);
    let refused = other.register(&mut late, &offer).await;
    assert_eq!(
        (refused.status, refused.json()["error"].as_str()),
        (403, Some("device_proof"))
    );
    assert!(is_signed_in(&mut late).await, "it stays as it is, without a key");
}

#[tokio::test]
async fn words_for_one_thing_are_worth_nothing_for_another() {
    let stack = stack().await;
    let (mut browser, device) = bound(&stack).await;
    let (mut others, other) = bound(&stack).await;
    // The cookie of another session, of the same person or another one.
    let foreign = others.jar["__Host-session_bound"].clone();
    browser.jar.insert("__Host-session_bound".to_owned(), foreign);
    assert!(!is_signed_in(&mut browser).await);
    // A proof of one session with another session's cookie: a proof cookie would belong to the wrong session.
    let mut mixed = others.clone();
    let over = device.refresh(&mut mixed).await;
    assert_eq!(
        (over.json()["continue"].as_bool(), over.set_cookies().len()),
        (Some(false), 0)
    );
    // A challenge of another session, and a challenge used as a cookie.
    let asked = other.ask(&mut others, None).await;
    let challenge = other.challenge_of(&asked);
    let answered = device.ask(&mut browser, Some(&device.proof(&challenge))).await;
    assert_eq!(answered.status, 403);
    let own = device.challenge_of(&answered);
    browser.jar.insert("__Host-session_bound".to_owned(), own);
    assert!(!is_signed_in(&mut browser).await);
    // A refresh address used as the challenge of a registration.
    let address = between(&format!("{}&", device.refresh_url()), "session=", "&").to_owned();
    let refused = Device::new()
        .register(&mut browser, &format!("challenge=\"{address}\""))
        .await;
    assert_eq!(refused.status, 403);
    // Another session's address with this session's name.
    let mixed = device.named(&serde_json::json!({
        "session_identifier": other.handle(), "refresh_url": format!("/api/auth/device/refresh?session={address}"),
    }));
    browser.jar.remove("__Host-session");
    let over = mixed.refresh(&mut browser).await;
    assert_eq!(over.json()["continue"], false);
}

#[tokio::test]
async fn a_use_without_proof_rolls_nothing_and_is_recorded_once_as_long_as_the_session_is_remembered() {
    let log = Log::begin();
    let stack = Stack::with(&[HTTPS, ("EDGE_SESSION_CACHE_SECS", "15")]).await;
    let (mut browser, device) = bound(&stack).await;
    log.wait_for(&["device_binding", "success", device.handle()])
        .await;
    let secret = browser.jar["__Host-session"]
        .split('.')
        .next()
        .unwrap()
        .to_owned();
    let proof = browser.jar.remove("__Host-session_bound").unwrap();
    let of_unproven = || {
        let text = log.text();
        let lines = text
            .lines()
            .filter(|line| line.contains("device_binding") && line.contains("no_proof"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let calls = stack.sessions.calls();
    for _ in 0..20 {
        let answer = browser.get("/api/auth/me").await;
        assert_eq!((answer.status, answer.set_cookies().len()), (204, 0));
    }
    // As often as the session was read; a busy machine reads it more than once.
    let (recorded, reads) = (of_unproven().len(), stack.sessions.calls() - calls);
    assert!(
        (1..=reads.max(1)).contains(&recorded),
        "{recorded} for {reads} reads"
    );
    assert!(of_unproven().iter().all(|line| line.contains(device.handle())));
    for secret in [secret.as_str(), proof.as_str(), device.refresh_url()] {
        assert!(!log.text().contains(secret), "no secret is written");
    }
}

#[tokio::test]
async fn what_anybody_can_send_is_counted_and_fills_no_audit_log() {
    let log = Log::begin();
    let stack = stack().await;
    let mut stranger = stack.browser();
    for offer in ["challenge=\"none\"", "challenge=\"AAAA\""] {
        assert_eq!(Device::new().register(&mut stranger, offer).await.status, 403);
    }
    let named = [("sec-secure-session-id", "0123456789abcdef0123456789abcdef")];
    stranger
        .post("/api/auth/device/refresh?session=AAAA", &named, "")
        .await;
    assert!(!log.text().contains("device_binding"), "{}", log.text());
}

#[tokio::test]
async fn no_signature_is_verified_before_the_challenge_is_one_of_ours() {
    let log = Log::begin();
    let stack = stack().await;
    let mut browser = stack.browser();
    let callback = browser.sign_in().await;
    let offer = callback.header("secure-session-registration").to_owned();
    let own = Device::new();
    let mut answers = Vec::new();
    for (offer, verified) in [("challenge=\"AAAA\"", 0), (offer.as_str(), 1)] {
        let (proof, other) = (own.registration(offer), Device::new().registration(offer));
        let (signed, _) = proof.rsplit_once('.').unwrap();
        let (_, signature) = other.rsplit_once('.').unwrap();
        let forged = format!("{signed}.{signature}");
        let headers = [("secure-session-response", forged.as_str())];
        let refused = browser.post("/api/auth/device/register", &headers, "").await;
        answers.push((refused.status, refused.body));
        let told = log
            .text()
            .matches("the registration proof of a device is not valid")
            .count();
        assert_eq!(told, verified, "{offer}");
    }
    assert_eq!(answers[0], answers[1], "it is not told which of them was wrong");
    assert_eq!(
        (answers[0].0, stack.counter("device_proofs_total", "not_bound")),
        (403, 2)
    );
}

#[tokio::test]
async fn what_one_session_fails_to_prove_is_always_counted_and_recorded_once_in_a_minute() {
    let log = Log::begin();
    let stack = stack().await;
    let recorded = |words: &[&str]| {
        let text = log.text();
        let is_record =
            |line: &&str| line.contains("device_binding") && words.iter().all(|word| line.contains(word));
        text.lines().filter(is_record).count()
    };
    let (mut browser, device) = bound(&stack).await;
    let (mut others, other) = bound(&stack).await;
    let own_key = |of: &Device| {
        Device::new().named(&serde_json::json!({
            "session_identifier": of.handle(), "refresh_url": of.refresh_url(),
        }))
    };
    let own = own_key(&device);
    for minute in 1..=2 {
        for _ in 0..5 {
            assert_eq!(own.refresh(&mut browser).await.status, 403);
        }
        assert_eq!(recorded(&[NO_PROOF, device.handle()]), minute);
        stack.clock.advance_ms(60_000);
    }
    assert_eq!(own_key(&other).refresh(&mut others).await.status, 403);
    assert_eq!(
        recorded(&[NO_PROOF, other.handle()]),
        1,
        "each session for itself"
    );
    assert_eq!(stack.counter("device_proofs_total", "challenged"), 2 * 11);

    let mut invited = stack.browser();
    let callback = invited.sign_in().await;
    let offer = callback.header("secure-session-registration").to_owned();
    let before = recorded(&["success"]);
    for _ in 0..5 {
        assert_eq!(device.register(&mut invited, &offer).await.status, 200);
    }
    assert_eq!(recorded(&["success"]), before + 1);
    for _ in 0..5 {
        assert_eq!(own.register(&mut invited, &offer).await.status, 403);
    }
    assert_eq!(recorded(&["not_kept"]), 1, "whatever else was recorded");
    assert_eq!(stack.counter("device_proofs_total", "not_bound"), 5);
}
