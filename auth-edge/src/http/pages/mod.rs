//! The edge's own small pages: what happened, one next step, the request ID to quote.
//!
//! Invariants
//! - Every value put into a page is escaped.
//! - The style sheets are allowed by their hash, a logo where there is one, and nothing else but what a page itself needs.
//! - Pages are in the visitor's language; what programs read is English.
//!
//! Deliberately absent: fonts, templates ([`look`] says why), anything from another origin.

mod catalogue;
mod html;
pub(crate) mod language;
pub(crate) mod look;

use std::fmt::Write as _;
use std::sync::Arc;

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};

pub(crate) use self::html::escape;
use self::language::Language;
use self::look::Look;
use crate::values::reserved::LOGOUT_PATH;

/// The description of the unauthorized answer, word for word.
pub(crate) const NOT_AUTHENTICATED: &str = "The user does not have an active session or is not authenticated";

/// Where a form may lead whose answers we do not know: browsers apply `form-action` to the redirects that follow too.
pub(crate) const NO_FORMS: &str = "'none'";

/// How long a link opener's page waits before it requests its address again, in seconds: some show pages all the same, and a
/// loop of theirs should be slow.
const REOPEN_SECS: u64 = 1;

/// Who may frame a page, as every look says and as the page of a frame says.
const NO_FRAMES: &str = "frame-ancestors 'none'";
const OWN_FRAMES: &str = "frame-ancestors 'self'";

/// The start page, as a step.
const START: (&str, &str) = ("/", "Go to the start page");

/// The one next step that a page offers. As an extension of a failure, it is what the failure's page offers.
#[derive(Clone, Debug)]
pub(crate) enum NextStep {
    /// The start page.
    Home,
    /// Sign-in again, at this URL.
    TryAgain(String),
    /// The page again, at this URL. After `Retry-After` it goes there by itself.
    Retry(String),
    /// The page again, at the first URL, or sign-in, at the second.
    RetryOrSignIn(String, String),
    /// Sign-in, at this URL.
    SignIn(String),
    /// Sign-in once more, at this URL, or leaving.
    SignInAgainOrOut(String),
    /// Sign-in in another tab, at this URL, so that this one keeps what was entered.
    SignInElsewhere(String),
    /// Sign-in in the whole window, at this URL: the page stands in a frame.
    SignInOutOfFrame(String),
    /// Sign-in as somebody else, at this URL.
    OtherAccount(String),
}

impl NextStep {
    /// The failure whose page offers it.
    #[must_use]
    pub(crate) fn of(self, mut failure: Response) -> Response {
        failure.extensions_mut().insert(self);
        failure
    }
}

/// What the pages look like. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    look: Arc<Look>,
}

impl Pages {
    /// Pages with this look.
    #[must_use]
    pub(crate) fn new(look: Look) -> Self {
        Self { look: Arc::new(look) }
    }

    /// A page that says what happened. Our own pages may frame the one that leads out of a frame: a provider shows nothing there.
    #[must_use]
    pub(crate) fn message(
        &self,
        language: Language,
        (title, words): (&str, &str),
        next: &NextStep,
        request_id: Option<&str>,
    ) -> Response {
        let main = message_main(language, (title, words), next, request_id);
        let mut response = self.page(language, language.say(title), &main, NO_FORMS, None);
        if matches!(next, NextStep::SignInOutOfFrame(_))
            && let Some(policy) = response.headers_mut().get_mut(header::CONTENT_SECURITY_POLICY)
            && let Ok(framed) = policy.to_str().map(|text| text.replace(NO_FRAMES, OWN_FRAMES))
            && let Ok(framed) = HeaderValue::try_from(framed)
        {
            *policy = framed;
        }
        response
    }

    /// The page that asks whether to sign out, since the request came from another site. Its button posts.
    #[must_use]
    pub(crate) fn confirm_logout(
        &self,
        language: Language,
        csrf_token: &str,
        return_to: Option<&str>,
        provider_origin: &str,
    ) -> Response {
        let return_to = return_to.map(|url| hidden_input("returnTo", url));
        let title = language.say("Sign out?");
        let words = language.say("Another site has sent you here to sign out. Nothing has happened yet.");
        let main = format!(
            "<h1>{}</h1><p>{}</p>\
             <form method=\"post\" action=\"{LOGOUT_PATH}\">{}{}\
             <p class=\"steps\"><button type=\"submit\">{}</button> <a class=\"second\" href=\"/\">{}</a></p></form>",
            escape(title),
            escape(words),
            hidden_input("csrf_token", csrf_token),
            return_to.unwrap_or_default(),
            escape(language.say("Sign out")),
            escape(language.say("Stay signed in")),
        );
        // Browsers apply form-action to the redirects that follow the form: to the provider, and on from there.
        self.page(
            language,
            title,
            &main,
            &format!("'self' https: {provider_origin}"),
            None,
        )
    }

