//! Logout by the browser.

use scripted_provider::Endpoint;
use serde_json::json;
use url::Url;

use crate::support::{Answer, Browser, Stack};

const OWN: [(&str, &str); 3] = [
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];
const FOREIGN: [(&str, &str); 4] = [
    ("accept", "text/html"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

fn clears(answer: &Answer) -> bool {
    answer
        .set_cookie("session")
        .is_some_and(|line| line.starts_with("session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"))
}

// conformance: A-055 B-131 B-132
#[tokio::test]
async fn signing_out_ends_the_session_here_and_then_at_the_provider() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let mut thief = browser.clone();
    let answer = browser.visit("/api/auth/logout").await;
    assert_eq!((answer.status, answer.header("cache-control")), (302, "no-store"));
    assert!(clears(&answer), "{answer:?}");
    assert_eq!(answer.header("clear-site-data"), "\"cache\"");
    let url = url::Url::parse(answer.location()).unwrap();
    assert!(
        answer
            .location()
            .starts_with(&stack.provider.url(Endpoint::EndSession))
    );
    let has = |name: &str| {
        url.query_pairs()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    assert!(has("id_token_hint").is_some() && has("state").is_some());
    assert_eq!(has("client_id").as_deref(), Some(scripted_provider::CLIENT_ID));
    assert_eq!(
        has("post_logout_redirect_uri"),
        Some(format!("{}/", stack.base()))
    );
    assert_eq!(
        thief.get("/api/auth/me").await.status,
        204,
        "the old cookie is worth nothing"
    );
}

// conformance: B-135
#[tokio::test]
async fn without_a_session_the_answer_is_the_target_and_the_same_clearing() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let answer = browser.visit("/api/auth/logout?returnTo=/bye").await;
    assert_eq!(
        (answer.status, answer.location()),
        (302, format!("{}/bye", stack.base()).as_str())
    );
    assert!(clears(&answer));
    let answer = browser
        .visit("/api/auth/logout?returnTo=https://evil.example/")
        .await;
    assert_eq!(answer.location(), format!("{}/", stack.base()));
}

// conformance: B-006
#[tokio::test]
async fn the_list_of_further_places_is_honoured_exactly() {
    let stack = Stack::with(&[
        ("EDGE_LOGOUT_RETURN_TO_ALLOWED", "https://www.example/bye"),
        ("EDGE_IDP_LOGOUT", "off"),
    ])
    .await;
    for (return_to, lands) in [
        ("https://www.example/bye", "https://www.example/bye#".to_owned()),
        (
            "https://www.example/other",
            format!("{}/#signed-out-here-only", stack.base()),
        ),
    ] {
        let mut browser = stack.browser();
        browser.sign_in().await;
        assert_eq!(
            browser
                .visit(&format!("/api/auth/logout?returnTo={return_to}"))
                .await
                .location(),
            lands
        );
    }
}

// conformance: B-053
#[tokio::test]
async fn navigations_of_our_own_sign_out_and_everything_cross_site_does_not() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    for (mode, dest) in [("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty")] {
        let headers = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", mode),
            ("sec-fetch-dest", dest),
        ];
        let answer = browser.get_with("/api/auth/logout", &headers).await;
        assert_eq!(answer.status, 403, "{dest}");
        assert!(answer.set_cookies().is_empty());
    }
    for ahead in [
        ("purpose", "prefetch"),
        ("sec-purpose", "prefetch;prerender"),
        ("x-moz", "prefetch"),
    ] {
        let answer = browser
            .get_with("/api/auth/logout", &[OWN[0], OWN[1], OWN[2], ahead])
            .await;
        assert_eq!((answer.status, answer.set_cookies().len()), (204, 0), "{ahead:?}");
    }
    let looked = browser
        .send(reqwest::Method::HEAD, "/api/auth/logout", &OWN, None)
        .await;
    assert_eq!((looked.status, looked.set_cookies().len()), (204, 0));
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
    assert_eq!(
        browser.clone().get_with("/api/auth/logout", &OWN).await.status,
        302
    );
    let mut plain = stack.browser();
    plain.sign_in().await;
    assert_eq!(
        plain.get("/api/auth/logout").await.status,
        302,
        "no Fetch Metadata at all"
    );
}

