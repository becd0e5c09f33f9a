//! What all pages are written with: escaping, the frame around what a page says, and its policy.
//!
//! Invariant: a page allows our style sheet, the operator's, and its own script if it has one, each by its hash; a picture
//! only where there is a logo; nothing else.

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest;

use super::language::Language;
use super::look::Look;

/// The style sheet of all pages.
pub(super) const STYLE: &str = include_str!("page.css");

/// A page to be written.
pub(super) struct HtmlDocument<'a> {
    /// The language of its words.
    pub(super) language: Language,
    /// How the pages look.
    pub(super) look: &'a Look,
    /// Its title, in that language.
    pub(super) title: &'a str,
    /// What stands in it: HTML, whatever comes from elsewhere escaped.
    pub(super) main: &'a str,
    /// Where its forms may lead, as `form-action` has it.
    pub(super) form_action: &'a str,
    /// The text of its script, if it has one.
    pub(super) script: Option<&'static str>,
}

impl HtmlDocument<'_> {
    /// The answer that shows it, with status 200.
    pub(super) fn into_response(self) -> Response {
        let (tag, direction) = (self.language.tag(), self.language.direction());
        let script = self.script.map(|script| format!("<script>{script}</script>"));
        let html = format!(
            "<!doctype html><html lang=\"{tag}\" dir=\"{direction}\"><head><meta charset=\"utf-8\"><title>{}</title>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\
             <style>{STYLE}</style>{}</head><body><main>{}{}</main>{}</body></html>",
            escape(self.title),
            self.look.style_element(),
            self.look.logo_element(),
            self.main,
            script.as_deref().unwrap_or_default(),
        );
        let mut policy = format!("{}; form-action {}", self.look.policy(), self.form_action);
        if let Some(script) = self.script {
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

/// What allows an element with this text and no other (Content Security Policy Level 3, section 2.3.1).
pub(super) fn source_of(text: &str) -> String {
    let hash = STANDARD.encode(digest::digest(&digest::SHA256, text.as_bytes()));
    format!("'sha256-{hash}'")
}

/// Text for an HTML text node or a quoted attribute. Line ends are written as references, or parsers would change them.
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
