//! Cookies from elsewhere: signed with a dropped secret, or by another environment.

use chassis::secret::Secret;

use crate::support::{Browser, SECRET, Stack};

const NEXT: &str = "the next secret, long enough as well";

async fn behind(stack: &Stack, secrets: &[&str], visitor: &Browser) -> Browser {
    let secrets = secrets.iter().map(|one| Secret::new((*one).to_owned()));
    let secrets: Vec<_> = secrets.collect();
    let mut browser = stack
        .beside_with_settings(|settings| settings.secrets = secrets)
        .await;
    browser.jar = visitor.jar.clone();
    browser
}

#[tokio::test]
async fn a_cookie_lives_as_long_as_its_secret_is_in_the_ring_and_then_costs_no_call() {
    let stack = Stack::start().await;
    let mut visitor = stack.browser();
    visitor.sign_in().await;
    let mut rotating = behind(&stack, &[NEXT, SECRET], &visitor).await;
    assert_eq!(rotating.get("/api/auth/me").await.status, 200);
    // When used again, the cookie is sealed with the new secret.
    stack.advance(120);
    let renewed = rotating.get("/api/auth/me").await;
    assert!(renewed.set_cookie("session").is_some(), "{renewed:?}");

    let mut rotated = behind(&stack, &[NEXT], &visitor).await;
    let calls = stack.sessions.calls();
    for path in ["/api/auth/me", "/api/auth/check"] {
        let answer = rotated.get(path).await;
        assert!([204, 401].contains(&answer.status), "{path}: {answer:?}");
        assert!(answer.set_cookies().is_empty(), "{path}: {answer:?}");
    }
    // The edge checks every two seconds whether the service is there: no more calls than that.
    assert!(stack.sessions.calls() <= calls + 3);
    rotated.jar = rotating.jar.clone();
    assert_eq!(rotated.get("/api/auth/me").await.status, 200);
}

#[tokio::test]
async fn a_cookie_of_another_environment_is_nobody_s_even_under_the_same_secret() {
    let (here, there) = (Stack::start().await, Stack::start().await);
    let mut visitor = here.browser();
    visitor.sign_in().await;
    let mut elsewhere = there.browser();
    elsewhere.jar = visitor.jar.clone();
    assert_eq!(elsewhere.get("/api/auth/me").await.status, 204);
    assert_eq!(elsewhere.get("/api/auth/check").await.status, 401);
    elsewhere.visit("/api/auth/logout").await;
    assert_eq!(
        visitor.get("/api/auth/me").await.status,
        200,
        "nor does it end anything"
    );
}
