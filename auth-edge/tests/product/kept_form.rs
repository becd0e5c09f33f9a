//! A form on an ended session: kept for the same user over a sign-in, and sent only on a press.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use reqwest::Method;
use serde_json::json;
use tempfile::NamedTempFile;

use crate::support::{Answer, Browser, Stack, Upstream};

/// Every body the upstream received, with its address and cookies.
type Received = Arc<Mutex<Vec<(String, Vec<u8>, String)>>>;

const FORM: &str = "title=A+%C3%A9+%26+%3Cb%3E&tag=1&tag=2&text=one%0D%0Atwo&empty=";

struct Forms {
    stack: Stack,
    received: Received,
    _upstream: Upstream,
    _table: NamedTempFile,
}

impl Forms {
    async fn start() -> Self {
        let received = Received::default();
        let router = Router::new().fallback(receive).with_state(received.clone());
        let upstream = Upstream::of(router, None).await;
        let url = upstream.url();
        let table = NamedTempFile::new().unwrap();
        let rules = format!(
            "[[route]]\npath = \"/orders/*\"\nguard = \"page\"\nupstream = \"{url}\"\nkeep_form = true\nsign_in = {{ login_hint = \"office\" }}\n\
             [[route]]\npath = \"/fresh/*\"\nguard = \"page\"\nupstream = \"{url}\"\nkeep_form = true\nmax_age = 900\n\
             [[route]]\npath = \"/plain/*\"\nguard = \"page\"\nupstream = \"{url}\"\n"
        );
        std::fs::write(table.path(), rules).unwrap();
        let stack = Stack::with(&[("EDGE_ROUTES", table.path().to_str().unwrap())]).await;
        Self {
            stack,
            received,
            _upstream: upstream,
            _table: table,
        }
    }

    /// A browser in which this person has opened the form.
    async fn filling_in(&self, person: &str) -> Browser {
        let mut browser = self.stack.browser();
        self.sign_in(&mut browser, person).await;
        assert_eq!(browser.visit("/orders/new").await.status, 200);
        assert!(browser.jar.contains_key("session_person"), "{:?}", browser.jar);
        browser
    }

    async fn sign_in(&self, browser: &mut Browser, person: &str) {
        let (name, value) = self.stack.session_of(json!({"sub": person}), "openid").await;
        browser.jar.insert(name, value);
    }

    fn posts(&self) -> Vec<(String, String)> {
        let received = self.received.lock().unwrap();
        let posts = received.iter().filter(|(target, ..)| target.starts_with("POST"));
        posts
            .map(|(target, body, _)| (target.clone(), String::from_utf8(body.clone()).unwrap()))
            .collect()
    }
}

async fn receive(State(received): State<Received>, request: Request) -> &'static str {
    let target = format!("{} {}", request.method(), request.uri());
    let cookies = request.headers().get_all("cookie").iter();
    let cookies: Vec<_> = cookies.map(|line| line.to_str().unwrap().to_owned()).collect();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX)
        .await
        .unwrap();
    received
        .lock()
        .unwrap()
        .push((target, body.to_vec(), cookies.join("; ")));
    "received"
}

/// The headers a browser sends with a form of the same origin.
fn own(base: &str) -> Vec<(&str, &str)> {
    vec![
        ("accept", "text/html,*/*;q=0.8"),
        ("origin", base),
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ]
}

async fn submit(browser: &mut Browser, path: &str, form: &str) -> Answer {
    let base = browser.base().to_owned();
    browser.post(path, &own(&base), form).await
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#39;", "'")
        .replace("&#13;", "\r")
        .replace("&#10;", "\n")
        .replace("&amp;", "&")
}

/// The value of the first attribute of this name.
fn attribute(html: &str, name: &str) -> Option<String> {
    let value = html.split(&format!(" {name}=\"")).nth(1)?;
    Some(unescaped(value.split('"').next().unwrap()))
}

/// The sealed form in a page that keeps one.
fn kept(page: &Answer) -> Option<String> {
    assert_eq!(page.status, 401, "{page:?}");
    attribute(&page.body, "data-sealed")
}

async fn hand_over(browser: &mut Browser, sealed: &str) -> Answer {
    submit(browser, "/api/auth/form", &format!("sealed={sealed}")).await
}

