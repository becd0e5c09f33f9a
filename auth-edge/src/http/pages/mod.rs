//! The edge's own small pages: what happened, one next step, the request ID to quote.
//!
//! Invariants
//! - Every value put into a page is escaped.
//! - The one style sheet is allowed by its hash, nothing else is allowed at all.
//!
//! Deliberately absent: scripts, pictures, fonts, templates.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;

/// The description of the unauthorized answer, word for word.
pub(crate) const NOT_AUTHENTICATED: &str = "The user does not have an active session or is not authenticated";

const STYLE: &str = include_str!("page.css");

/// What a page may do, without its `form-action`.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(digest::digest(&digest::SHA256, STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; frame-ancestors 'none'")
});

/// The one next step a page offers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextStep<'a> {
    /// The start page.
    Home,
    /// Sign-in again, at this URL.
    TryAgain(&'a str),
    /// Sign-in in another tab, at this URL, so that this one keeps what was entered.
    SignInElsewhere(&'a str),
}

/// A page that says what happened.
#[must_use]
pub(crate) fn message(title: &str, words: &str, action: NextStep<'_>, request_id: Option<&str>) -> Response {
    let (href, label, target) = match action {
        NextStep::Home => ("/", "Go to the start page", ""),
        NextStep::TryAgain(url) => (url, "Try again", ""),
        NextStep::SignInElsewhere(url) => (url, "Sign in", " target=\"_blank\" rel=\"noopener\""),
    };
    let mut main = format!(
        "<h1>{}</h1><p>{}</p><p><a class=\"button\" href=\"{}\"{target}>{label}</a></p>",
        escape(title),
        escape(words),
        escape(href)
    );
    if let Some(id) = request_id.filter(|id| !id.is_empty()) {
        // Writing to a string cannot fail.
        let _ = write!(
            main,
            "<p class=\"quiet\">Request ID <code>{}</code></p>",
            escape(id)
        );
    }
    page(title, &main, "form-action 'none'")
}

/// The page that asks whether to sign out, since the request came from another site. Its button posts.
#[must_use]
pub(crate) fn confirm_logout(
    action: &str,
    csrf_token: &str,
    return_to: Option<&str>,
    provider_origin: &str,
) -> Response {
    let return_to = return_to
        .map(|url| {
            format!(
                "<input type=\"hidden\" name=\"returnTo\" value=\"{}\">",
                escape(url)
            )
        })
        .unwrap_or_default();
    let main = format!(
        "<h1>Sign out?</h1><p>Another site has sent you here to sign out. Nothing has happened yet.</p>\
         <form method=\"post\" action=\"{}\"><input type=\"hidden\" name=\"csrf_token\" value=\"{}\">{return_to}\
         <p><button type=\"submit\">Sign out</button> <a class=\"second\" href=\"/\">Stay signed in</a></p></form>",
        escape(action),
        escape(csrf_token),
    );
    // Browsers apply form-action to the redirects that follow the form: to the provider, and on from there.
    let form_action = format!("form-action 'self' https: {provider_origin}");
    page("Sign out?", &main, &form_action)
}

/// A page that goes on to this URL by itself, as a navigation of our own site.
#[must_use]
pub(crate) fn onward(url: &str) -> Response {
    let main = format!("<p><a class=\"button\" href=\"{}\">Go on</a></p>", escape(url));
    let mut response = page("One moment", &main, "form-action 'none'");
    if let Ok(refresh) = HeaderValue::try_from(format!("0; url={url}")) {
        response.headers_mut().insert(header::REFRESH, refresh);
    }
    response
}

/// An empty page that only the provider may frame.
#[must_use]
pub(crate) fn framed_by(origin: &str) -> Response {
    let mut response =
        Html("<!doctype html><html lang=\"en\"><title>Signed out</title></html>").into_response();
    let policy = format!("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors {origin}");
    if let Ok(policy) = HeaderValue::try_from(policy) {
        response
            .headers_mut()
            .insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn page(title: &str, main: &str, form_action: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\
         <style>{STYLE}</style></head><body><main>{main}</main></body></html>",
        escape(title)
    );
    let mut response = Html(html).into_response();
    let policy = format!("{}; {form_action}", *POLICY);
    if let Ok(policy) = HeaderValue::try_from(policy) {
        response
            .headers_mut()
            .insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Text for an HTML text node or a quoted attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_value_stays_text() {
        assert_eq!(escape("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    }

    #[test]
    fn a_page_allows_its_own_style_and_nothing_else() {
        let response = message("A title", "Words", NextStep::Home, Some("id"));
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-"),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
}