    /// A page that goes on to this URL by itself, as a navigation of our own site.
    #[must_use]
    pub(crate) fn onward(&self, language: Language, url: &str) -> Response {
        self.go_on(language, None, url, 0)
    }

    /// A page that goes on to this URL by itself, after some seconds.
    fn go_on(&self, language: Language, words: Option<&str>, url: &str, secs: u64) -> Response {
        let title = language.say("One moment");
        let explain = |words| format!("<h1>{}</h1><p>{}</p>", escape(title), escape(language.say(words)));
        let main = format!(
            "{}<p><a class=\"button\" href=\"{}\">{}</a></p>",
            words.map(explain).unwrap_or_default(),
            escape(url),
            escape(language.say("Go on"))
        );
        let mut response = self.page(language, title, &main, NO_FORMS, None);
        if let Ok(refresh) = HeaderValue::try_from(format!("{secs}; url={url}")) {
            response.headers_mut().insert(header::REFRESH, refresh);
        }
        response
    }

    /// A page that requests its own address again, for a client that looks up a link without the browser's cookies: the browser
    /// then opens that address, and not a login page where the client's own sign-in ended.
    #[must_use]
    pub(crate) fn reopen(&self, language: Language, url: &str) -> Response {
        self.go_on(language, None, url, REOPEN_SECS)
    }

    /// A page for the moment until a browser has tied its session to its device: it asks for itself again, at this URL.
    #[must_use]
    pub(crate) fn binding(&self, language: Language, url: &str) -> Response {
        let words = "Your browser ties this sign-in to your device.";
        self.go_on(language, Some(words), url, 1)
    }
}

/// What a message says, as HTML.
pub(crate) fn message_main(
    language: Language,
    (title, words): (&str, &str),
    next: &NextStep,
    request_id: Option<&str>,
) -> String {
    let (first, attributes, second) = match next {
        NextStep::Home => (START, "", None),
        NextStep::TryAgain(url) | NextStep::Retry(url) => ((url.as_str(), "Try again"), "", Some(START)),
        NextStep::RetryOrSignIn(url, login) => {
            ((url.as_str(), "Try again"), "", Some((login.as_str(), "Sign in")))
        }
        NextStep::SignIn(url) => ((url.as_str(), "Sign in"), "", None),
        NextStep::SignInAgainOrOut(url) => (
            (url.as_str(), "Sign in again"),
            "",
            Some((LOGOUT_PATH, "Sign out")),
        ),
        NextStep::OtherAccount(url) => ((url.as_str(), "Sign in as somebody else"), "", None),
        NextStep::SignInOutOfFrame(url) => ((url.as_str(), "Sign in"), " target=\"_top\"", None),
        NextStep::SignInElsewhere(url) => (
            (url.as_str(), "Sign in"),
            " target=\"_blank\" rel=\"noopener\"",
            None,
        ),
    };
    let link = |class: &str, attributes: &str, (href, label): (&str, &str)| {
        let (href, label) = (escape(href), escape(language.say(label)));
        format!("<a class=\"{class}\" href=\"{href}\"{attributes}>{label}</a>")
    };
    let second = second.map(|second| format!(" {}", link("second", "", second)));
    let mut main = format!(
        "<h1>{}</h1><p>{}</p><p>{}{}</p>",
        escape(language.say(title)),
        escape(language.say(words)),
        link("button", attributes, first),
        second.unwrap_or_default(),
    );
    if let Some(id) = request_id.filter(|id| !id.is_empty()) {
        // Writing to a string cannot fail.
        let _ = write!(
            main,
            "<p class=\"quiet\">{} <code dir=\"ltr\">{}</code></p>",
            escape(language.say("Request ID")),
            escape(id)
        );
    }
    main
}

/// A field that a form of ours sends along.
pub(crate) fn hidden_input(name: &str, value: &str) -> String {
    let (name, value) = (escape(name), escape(value));
    format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">")
}

/// An empty page that only the provider may frame.
#[must_use]
pub(crate) fn framed_by(origin: &str) -> Response {
    let policy = format!("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors {origin}");
    let html = Html("<!doctype html><html lang=\"en\"><title>Signed out</title></html>");
    ([(header::CONTENT_SECURITY_POLICY, policy)], html).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_allows_its_own_style_and_nothing_else() {
        let pages = Pages::new(Look::default());
        let response = pages.message(
            Language::default(),
            ("A title", "Words"),
            &NextStep::Home,
            Some("id"),
        );
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-"),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'")
                && policy.contains("form-action 'none'")
                && !policy.contains("unsafe")
                && !policy.contains("script")
                && !policy.contains("self"),
            "{policy}"
        );
    }
}
