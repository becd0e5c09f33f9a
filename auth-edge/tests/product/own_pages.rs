//! The edge's own pages: in the visitor's language, with the operator's design.

use crate::support::{Answer, Browser, Stack};

async fn in_language(browser: &mut Browser, path: &str, accepts: &str) -> Answer {
    browser
        .get_with(path, &[("accept", "text/html"), ("accept-language", accepts)])
        .await
}

#[tokio::test]
async fn an_error_page_is_in_the_visitors_language() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    for (accepts, html, title, label) in [
        (
            "en-GB,en;q=0.9",
            "<html lang=\"en\" dir=\"ltr\">",
            "Page not found",
            "Request ID",
        ),
        (
            "ar-EG",
            "<html lang=\"ar\" dir=\"rtl\">",
            "الصفحة غير موجودة",
            "معرّف الطلب",
        ),
        (
            "de-AT,en;q=0.5",
            "<html lang=\"de\" dir=\"ltr\">",
            "Seite nicht gefunden",
            "Anfragenummer",
        ),
        (
            "nl, fr;q=0.4",
            "<html lang=\"fr\" dir=\"ltr\">",
            "Page introuvable",
            "Identifiant",
        ),
        (
            "es-419",
            "<html lang=\"es\" dir=\"ltr\">",
            "Página no encontrada",
            "Identificador",
        ),
        (
            "ja",
            "<html lang=\"ja\" dir=\"ltr\">",
            "ページが見つかりません",
            "リクエスト ID",
        ),
        (
            "<script>, nl",
            "<html lang=\"en\" dir=\"ltr\">",
            "Page not found",
            "Request ID",
        ),
    ] {
        let page = in_language(&mut browser, "/nothing/here", accepts).await;
        assert_eq!(page.status, 404);
        assert_eq!(page.header("vary"), "accept-language");
        for text in [html, title, label, page.header("x-request-id")] {
            assert!(page.body.contains(text), "{accepts}: {text}: {}", page.body);
        }
    }
}

#[tokio::test]
async fn what_programs_read_is_english_whatever_they_accept() {
    let stack = Stack::start().await;
    let headers = [("accept", "application/json"), ("accept-language", "ja")];
    let answer = stack.browser().get_with("/nothing/here", &headers).await;
    assert_eq!(
        answer.json()["error_description"],
        "There is nothing at this address."
    );
    let headers = [("accept", "text/html"), ("accept-language", "ja")];
    let unauthorized = stack.browser().get_with("/api/auth/401", &headers).await;
    assert_eq!(
        unauthorized.body,
        r#"{"error":"not_authenticated","description":"The user does not have an active session or is not authenticated"}"#
    );
}

#[tokio::test]
async fn the_question_whether_to_sign_out_and_a_refused_sign_in_are_in_it_too() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let navigation = [
        ("accept", "text/html"),
        ("accept-language", "de"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-site", "cross-site"),
    ];
    let refused = browser
        .get_with("/api/auth/callback?state=unknown&code=c", &navigation)
        .await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("Die Anmeldung ist fehlgeschlagen"),
        "{}",
        refused.body
    );
    assert!(
        refused.body.contains("nicht in diesem Browser begonnen"),
        "{}",
        refused.body
    );
    browser.sign_in().await;
    let question = browser.get_with("/api/auth/logout", &navigation).await;
    assert_eq!(question.status, 200);
    for text in [
        "<html lang=\"de\"",
        "<h1>Abmelden?</h1>",
        ">Angemeldet bleiben</a>",
    ] {
        assert!(question.body.contains(text), "{text}: {}", question.body);
    }
}

#[tokio::test]
async fn an_own_style_sheet_and_logo_are_on_every_page_and_allow_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (style, logo) = (folder.path().join("style.css"), folder.path().join("logo.svg"));
    std::fs::write(&style, "main{border-radius:0}").unwrap();
    std::fs::write(&logo, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    let stack = Stack::with(&[("EDGE_PAGES_DIR", folder.path().to_str().unwrap())]).await;
    let mut browser = stack.browser();
    let page = browser.visit("/nothing/here").await;
    assert!(
        page.body.contains("<style>main{border-radius:0}</style>"),
        "{}",
        page.body
    );
    let policy = page.header("content-security-policy").to_owned();
    assert!(
        policy.contains("img-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(policy.matches("'sha256-").count(), 2, "{policy}");
    assert!(page.body.contains("src=\"/api/auth/logo\""), "{}", page.body);
    let picture = browser.get("/api/auth/logo").await;
    assert_eq!(picture.status, 200);
    assert_eq!(picture.header("content-type"), "image/svg+xml");
    assert_eq!(picture.header("cache-control"), "public, max-age=3600");
    assert_eq!(
        picture.header("content-security-policy"),
        "default-src 'none'; sandbox"
    );
    assert_eq!(picture.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn without_a_logo_there_is_none() {
    let stack = Stack::start().await;
    assert_eq!(stack.browser().get("/api/auth/logo").await.status, 404);
}