/// The request that "Send again" makes, as a browser encodes the page's fields.
fn pressed(page: &Answer) -> (String, String) {
    let form = page.body.split("<form").nth(1).unwrap();
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    for input in form.split("<input").skip(1) {
        body.append_pair(
            &attribute(input, "name").unwrap(),
            &attribute(input, "value").unwrap(),
        );
    }
    (attribute(form, "action").unwrap(), body.finish())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_comes_back_to_its_person_and_goes_out_as_it_was_by_a_press() {
    let forms = Forms::start().await;
    let mut browser = forms.filling_in("ada").await;
    assert!(
        browser.visit("/orders/new").await.set_cookies().is_empty(),
        "once is enough"
    );
    // Its session has expired; a browser with a slow clock still has the cookie.
    forms.stack.advance(86_400);
    assert!(browser.jar.contains_key("session"));
    let page = submit(&mut browser, "/orders/new?draft=1", FORM).await;
    let sealed = kept(&page).unwrap();
    assert_eq!(page.header("cache-control"), "no-store");
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("; script-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(
        !page.body.contains("tag=1") && page.body.contains("Sign in in a new tab"),
        "{}",
        page.body
    );
    assert!(forms.posts().is_empty());

    // The sign-in meets the requirement of the form's route, and returns to the form.
    let login = browser.visit(&attribute(&page.body, "data-login").unwrap()).await;
    assert_eq!(login.status, 302);
    assert!(
        login.location().contains("login_hint=office"),
        "{}",
        login.location()
    );
    let callback = browser.authorize(login.location()).await;
    let back = browser.visit(&callback).await;
    assert!(
        back.location().ends_with("/api/auth/form?for=%2Forders%2Fnew"),
        "{}",
        back.location()
    );
    let waiting = browser.visit(back.location()).await;
    assert_eq!(waiting.status, 200);
    assert!(waiting.body.contains("Nothing to send") && waiting.body.contains("<script>"));

    forms.sign_in(&mut browser, "ada").await;
    // Any replica can continue.
    let mut beside = forms.stack.beside().await;
    beside.jar = browser.jar.clone();
    let offer = hand_over(&mut beside, &sealed).await;
    assert_eq!(offer.status, 200, "{offer:?}");
    assert!(offer.body.contains("<li><bdi>title</bdi></li>") && offer.body.contains("Send again"));
    let shown = offer
        .body
        .split("<main>")
        .nth(1)
        .unwrap()
        .split("<form")
        .next()
        .unwrap();
    assert!(
        !shown.contains("one") && !shown.contains("&lt;b&gt;"),
        "names are shown, no values: {shown}"
    );
    assert!(forms.posts().is_empty(), "nothing is sent by itself");
    let (action, body) = pressed(&offer);
    assert_eq!(
        (action.as_str(), body.as_str()),
        (&*format!("{}/orders/new?draft=1", forms.stack.base()), FORM)
    );
    assert_eq!(submit(&mut browser, &action, &body).await.status, 200);
    assert_eq!(
        forms.posts(),
        [("POST /orders/new?draft=1".to_owned(), FORM.to_owned())]
    );
    let received = forms.received.lock().unwrap();
    assert!(
        received
            .iter()
            .all(|(_, _, cookies)| !cookies.contains("session")),
        "our cookies stay ours"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_with_the_form_may_have_a_rule_of_its_own() {
    let forms = Forms::start().await;
    let mut browser = forms.stack.browser();
    forms.sign_in(&mut browser, "ada").await;
    assert_eq!(browser.visit("/plain/cart").await.status, 200);
    browser.jar.remove("session");
    assert!(kept(&submit(&mut browser, "/orders/a", FORM).await).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_kept_for_who_signed_in_last_on_a_page_nobody_guards_too() {
    let forms = Forms::start().await;
    let mut browser = forms.filling_in("ada").await;
    let adas = browser.jar["session_person"].clone();
    browser.jar.remove("session");
    // The provider signs in another person, who lands on a page without a guard.
    assert_eq!(browser.sign_in().await.status, 302);
    assert_ne!(browser.jar["session_person"], adas);
    browser.jar.remove("session");
    let sealed = kept(&submit(&mut browser, "/orders/new", "secret-name=secret-value").await).unwrap();
    forms.sign_in(&mut browser, "ada").await;
    let refused = hand_over(&mut browser, &sealed).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(!refused.body.contains("secret"), "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_offered_to_nobody_but_its_person() {
    let forms = Forms::start().await;
    let mut browser = forms.filling_in("ada").await;
    browser.jar.remove("session");
    let sealed = kept(&submit(&mut browser, "/orders/new", "secret-name=secret-value").await).unwrap();
    forms.sign_in(&mut browser, "bob").await;
    let refused = hand_over(&mut browser, &sealed).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.body.contains("This form is not from your account") && !refused.body.contains("secret"),
        "{}",
        refused.body
    );
    assert!(refused.body.contains("removeItem"), "the browser forgets it");
    assert!(forms.posts().is_empty());

    // A browser without a session is asked to sign in, and the form stays.
    browser.jar.remove("session");
    let nobody = hand_over(&mut browser, &sealed).await;
    assert_eq!(nobody.status, 401);
    assert!(
        nobody.body.contains("returnTo=") && !nobody.body.contains("removeItem"),
        "{}",
        nobody.body
    );
    assert!(!nobody.body.contains("secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_kept_for_the_person_whose_session_wants_a_younger_sign_in() {
    let forms = Forms::start().await;
    let mut browser = forms.stack.browser();
    forms.sign_in(&mut browser, "ada").await;
    forms.stack.advance(1_000);
    let page = submit(&mut browser, "/fresh/a", FORM).await;
    let sealed = kept(&page).unwrap();
    assert!(
        attribute(&page.body, "data-login")
            .unwrap()
            .contains("max_age=900")
    );
    assert_eq!(hand_over(&mut browser, &sealed).await.status, 200);
    forms.sign_in(&mut browser, "bob").await;
    assert_eq!(hand_over(&mut browser, &sealed).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_our_own_plain_form_of_a_known_person_is_refused_as_ever() {
    let forms = Forms::start().await;
    let base = forms.stack.base().to_owned();
    let mut browser = forms.filling_in("ada").await;
    browser.jar.remove("session");
    let mut stranger = forms.stack.browser();
    assert_eq!(
        kept(&submit(&mut stranger, "/orders/a", FORM).await),
        None,
        "nobody was here"
    );
    stranger.jar.insert("session_person".to_owned(), "A".repeat(92));
    assert_eq!(
        kept(&submit(&mut stranger, "/orders/a", FORM).await),
        None,
        "a forged cookie is none"
    );
    assert_eq!(
        kept(&submit(&mut browser, "/plain/a", FORM).await),
        None,
        "the route keeps none"
    );
    for body in ["a=%E9", "a", "=b", "a=%0A"] {
        assert_eq!(
            kept(&submit(&mut browser, "/orders/a", body).await),
            None,
            "{body}"
        );
    }
    let without_origin = &own(&base)[..1];
    assert_eq!(
        kept(&browser.post("/orders/a", without_origin, FORM).await),
        None,
        "nobody says whose page"
    );
    let mut put = own(&base);
    put.push(("content-type", "application/x-www-form-urlencoded"));
    let put = browser
        .send(Method::PUT, "/orders/a", &put, Some(FORM.to_owned()))
        .await;
    assert_eq!(kept(&put), None);
    let mut typed = own(&base);
    typed.push(("content-type", "text/plain"));
    assert_eq!(kept(&browser.post("/orders/a", &typed, FORM).await), None);
    let script = [
        ("sec-fetch-mode", "cors"),
        ("sec-fetch-site", "same-origin"),
        ("origin", base.as_str()),
    ];
    let script = browser.post("/orders/a", &script, FORM).await;
    assert_eq!(
        (script.status, script.header("content-type")),
        (401, "application/json")
    );
    let mut foreign = own("https://evil.example");
    foreign[2].1 = "cross-site";
    assert_eq!(browser.post("/orders/a", &foreign, FORM).await.status, 403);
    for (kind, body) in [
        ("multipart/form-data; boundary=x", "--x--".to_owned()),
        (
            "application/x-www-form-urlencoded",
            format!("a={}", "b".repeat(64 * 1024)),
        ),
    ] {
        let mut headers = own(&base);
        headers.push(("content-type", kind));
        let page = browser.post("/orders/a", &headers, &body).await;
        assert_eq!(kept(&page), None, "{kind}");
        assert!(
            page.body.contains("A form with files, or a very long one"),
            "{kind}: {}",
            page.body
        );
    }
    let long = format!("a={}", "b".repeat(64 * 1024 - 2));
    let sealed = kept(&submit(&mut browser, "/orders/a", &long).await).expect("the longest is kept");
    forms.sign_in(&mut browser, "ada").await;
    assert_eq!(pressed(&hand_over(&mut browser, &sealed).await).1, long);
    assert!(forms.posts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_form_that_is_touched_old_huge_or_from_elsewhere_is_offered_to_nobody() {
    let forms = Forms::start().await;
    let base = forms.stack.base().to_owned();
    let mut browser = forms.filling_in("ada").await;
    browser.jar.remove("session");
    let sealed = kept(&submit(&mut browser, "/orders/a", FORM).await).unwrap();
    forms.sign_in(&mut browser, "ada").await;
    for touched in [
        String::new(),
        sealed.replace(&sealed[40..44], "AAAA"),
        sealed[..sealed.len() - 4].to_owned(),
    ] {
        let page = hand_over(&mut browser, &touched).await;
        assert_eq!(page.status, 400, "{touched}");
        assert!(page.body.contains("We cannot read this form"));
    }
    assert_eq!(hand_over(&mut browser, &"A".repeat(200_000)).await.status, 413);
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("origin", "null"),
    ] {
        let headers = [("accept", "text/html"), (name, value)];
        let body = format!("sealed={sealed}");
        assert_eq!(
            browser.post("/api/auth/form", &headers, &body).await.status,
            403,
            "{value}"
        );
    }
    let silent = browser
        .post("/api/auth/form", &[], &format!("sealed={sealed}"))
        .await;
    assert_eq!(silent.status, 403, "nobody says whose page");
    let prefetch = [("sec-purpose", "prefetch"), ("origin", base.as_str())];
    assert_eq!(browser.get_with("/api/auth/form", &prefetch).await.status, 204);
    assert_eq!(
        browser
            .send(Method::DELETE, "/api/auth/form", &[], None)
            .await
            .status,
        405
    );
    assert_eq!(hand_over(&mut browser, &sealed).await.status, 200);
    forms.stack.advance(3_600);
    forms.sign_in(&mut browser, "ada").await;
    let old = hand_over(&mut browser, &sealed).await;
    assert_eq!(old.status, 400);
    assert!(old.body.contains("This form is too old") && old.body.contains("removeItem"));
    assert!(forms.posts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_out_leaves_nothing_by_which_a_form_would_be_kept() {
    let forms = Forms::start().await;
    let mut browser = forms.filling_in("ada").await;
    let out = browser.visit("/api/auth/logout").await;
    assert_eq!(out.status, 302);
    assert!(out.set_cookie("session_person").unwrap().contains("Max-Age=0"));
    assert_eq!(kept(&submit(&mut browser, "/orders/a", FORM).await), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_form_waits_while_the_session_service_is_away() {
    let forms = Forms::start().await;
    let mut browser = forms.filling_in("ada").await;
    browser.jar.remove("session");
    let sealed = kept(&submit(&mut browser, "/orders/a", FORM).await).unwrap();
    forms.sign_in(&mut browser, "ada").await;
    forms.stack.sessions.stop().await;
    let away = hand_over(&mut browser, &sealed).await;
    assert_eq!(away.status, 503);
    assert!(!away.body.contains("removeItem"), "the browser keeps it");
    forms.stack.sessions.start_again().await;
    forms.sign_in(&mut browser, "ada").await;
    assert_eq!(hand_over(&mut browser, &sealed).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_address_is_asked_for_a_form_leads_back_to_our_own_origin() {
    let forms = Forms::start().await;
    let base = forms.stack.base().to_owned();
    let mut browser = forms.filling_in("ada").await;
    let person = browser.jar["session_person"].clone();
    let mut kept = 0;
    for target in [
        "/orders/a?next=//evil.example",
        "http://evil.example/orders/a",
        "//evil.example/orders/a",
        "/orders/../orders/a",
        "/orders/\\evil.example",
        "/orders/%5Cevil.example",
    ] {
        let head = format!(
            "POST {target} HTTP/1.1\r\nhost: {}\r\norigin: {base}\r\naccept: text/html\r\ncookie: session_person={person}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: 3\r\nconnection: close\r\n\r\na=b",
            forms.stack.address()
        );
        let answer = forms.stack.raw(&head).await;
        let Some(sealed) = attribute(&answer, "data-sealed") else {
            continue;
        };
        kept += 1;
        assert!(
            attribute(&answer, "data-login")
                .unwrap()
                .starts_with("/api/auth/login?"),
            "{target}"
        );
        let (action, _) = pressed(&hand_over(&mut browser, &sealed).await);
        assert!(
            action.starts_with(&format!("{base}/orders/a")),
            "{target}: {action}"
        );
    }
    assert!(kept >= 1, "the plain one is kept");
    assert!(forms.posts().is_empty());
}
