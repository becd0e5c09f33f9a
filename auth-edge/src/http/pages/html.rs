//! The HTML of all pages: escaping, the frame around the content, and the security policy.
//!
//! Invariant: a page allows only the edge's and the operator's style sheets and its own script, each by its hash. It
//! allows pictures only with a logo.

use aws_lc_rs::digest;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Pages;
use super::language::Language;

/// The style sheet of all pages.
pub(super) const STYLE: &str = include_str!("page.css");

impl Pages {
    /// A page whose forms lead to `form_action` (a value of that directive; further ones may follow) and whose only
    /// script is `script`.
    /// The caller escapes foreign values in `main`.
    pub(crate) fn page(
        &self,
        language: Language,
        title: &str,
        main: &str,
        form_action: &str,
        script: Option<&'static str>,
    ) -> Response {
        let (tag, direction, look) = (language.tag(), language.direction(), &self.look);
        let html = format!(
            "<!doctype html><html lang=\"{tag}\" dir=\"{direction}\"><head><meta charset=\"utf-8\"><title>{}</title>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\
             <style>{STYLE}</style>{}</head><body><main>{}{main}</main>{}</body></html>",
            escape(title),
            look.style_element(),
            look.logo_element(),
            script
                .map(|script| format!("<script>{script}</script>"))
                .unwrap_or_default(),
        );
        let mut policy = format!("{}; form-action {form_action}", look.policy());
        if let Some(script) = script {
            policy.push_str(&format!("; script-src {}", source_of(script)));
        }
        let mut response = Html(html).into_response();
        let headers = response.headers_mut();
        if let Ok(policy) = HeaderValue::try_from(policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::VARY, HeaderValue::from_static("accept-language"));
        response
    }
}

/// The source that allows only an element with this text (Content Security Policy Level 3, section 2.3.1).
pub(super) fn source_of(text: &str) -> String {
    let hash = STANDARD.encode(digest::digest(&digest::SHA256, text.as_bytes()));
    format!("'sha256-{hash}'")
}

/// Escapes text for an HTML text node or a quoted attribute. Also escapes line ends, which parsers would change.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\r' => escaped.push_str("&#13;"),
            '\n' => escaped.push_str("&#10;"),
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
        assert_eq!(
            escape("<a href='x'>\"&\r\n"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&#13;&#10;"
        );
    }
}
