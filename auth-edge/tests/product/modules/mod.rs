//! The modules of the OpenID Foundation's relying-party test plans. In each, the provider does one thing, and
//! the client must accept or reject it, in every response mode.

mod client_proof;
mod dpop;
mod id_tokens;
mod logout;
mod refresh;
mod requests;
mod responses;
mod userinfo;

use scripted_provider::{Endpoint, Script};

use crate::support::{Answer, Browser, Stack};

/// The stack in one response mode; it reads userinfo at sign-in.
struct Plan {
    stack: Stack,
    form_post: bool,
}

impl Plan {
    /// One stack with answers in the query, and one with answers as forms.
    async fn both(settings: &[(&str, &str)]) -> [Self; 2] {
        let query = [&[("EDGE_USERINFO_AT_LOGIN", "always")], settings].concat();
        let form = [
            query.as_slice(),
            &[
                ("OIDC_RESPONSE_MODE", "form_post"),
                ("EDGE_BASE_URL", "https://app.example"),
            ],
        ]
        .concat();
        [
            Self {
                stack: Stack::with(&query).await,
                form_post: false,
            },
            Self {
                stack: Stack::with(&form).await,
                form_post: true,
            },
        ]
    }

    /// Goes to the provider and back. Returns the callback's answer.
    async fn sign_in(&self, browser: &mut Browser) -> Answer {
        let login = browser.visit("/api/auth/login").await;
        assert_eq!(login.status, 302, "{login:?}");
        if self.form_post {
            let form = posted(login.location()).await;
            let cross_site = [("sec-fetch-site", "cross-site"), ("accept", "text/html")];
            browser.post("/api/auth/callback", &cross_site, &form).await
        } else {
            let callback = browser.authorize(login.location()).await;
            browser.visit(&callback).await
        }
    }
}

/// The form that the provider's page would post.
async fn posted(authorization: &str) -> String {
    let page = reqwest::get(authorization).await.unwrap().text().await.unwrap();
    let fields = page.split("<input type=\"hidden\" name=\"").skip(1).map(|rest| {
        let (name, rest) = rest.split_once("\" value=\"").unwrap();
        let value = rest.split('"').next().unwrap();
        let value = value
            .replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&amp;", "&");
        (name.to_owned(), value)
    });
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

/// The ID token is rejected: 400, no session, and no further call to the provider.
async fn rejected(settings: &[(&str, &str)], misbehave: impl Fn(&mut Script)) {
    for plan in Plan::both(settings).await {
        plan.stack.provider.script(&misbehave);
        let mut browser = plan.stack.browser();
        let answer = plan.sign_in(&mut browser).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.set_cookie("session").is_none(), "{answer:?}");
        assert_eq!(plan.stack.provider.calls(Endpoint::Token), 1);
        assert_eq!(
            plan.stack.provider.calls(Endpoint::Userinfo),
            0,
            "no call after a bad token"
        );
        assert_eq!(browser.get("/api/auth/me").await.status, 204);
    }
}

/// The sign-in succeeds in both modes. Returns the stacks and the signed-in browsers.
async fn accepted(settings: &[(&str, &str)], behave: impl Fn(&mut Script)) -> Vec<(Stack, Browser)> {
    let mut signed_in = Vec::new();
    for plan in Plan::both(settings).await {
        plan.stack.provider.script(&behave);
        let mut browser = plan.stack.browser();
        let answer = plan.sign_in(&mut browser).await;
        let status = if plan.form_post { 303 } else { 302 };
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(browser.get("/api/auth/me").await.json()["sub"], "alice");
        signed_in.push((plan.stack, browser));
    }
    signed_in
}