// conformance: B-053 B-034 B-019
#[tokio::test]
async fn a_link_on_another_site_gets_a_page_that_asks_and_its_button_signs_out() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let page = browser.get_with("/api/auth/logout?returnTo=/bye", &FOREIGN).await;
    assert_eq!((page.status, page.header("cache-control")), (200, "no-store"));
    assert!(page.set_cookies().is_empty() && page.body.contains("method=\"post\""));
    assert!(
        page.header("content-security-policy")
            .contains("frame-ancestors 'none'")
    );
    assert_eq!(
        browser.get("/api/auth/me").await.status,
        200,
        "nothing has happened yet"
    );
    let value = |name: &str| {
        let at = page
            .body
            .split(&format!("name=\"{name}\" value=\""))
            .nth(1)
            .unwrap();
        at.split('"').next().unwrap().to_owned()
    };
    let form: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(["csrf_token", "returnTo"].map(|name| (name, value(name))))
        .finish();
    let origin = stack.base().to_owned();
    let ours = [("origin", origin.as_str()), ("sec-fetch-site", "same-origin")];
    let mut other = stack.browser();
    other.sign_in().await;
    assert_eq!(
        other.post("/api/auth/logout", &ours, &form).await.status,
        403,
        "the token is bound to its session"
    );
    let answer = browser.post("/api/auth/logout", &ours, &form).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    assert!(clears(&answer));
}

// conformance: B-046 B-053
#[tokio::test]
async fn a_post_needs_the_proof() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let origin = stack.base().to_owned();
    for headers in [
        vec![],
        vec![("x-csrf", "1")],
        vec![("origin", origin.as_str())],
        vec![("x-csrf", "1"), ("origin", "https://evil.example")],
        vec![("x-csrf", "1"), ("origin", "null")],
        vec![("x-csrf", "1"), ("sec-fetch-site", "cross-site")],
        vec![("x-csrf", "1"), ("sec-fetch-site", "same-site")],
    ] {
        let answer = browser.post("/api/auth/logout", &headers, "").await;
        assert_eq!(
            (answer.status, answer.set_cookies().len()),
            (403, 0),
            "{headers:?}"
        );
    }
    let answer = browser
        .post("/api/auth/logout", &[("x-csrf", "1"), ("origin", &origin)], "")
        .await;
    assert_eq!(answer.status, 303);
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}

// conformance: B-131 B-134
#[tokio::test]
async fn a_provider_without_the_endpoint_or_down_still_means_signed_out() {
    let stack = Stack::start().await;
    stack
        .provider
        .script(|script| _ = script.metadata.insert("end_session_endpoint".into(), json!(null)));
    let mut browser = stack.browser();
    browser.sign_in().await;
    let answer = browser.visit("/api/auth/logout").await;
    assert_eq!(
        (answer.status, answer.location()),
        (302, format!("{}/#signed-out-here-only", stack.base()).as_str())
    );
    assert!(clears(&answer));
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}

