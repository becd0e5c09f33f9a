//! The edge's own small pages: what happened, one next step, the request ID to quote.
//!
//! Invariants
//! - Every value put into a page is escaped.
//! - The policy allows the style sheets by hash, a logo if there is one, and what the page itself needs.
//! - Pages are in the visitor's language; programs receive English.
//!
//! Not supported: fonts, templates ([`look`] says why), anything from another origin.

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
use crate::values::reserved::{FRAME_CALLBACK_PATH, LOGOUT_PATH};

/// The description in the 401 answer; its wording is fixed.
pub(crate) const NOT_AUTHENTICATED: &str = "The user does not have an active session or is not authenticated";

/// `form-action` of a page without a form: browsers apply it to the redirects after a form too.
pub(crate) const NO_FORMS: &str = "'none'";

/// Seconds before a link opener's page requests its address again. Some link openers run pages, and this slows their
/// loops.
const REOPEN_SECS: u64 = 1;

/// The rule against frames, and its replacement on the page that leads out of a frame.
const NO_FRAMES: &str = "frame-ancestors 'none'";
const OWN_FRAMES: &str = "frame-ancestors 'self'";

/// Begins a sign-in at a click, opens the provider's page in a window, and posts the response that the window sends.
/// The window opens before the request: browsers allow it only right after the click.
const SIGN_IN_BY_POP_UP: &str = r#"(()=>{const form=document.getElementById("signin"),failed=document.getElementById("failed");let popup=null;form.addEventListener("submit",async event=>{event.preventDefault();failed.hidden=true;popup=open("","_blank","popup,width=520,height=720");try{if(popup===null)throw new Error("blocked");const begun=await fetch(form.dataset.login,{method:"POST",headers:{"x-csrf":"1",accept:"application/json"}});const{url}=await begun.json();if(!begun.ok)throw new Error("refused");popup.location.replace(url)}catch{popup?.close();failed.hidden=false}});addEventListener("message",event=>{if(popup===null||event.source!==popup||event.origin!==location.origin||typeof event.data!=="string")return;form.elements.response.value=event.data;form.submit()})})()"#;

/// Sends the response to the page that opened this window, if it is of this very origin, and closes the window.
const HAND_OVER: &str = r#"(()=>{if(!opener)return;opener.postMessage(document.getElementById("response").dataset.sealed,location.origin);close()})()"#;

/// The start page, as a step.
const START: (&str, &str) = ("/", "Go to the start page");

/// The one next step of a page. As an extension of a failure, it is the next step of the failure's page.
#[derive(Clone, Debug)]
pub(crate) enum NextStep {
    /// The start page.
    Home,
    /// Sign in again, at this URL.
    TryAgain(String),
    /// Load the page again, at this URL. After `Retry-After` the page does so by itself.
    Retry(String),
    /// Load the page again, at the first URL, or sign in, at the second.
    RetryOrSignIn(String, String),
    /// Sign in, at this URL.
    SignIn(String),
    /// Sign in again, at this URL, or sign out.
    SignInAgainOrOut(String),
    /// Sign in in another tab, at this URL, so that this tab keeps the entered form.
    SignInElsewhere(String),
    /// Sign in in the whole window, at this URL: the page is in a frame.
    SignInOutOfFrame(String),
    /// Sign in in a pop-up window: the page is in a frame. The URL begins the sign-in.
    SignInByPopUp(String),
    /// Sign in with another account, at this URL.
    OtherAccount(String),
}

impl NextStep {
    /// Adds this step to the failure.
    #[must_use]
    pub(crate) fn of(self, mut failure: Response) -> Response {
        failure.extensions_mut().insert(self);
        failure
    }

    /// Whether this step is for a page in a frame that has no session.
    #[must_use]
    pub(crate) fn is_in_frame(&self) -> bool {
        matches!(self, Self::SignInOutOfFrame(_) | Self::SignInByPopUp(_))
    }
}

