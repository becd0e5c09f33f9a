//! A session cookie is sent only while its session belongs to the browser. The edge decides this when the
//! answer's head leaves, not when the session was rolled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::any;
use reqwest::Method;
use scripted_provider::Endpoint;
use tokio::sync::Notify;

use crate::gateway::Gateway;
use crate::support::{Answer, Browser, Upstream};

const CACHED: [(&str, &str); 1] = [("EDGE_SESSION_CACHE_SECS", "60")];
const ROTATES: (&str, &str) = ("EDGE_COOKIE_ROTATION", "300");
const OURS: [(&str, &str); 2] = [("x-csrf", "1"), ("sec-fetch-site", "same-origin")];

/// Longer than an edge takes to receive a change on a busy machine.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// An upstream that holds its answers until released.
struct Slow {
    gateway: Gateway,
    arrived: Arc<Notify>,
    go: Arc<Notify>,
    _upstream: Upstream,
}

impl Slow {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, wait) = (Arc::clone(&arrived), Arc::clone(&go));
        let answer = move || {
            let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
            async move {
                tell.notify_one();
                wait.notified().await;
                "late"
            }
        };
        let upstream = Upstream::of(Router::new().fallback(any(answer)), None).await;
        let rule = format!(
            "[[route]]\npath = \"/slow/*\"\nguard = \"api\"\nupstream = \"{}\"\n",
            upstream.url()
        );
        Self {
            gateway: Gateway::start(&rule, settings).await,
            arrived,
            go,
            _upstream: upstream,
        }
    }

    /// A rolling request that waits at the upstream during `meanwhile`. Returns its answer.
    async fn late<T>(&self, browser: &Browser, meanwhile: impl Future<Output = T>) -> (Answer, T) {
        self.gateway.stack.advance(61);
        let mut waiting = browser.clone();
        let arrived = tokio::spawn(async move { waiting.get("/slow/a").await });
        self.arrived.notified().await;
        let done = meanwhile.await;
        self.go.notify_one();
        (arrived.await.unwrap(), done)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_of_the_session_before_does_not_sign_out_who_signed_in_meanwhile() {
    for settings in [&CACHED[..], &[]] {
        let slow = Slow::start(settings).await;
        let mut browser = slow.gateway.stack.browser();
        browser.sign_in().await;
        let mut signing_in = browser.clone();
        slow.gateway
            .stack
            .provider
            .script(|script| script.sub = "bob".to_owned());
        let (late, ()) = slow
            .late(&browser, async { _ = signing_in.sign_in().await })
            .await;
        assert_eq!((late.status, late.body.as_str()), (200, "late"));
        assert_eq!(late.set_cookies(), Vec::<&str>::new(), "{settings:?}");
        assert_eq!(signing_in.get("/api/auth/me").await.json()["sub"], "bob");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_sets_no_cookie_of_a_session_that_was_signed_out_here_or_elsewhere() {
    for settings in [&CACHED[..], &[]] {
        let slow = Slow::start(settings).await;
        for beside in [false, true] {
            let mut browser = slow.gateway.stack.browser();
            browser.sign_in().await;
            let mut leaving = if beside {
                slow.gateway.stack.beside().await
            } else {
                browser.clone()
            };
            leaving.jar.clone_from(&browser.jar);
            let mut here = browser.clone();
            let sign_out = async {
                let out = leaving.visit("/api/auth/logout").await;
                let deadline = Instant::now() + LONGEST_WAIT;
                while here.get("/api/auth/me").await.status != 204 {
                    assert!(Instant::now() < deadline, "the ending is never heard");
                }
                out
            };
            let (late, out) = slow.late(&browser, sign_out).await;
            assert_eq!((late.status, out.status), (200, 302));
            assert_eq!(late.set_cookies(), Vec::<&str>::new(), "{settings:?} {beside}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_renews_the_cookie_of_a_living_session_and_an_outage_renews_none() {
    for settings in [&CACHED[..], &[]] {
        let slow = Slow::start(settings).await;
        let mut browser = slow.gateway.stack.browser();
        browser.sign_in().await;
        let (late, ()) = slow.late(&browser, async {}).await;
        assert!(late.set_cookie("session").is_some(), "{settings:?}");
        let (late, ()) = slow.late(&browser, slow.gateway.stack.sessions.stop()).await;
        assert_eq!(late.status, 200, "a failed look fails nothing");
        assert_eq!(late.set_cookies(), Vec::<&str>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_puts_no_older_generation_over_the_one_that_counts() {
    for settings in [&[CACHED[0], ROTATES][..], &[ROTATES]] {
        let slow = Slow::start(settings).await;
        let stack = &slow.gateway.stack;
        let mut browser = stack.browser();
        browser.sign_in().await;
        stack.advance(300);
        let mut tab = browser.clone();
        let meanwhile = async {
            for _ in 0..2 {
                let deadline = Instant::now() + LONGEST_WAIT;
                while tab.get("/api/auth/me").await.set_cookie("session").is_none() {
                    assert!(Instant::now() < deadline, "no cookie is ever given anew");
                    stack.advance(10);
                }
                tab.get("/api/auth/me").await;
                stack.advance(300);
            }
        };
        let (late, ()) = slow.late(&browser, meanwhile).await;
        assert_eq!((late.status, late.set_cookies().len()), (200, 0), "{settings:?}");
        assert_eq!(tab.get("/api/auth/me").await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_generation_waits_for_its_answer_a_quarter_of_a_minute() {
    let slow = Slow::start(&[ROTATES]).await;
    let stack = &slow.gateway.stack;
    let mut browser = stack.browser();
    browser.sign_in().await;
    stack.advance(300);
    for (held_ms, is_given) in [(14_999, true), (15_000, false)] {
        let held = async { stack.clock.advance_ms(held_ms) };
        let (late, ()) = slow.late(&browser, held).await;
        assert_eq!(late.set_cookie("session").is_some(), is_given, "{held_ms}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_read_anew_for_long_sets_no_cookie_of_a_session_that_ended() {
    let gateway = Gateway::start("", &CACHED).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    gateway.stack.advance(61);
    let gate = gateway.stack.provider.hold(Endpoint::Userinfo);
    let mut waiting = browser.clone();
    let arrived = tokio::spawn(async move { waiting.get("/api/auth/me?refetch=true").await });
    gateway.stack.provider.wait_for_held(Endpoint::Userinfo, 1).await;
    assert_eq!(browser.visit("/api/auth/logout").await.status, 302);
    gate.release();
    let late = arrived.await.unwrap();
    assert_eq!((late.status, late.set_cookies().len()), (204, 0), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_rolls_asks_for_its_session_once_more() {
    let gateway = Gateway::start("", &CACHED).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    let roll = [OURS[0], OURS[1], ("content-type", "application/grpc-web+proto")];
    let path = "/session.v1.BrowserSessionService/RollCurrentSession";
    let mut most = 0;
    for _ in 0..5 {
        gateway.stack.advance(61);
        // Served from the cache until the edge learns that the session was rolled.
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            let before = gateway.stack.sessions.calls();
            if browser.get("/api/orders").await.set_cookie("session").is_some() {
                most = most.max(gateway.stack.sessions.calls() - before);
                break;
            }
            assert!(
                Instant::now() < deadline,
                "a session that is used is never rolled"
            );
        }
        gateway.stack.advance(61);
        let answer = browser
            .send(Method::POST, path, &roll, Some("\0\0\0\0\0".to_owned()))
            .await;
        assert!(answer.set_cookie("session").is_some(), "{answer:?}");
    }
    // The edge checks at times whether the service is there.
    assert!(most <= 3, "{most} calls for one answer");
}