// conformance: B-138
#[tokio::test]
async fn auth0_style_logout_is_there_by_configuration() {
    let stack = Stack::with(&[("EDGE_IDP_LOGOUT", "auth0")]).await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let answer = browser.visit("/api/auth/logout").await;
    assert!(
        answer.location().contains("/v2/logout?") && answer.location().contains("returnTo="),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_provider_with_parameters_of_its_own_gets_them_and_no_others() {
    for (setting, leads, back) in [
        ("cognito", "/front/finish?client_id=vestibule&", "logout_uri"),
        (
            "{end_session_endpoint}?TargetResource={return_to}",
            "/front/finish?",
            "TargetResource",
        ),
        (
            "{issuer}/old/logout?redirect_uri={return_to}",
            "/old/logout?",
            "redirect_uri",
        ),
    ] {
        let stack = Stack::with(&[("EDGE_IDP_LOGOUT", setting)]).await;
        let mut browser = stack.browser();
        browser.sign_in().await;
        let answer = browser.visit("/api/auth/logout").await;
        let location = Url::parse(answer.location()).unwrap();
        let begins = format!("{}{leads}", stack.provider.issuer());
        assert!(location.as_str().starts_with(&begins), "{setting}: {location}");
        let named = location.query_pairs().find(|(name, _)| name == back);
        assert_eq!(named.unwrap().1, format!("{}/", stack.base()), "{setting}");
        assert!(
            !location.as_str().contains("post_logout_redirect_uri"),
            "{setting}"
        );
        assert!(clears(&answer));
    }
    // Without the endpoint the sign-out ends at the edge.
    let stack = Stack::with(&[("EDGE_IDP_LOGOUT", "cognito")]).await;
    stack.provider.script(|script| {
        script.metadata.insert("end_session_endpoint".into(), json!(null));
    });
    let mut browser = stack.browser();
    browser.sign_in().await;
    let answer = browser.visit("/api/auth/logout").await;
    assert_eq!(
        answer.location(),
        format!("{}/#signed-out-here-only", stack.base())
    );
}

/// Whether the answer deletes both pending sign-ins, with these attributes.
fn forgets(answer: &Answer, pending: &Browser, attributes: &str) {
    let names = pending.jar.keys().filter(|name| name.contains("_login_"));
    let names = names.collect::<Vec<_>>();
    assert_eq!(names.len(), 2);
    for name in names {
        let line = answer.set_cookie(name).unwrap_or_default();
        assert_eq!(line, format!("{name}={attributes}; Max-Age=0"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_sign_out_takes_pending_sign_ins_away_in_every_form_of_it() {
    let https = [("EDGE_BASE_URL", "https://app.example")];
    let by_form = [https[0], ("OIDC_RESPONSE_MODE", "form_post")];
    for (settings, attributes) in [
        (&[][..], "; Path=/; HttpOnly; SameSite=Lax"),
        (&https, "; Path=/; HttpOnly; Secure; SameSite=Lax"),
        (&by_form, "; Path=/; HttpOnly; Secure; SameSite=None"),
    ] {
        let stack = Stack::with(settings).await;
        let mut browser = stack.browser();
        let abandoned = browser.visit("/api/auth/login").await.location().to_owned();
        browser.visit("/api/auth/login").await;
        let before = browser.clone();
        // Typed, linked by our own page, or posted by it; with a session or, as here, without.
        let own = stack.base().to_owned();
        let proof = [
            ("x-csrf", "1"),
            ("sec-fetch-site", "same-origin"),
            ("origin", own.as_str()),
        ];
        forgets(
            &before.clone().visit("/api/auth/logout").await,
            &before,
            attributes,
        );
        let posted = before.clone().post("/api/auth/logout", &proof, "").await;
        assert_eq!(posted.status, 303, "{posted:?}");
        forgets(&posted, &before, attributes);
        // Another site can send the request, but deletes nothing.
        let linked = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        let confirmation = before.clone().get_with("/api/auth/logout", &linked).await;
        assert!(
            confirmation
                .set_cookies()
                .iter()
                .all(|line| !line.contains("_login_")),
            "{confirmation:?}"
        );
        let refused = before.clone().post("/api/auth/logout", &[], "").await;
        assert_eq!((refused.status, refused.set_cookies().len()), (403, 0));

        browser.visit("/api/auth/logout").await;
        assert!(browser.jar.is_empty(), "{:?}", browser.jar);
        if settings.is_empty() {
            let callback = browser.authorize(&abandoned).await;
            assert_eq!(
                browser.visit(&callback).await.status,
                400,
                "what was pending is over"
            );
        }
    }
}

#[tokio::test]
async fn a_sign_out_takes_pending_sign_ins_away_also_in_an_outage_or_when_confirmed() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    browser.visit("/api/auth/login").await;
    browser.visit("/api/auth/login").await;
    let before = browser.clone();
    let attributes = "; Path=/; HttpOnly; SameSite=Lax";
    let linked = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    let page = browser.get_with("/api/auth/logout", &linked).await;
    assert_eq!((page.status, page.set_cookies().len()), (200, 0));
    let token = page.body.split("name=\"csrf_token\" value=\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    let own = stack.base().to_owned();
    let headers = [("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
    stack.sessions.stop().await;
    let form = format!("csrf_token={token}");
    let down = browser.clone().post("/api/auth/logout", &headers, &form).await;
    assert_eq!(down.status, 503);
    forgets(&down, &before, attributes);
    let down = browser.clone().visit("/api/auth/logout").await;
    assert_eq!(down.status, 503);
    forgets(&down, &before, attributes);
    let down = browser.clone().get("/api/auth/logout").await;
    assert_eq!(
        (down.status, down.json()["error"].as_str()),
        (503, Some("ERR_LOGOUT_HANDLER_FAILURE"))
    );
    forgets(&down, &before, attributes);
    stack.sessions.start_again().await;
    let answered = browser.post("/api/auth/logout", &headers, &form).await;
    assert_eq!(answered.status, 303, "{answered:?}");
    forgets(&answered, &before, attributes);
    assert!(browser.jar.is_empty());
}