/// The renderer of the pages. Clones share the look.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    look: Arc<Look>,
    /// The rule for frames that lists the origins that may embed messages; `None` without such origins.
    embedding: Option<Arc<str>>,
}

impl Pages {
    /// Pages with this look.
    #[must_use]
    pub(crate) fn new(look: Look) -> Self {
        Self {
            look: Arc::new(look),
            embedding: None,
        }
    }

    /// The same pages, whose messages these origins may embed.
    #[must_use]
    pub(crate) fn embedded_in(self, origins: &[String]) -> Self {
        let embedding = (!origins.is_empty()).then(|| format!("{OWN_FRAMES} {}", origins.join(" ")).into());
        Self { embedding, ..self }
    }

    /// Whether other sites may embed messages.
    #[must_use]
    pub(crate) fn is_embedded(&self) -> bool {
        self.embedding.is_some()
    }

    /// A page with a message. Own pages may frame the `SignInOutOfFrame` page: a provider's page refuses frames.
    /// Configured origins may frame all messages.
    #[must_use]
    pub(crate) fn message(
        &self,
        language: Language,
        (title, words): (&str, &str),
        next: &NextStep,
        request_id: Option<&str>,
    ) -> Response {
        let main = message_main(language, (title, words), next, request_id);
        // Browsers apply form-action to redirects too, and an application may redirect to another site.
        let (form_action, script) = match next {
            NextStep::SignInByPopUp(_) => ("'self' https:; connect-src 'self'", Some(SIGN_IN_BY_POP_UP)),
            _ => (NO_FORMS, None),
        };
        let mut response = self.page(language, language.say(title), &main, form_action, script);
        let frames: &str = match &self.embedding {
            Some(embedding) => embedding,
            None if next.is_in_frame() => OWN_FRAMES,
            None => return response,
        };
        if let Some(policy) = response.headers_mut().get_mut(header::CONTENT_SECURITY_POLICY)
            && let Ok(framed) = policy.to_str().map(|text| text.replace(NO_FRAMES, frames))
            && let Ok(framed) = HeaderValue::try_from(framed)
        {
            *policy = framed;
        }
        response
    }

    /// The page of a pop-up window that gives a sealed response to the frame that opened the window. It stays only if
    /// the window has lost that frame.
    #[must_use]
    pub(crate) fn hand_over(&self, language: Language, sealed: &str) -> Response {
        let title = language.say("One moment");
        let words = "If this window stays open, it has lost its connection to the page where you pressed “Sign in”. Close it and try again there.";
        let main = format!(
            "<div id=\"response\" hidden data-sealed=\"{}\"></div><h1>{}</h1><p>{}</p>",
            escape(sealed),
            escape(title),
            escape(language.say(words)),
        );
        self.page(language, title, &main, NO_FORMS, Some(HAND_OVER))
    }

    /// The page that asks before a sign-out that another site requested. Its button posts.
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
        let words = language.say("Another site sent you here to sign out. You are still signed in.");
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
        // Browsers apply form-action to the redirects after the form too: to the provider and on from there.
        self.page(
            language,
            title,
            &main,
            &format!("'self' https: {provider_origin}"),
            None,
        )
    }

    /// A page that navigates to this URL at once, as a navigation of the product's own site.
    #[must_use]
    pub(crate) fn onward(&self, language: Language, url: &str) -> Response {
        self.go_on(language, None, url, 0)
    }

    /// A page that navigates to this URL after some seconds.
    fn go_on(&self, language: Language, words: Option<&str>, url: &str, secs: u64) -> Response {
        let title = language.say("One moment");
        let explain = |words| format!("<h1>{}</h1><p>{}</p>", escape(title), escape(language.say(words)));
        let main = format!(
            "{}<p><a class=\"button\" href=\"{}\">{}</a></p>",
            words.map(explain).unwrap_or_default(),
            escape(url),
            escape(language.say("Continue"))
        );
        let mut response = self.page(language, title, &main, NO_FORMS, None);
        if let Ok(refresh) = HeaderValue::try_from(format!("{secs}; url={url}")) {
            response.headers_mut().insert(header::REFRESH, refresh);
        }
        response
    }

    /// A page that requests its own address again, for a link opener without the browser's cookies. The browser
    /// then opens that address, not the login page at the end of the link opener's sign-in.
    #[must_use]
    pub(crate) fn reopen(&self, language: Language, url: &str) -> Response {
        self.go_on(language, None, url, REOPEN_SECS)
    }

    /// A page for the moment until a browser has bound its session to its device. It reloads at this URL.
    #[must_use]
    pub(crate) fn binding(&self, language: Language, url: &str) -> Response {
        let words = "Your browser is binding this sign-in to your device.";
        self.go_on(language, Some(words), url, 1)
    }
}

