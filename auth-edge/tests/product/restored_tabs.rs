//! Callbacks without their pending sign-in: restored tabs, no cookies, many users of one address.

use scripted_provider::Endpoint;
use url::Url;

use crate::support::{Browser, NAVIGATION, Stack};

/// A page with an address of this many bytes.
fn page(tab: usize, bytes: usize) -> String {
    let begins = format!("/tab/{tab}?q=");
    format!("{begins}{}", "a".repeat(bytes - begins.len()))
}

fn login(page: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(page.as_bytes()).collect();
    format!("/api/auth/login?returnTo={encoded}")
}

async fn end_on_their_pages(stack: &Stack, tabs: usize, bytes: usize) {
    let mut browser = stack.browser();
    let mut callbacks = Vec::new();
    for tab in 0..tabs {
        stack.clock.advance_ms(1);
        callbacks.push(browser.until_callback(&login(&page(tab, bytes))).await);
    }
    for (tab, callback) in callbacks.iter().enumerate() {
        let answer = browser.visit(callback).await;
        let wanted = format!("{}{}", stack.base(), page(tab, bytes));
        assert_eq!((answer.status, answer.location()), (302, &*wanted), "{tab}");
    }
}

#[tokio::test]
async fn restored_tabs_end_on_their_own_pages_whatever_the_length_of_their_addresses() {
    let stack = Stack::start().await;
    for (tabs, bytes) in [(10, 400), (5, 900)] {
        end_on_their_pages(&stack, tabs, bytes).await;
    }
}

#[tokio::test]
async fn a_browser_that_is_signed_in_by_now_goes_on_and_nothing_is_used_up() {
    let stack = Stack::with(&[("EDGE_TRANSACTION_DURATION", "60")]).await;
    let mut browser = stack.browser();
    let lost = browser.until_callback(&login("/lost?a=b#c")).await;
    let plain = browser.until_callback("/api/auth/login").await;
    browser.jar.clear();
    let expired = browser.until_callback(&login("/late")).await;
    stack.advance(60);
    browser.sign_in().await;
    let calls = stack.provider.calls(Endpoint::Token);
    let session = browser.jar["session"].clone();
    for (callback, lands) in [(&lost, "/lost?a=b#c"), (&plain, "/"), (&expired, "/late")] {
        let answer = browser.visit(callback).await;
        let lands = format!("{}{lands}", stack.base());
        assert_eq!((answer.status, answer.location()), (302, &*lands));
    }
    assert_eq!(stack.provider.calls(Endpoint::Token), calls);
    assert_eq!(browser.jar["session"], session);
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

#[tokio::test]
async fn a_callback_without_its_sign_in_offers_the_way_back_and_believes_no_forged_one() {
    let stack = Stack::start().await;
    let callback = stack.browser().until_callback(&login("/document?id=7")).await;
    let mut browser = stack.browser();
    let answer = browser.visit(&callback).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.body.contains("returnTo=") && answer.body.contains("document%3Fid%3D7"),
        "{}",
        answer.body
    );
    assert!(
        answer.body.contains("href=\"/\""),
        "the start page: {}",
        answer.body
    );
    let url = Url::parse(&callback).unwrap();
    let (_, state) = url.query_pairs().find(|(name, _)| name == "state").unwrap();
    let (random, hint) = state.split_once('.').unwrap();
    let foreign = format!("{}.{hint}", "A".repeat(random.len()));
    for forged in [foreign, format!("{random}.L2V2aWw"), format!("{random}.")] {
        let answer = browser
            .visit(&format!("/api/auth/callback?code=x&state={forged}"))
            .await;
        assert_eq!(answer.status, 400);
        assert!(!answer.body.contains("returnTo="), "{forged}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_return_address_is_not_readable_in_the_state() {
    let stack = Stack::start().await;
    let callback = stack.browser().until_callback(&login("/secret-page")).await;
    let url = Url::parse(&callback).unwrap();
    let (_, state) = url.query_pairs().find(|(name, _)| name == "state").unwrap();
    assert!(!state.contains("secret") && state.len() < 100, "{state}");
}

#[tokio::test]
async fn nobody_who_comes_back_from_the_provider_is_refused_for_how_many_others_did() {
    let settings = [
        ("EDGE_RATE_LIMIT_LOGIN", "60"),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.0/8"),
    ];
    let stack = Stack::with(&settings).await;
    for network in ["192.0.2.1", "2001:db8:0:1::"] {
        let mut people: Vec<(Browser, String)> = Vec::new();
        for person in 0..60 {
            let mut browser = stack.browser();
            let address = match network.contains(':') {
                true => format!("{network}{person:x}"),
                false => network.to_owned(),
            };
            let from = [NAVIGATION[0], ("x-forwarded-for", &*address)];
            let begun = browser.get_with("/api/auth/login?returnTo=/a", &from).await;
            assert_eq!(begun.status, 302, "{person}");
            let callback = browser.authorize(begun.location()).await;
            people.push((browser, callback));
        }
        let from = [NAVIGATION[0], ("x-forwarded-for", network)];
        let limited = stack
            .browser()
            .get_with("/api/auth/login?returnTo=%2Forders%3Fa%3Db", &from)
            .await;
        assert_eq!((limited.status, limited.header("retry-after")), (429, "1"));
        let again = format!(
            "1; url={}/api/auth/login?returnTo=%2Forders%3Fa%3Db",
            stack.base()
        );
        assert_eq!(limited.header("refresh"), again);
        // A guessed callback is rejected, and displaces no other.
        let mut guess = stack.browser();
        let guessed = "/api/auth/callback?code=x&state=guess";
        for _ in 0..60 {
            assert_eq!(guess.get_with(guessed, &from).await.status, 400);
        }
        assert_eq!(guess.get_with(guessed, &from).await.status, 429);
        for (mut browser, callback) in people {
            assert_eq!(browser.get_with(&callback, &from).await.status, 302);
        }
    }
}

#[tokio::test]
async fn posted_answers_of_ten_restored_tabs_end_on_their_own_pages() {
    let stack = Stack::with(&[
        ("EDGE_BASE_URL", "https://app.example"),
        ("OIDC_RESPONSE_MODE", "form_post"),
    ])
    .await;
    let mut browser = stack.browser();
    let mut forms = Vec::new();
    for tab in 0..10 {
        stack.clock.advance_ms(1);
        let begun = browser.visit(&login(&page(tab, 400))).await;
        let html = reqwest::get(begun.location())
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        let field = |name: &str| {
            let value = html.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().to_owned()
        };
        let pairs = ["code", "state", "iss"].map(|name| (name, field(name)));
        forms.push(
            url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(pairs)
                .finish(),
        );
    }
    for (tab, form) in forms.iter().enumerate() {
        let answer = browser.post("/api/auth/callback", &[], form).await;
        let wanted = format!("https://app.example{}", page(tab, 400));
        assert_eq!((answer.status, answer.location()), (303, &*wanted), "{tab}");
    }
}