/// A message as HTML.
pub(crate) fn message_main(
    language: Language,
    (title, words): (&str, &str),
    next: &NextStep,
    request_id: Option<&str>,
) -> String {
    if let NextStep::SignInByPopUp(login) = next {
        return pop_up_main(language, (title, words), login);
    }
    let (first, attributes, second) = match next {
        NextStep::Home => (START, "", None),
        NextStep::TryAgain(url) | NextStep::Retry(url) => ((url.as_str(), "Try again"), "", Some(START)),
        NextStep::RetryOrSignIn(url, login) => {
            ((url.as_str(), "Try again"), "", Some((login.as_str(), "Sign in")))
        }
        NextStep::SignIn(url) | NextStep::SignInByPopUp(url) => ((url.as_str(), "Sign in"), "", None),
        NextStep::SignInAgainOrOut(url) => (
            (url.as_str(), "Sign in again"),
            "",
            Some((LOGOUT_PATH, "Sign out")),
        ),
        NextStep::OtherAccount(url) => ((url.as_str(), "Use another account"), "", None),
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

/// The button that opens a window for the sign-in. `login` begins the sign-in.
fn pop_up_main(language: Language, (title, words): (&str, &str), login: &str) -> String {
    let failed = "The sign-in did not start. Allow pop-up windows for this page, then try again.";
    format!(
        "<h1>{}</h1><p>{}</p><p id=\"failed\" role=\"alert\" hidden>{}</p>\
         <form id=\"signin\" method=\"post\" action=\"{FRAME_CALLBACK_PATH}\" data-login=\"{}\">{}\
         <p><button type=\"submit\">{}</button></p></form>",
        escape(language.say(title)),
        escape(language.say(words)),
        escape(language.say(failed)),
        escape(login),
        hidden_input("response", ""),
        escape(language.say("Sign in")),
    )
}

/// A hidden field of a form.
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
    fn only_configured_origins_may_embed_a_message_and_no_other_page() {
        let policy = |response: Response| {
            let policy = &response.headers()[header::CONTENT_SECURITY_POLICY];
            policy.to_str().unwrap().to_owned()
        };
        let language = Language::default();
        let embedded = Pages::new(Look::default()).embedded_in(&["https://portal.example".to_owned()]);
        let message = |next| policy(embedded.message(language, ("A title", "Words"), &next, None));
        let allowed = "frame-ancestors 'self' https://portal.example;";
        let home = message(NextStep::Home);
        assert!(home.contains(allowed) && !home.contains("script"), "{home}");
        let sign_in = message(NextStep::SignInByPopUp("/login".to_owned()));
        let own = "form-action 'self' https:; connect-src 'self'; script-src 'sha256-";
        assert!(sign_in.contains(allowed) && sign_in.contains(own), "{sign_in}");
        for page in [
            embedded.hand_over(language, "sealed"),
            embedded.confirm_logout(language, "token", None, "https://idp.example"),
        ] {
            let policy = policy(page);
            assert!(policy.contains(NO_FRAMES), "{policy}");
        }
        let closed = Pages::new(Look::default()).embedded_in(&[]);
        assert!(!closed.is_embedded());
        let home = policy(closed.message(language, ("A title", "Words"), &NextStep::Home, None));
        assert!(home.contains(NO_FRAMES), "{home}");
    }

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
