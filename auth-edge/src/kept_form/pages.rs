//! The pages of a kept form: kept during the sign-in, posted back, offered again.
//!
//! The tab's own `sessionStorage` holds the sealed form: it needs no cookie, ends with the tab, and other
//! tabs cannot read it. Without scripts nothing is kept, and the pages show the usual text.
//!
//! Invariants
//! - Only the user's click sends a form: no script here sends one to an upstream.
//! - Pages show the names of fields, never values: others may see the screen, and a field may hold a
//!   password.

use axum::http::StatusCode;
use axum::response::Response;

use super::KeptForm;
use crate::http::errors::HttpError;
use crate::http::pages::language::Language;
use crate::http::pages::{NO_FORMS, NextStep, Pages, escape, hidden_input, message_main};
use crate::values::reserved::FORM_PATH;

/// The most fields named on the page.
const MAX_NAMES: usize = 24;
/// Longest displayed part of a name, in characters.
const MAX_NAME_CHARS: usize = 60;

/// Stores the sealed form in the tab and goes to the login. If that fails, the page stays.
const KEEP: &str = r#"(()=>{const kept=document.getElementById("kept").dataset;try{sessionStorage.setItem("vestibule.form",kept.sealed);location.replace(kept.login)}catch{}})()"#;

/// Posts the sealed form to the edge. Fields can hide a form's own members; this form has only our field.
const HAND_OVER: &str = r#"(()=>{let sealed=null;try{sealed=sessionStorage.getItem("vestibule.form")}catch{}if(sealed===null)return;const form=document.getElementById("handover");form.elements.sealed.value=sealed;document.querySelector("main").hidden=true;form.submit()})()"#;

/// Removes the sealed form: this page already reports the result.
const FORGET: &str = r#"try{sessionStorage.removeItem("vestibule.form")}catch{}"#;

/// Why a form is not offered: the status, the title and the text of the page.
type NotOffered = (StatusCode, &'static str, &'static str);

/// The form belongs to another user.
pub(super) const OTHER_PERSON: NotOffered = (
    StatusCode::FORBIDDEN,
    "This form is not from your account",
    "Someone filled it in with another account. We discarded it and sent nothing.",
);

/// The form is too old.
pub(super) const TOO_OLD: NotOffered = (
    StatusCode::BAD_REQUEST,
    "This form is too old",
    "We discarded it and sent nothing. Fill it in again.",
);

/// The seal does not open.
pub(super) const UNREADABLE: NotOffered = (
    StatusCode::BAD_REQUEST,
    "We cannot read this form",
    "We sent nothing. Fill the form in again.",
);

/// The page that keeps a sealed form and goes to the login. Without scripts it says that nothing was sent,
/// with a link to sign in in another tab.
pub(super) fn keep(
    pages: &Pages,
    language: Language,
    (failure, next): (&HttpError, &NextStep),
    request_id: Option<&str>,
    (sealed, login): (&str, &str),
) -> Response {
    let main = format!(
        "{}<div id=\"kept\" hidden data-sealed=\"{}\" data-login=\"{}\"></div>",
        message_main(language, (failure.title(), failure.words()), next, request_id),
        escape(sealed),
        escape(login),
    );
    let title = language.say(failure.title());
    with_status(
        failure.status(),
        pages.page(language, title, &main, NO_FORMS, Some(KEEP)),
    )
}

/// The page that posts a kept form to the edge by script. Says so if there is no form.
pub(super) fn hand_over(pages: &Pages, language: Language) -> Response {
    let words = "No form is waiting here. You may have sent or discarded it already.";
    let main = format!(
        "{}<form id=\"handover\" hidden method=\"post\" action=\"{FORM_PATH}\"><input type=\"hidden\" name=\"sealed\"></form>",
        message_main(language, ("Nothing to send", words), &NextStep::Home, None),
    );
    let title = language.say("One moment");
    pages.page(language, title, &main, "'self'", Some(HAND_OVER))
}

/// The page that offers a form to its user. A click sends it, as a plain form of a page.
pub(super) fn offer(pages: &Pages, language: Language, form: &KeptForm) -> Response {
    let title = language.say("Send your form again?");
    let words = "You are signed in again. This browser kept what you entered and has not sent it yet.";
    let fields = form.fields();
    let inputs: String = fields
        .iter()
        .map(|(name, value)| hidden_input(name, value))
        .collect();
    let main = format!(
        "<h1>{}</h1><p>{}</p><dl><dt>{}</dt><dd><code dir=\"ltr\">{}</code></dd>{}</dl>\
         <form method=\"post\" action=\"{}\" accept-charset=\"utf-8\">{inputs}\
         <p class=\"steps\"><button type=\"submit\">{}</button> <a class=\"second\" href=\"/\">{}</a></p></form>",
        escape(title),
        escape(language.say(words)),
        escape(language.say("It goes to")),
        escape(form.target.url().path()),
        names(language, &fields),
        escape(form.target.as_str()),
        escape(language.say("Send again")),
        escape(language.say("Discard")),
    );
    // Browsers apply form-action to redirects too, and an application may redirect to its own provider.
    pages.page(language, title, &main, "'self' https:", Some(FORGET))
}

/// The page that discards a form and says why.
pub(super) fn drop_form(pages: &Pages, language: Language, (status, title, words): NotOffered) -> Response {
    tracing::info!(why = title, "a kept form is dropped");
    let main = message_main(language, (title, words), &NextStep::Home, None);
    let title = language.say(title);
    with_status(status, pages.page(language, title, &main, NO_FORMS, Some(FORGET)))
}

/// The page if the form's user is signed out again: the form stays in the tab.
pub(super) fn sign_in(pages: &Pages, language: Language, login: String) -> Response {
    let (title, words) = (
        "You are signed out",
        "Sign in to continue with your form. This browser still keeps it.",
    );
    let page = pages.message(language, (title, words), &NextStep::SignIn(login), None);
    with_status(StatusCode::UNAUTHORIZED, page)
}

fn with_status(status: StatusCode, mut page: Response) -> Response {
    *page.status_mut() = status;
    page
}

/// The fields' names, each once.
fn names(language: Language, fields: &[(String, String)]) -> String {
    let mut shown: Vec<&str> = Vec::new();
    for (name, _) in fields {
        if shown.len() < MAX_NAMES && !shown.contains(&name.as_str()) {
            shown.push(name);
        }
    }
    if shown.is_empty() {
        return String::new();
    }
    let short = |name: &&str| -> String { name.chars().take(MAX_NAME_CHARS).collect() };
    let items: String = shown
        .iter()
        .map(|name| format!("<li><bdi>{}</bdi></li>", escape(&short(name))))
        .collect();
    format!(
        "<dt>{}</dt><dd><ul class=\"fields\">{items}</ul></dd>",
        escape(language.say("Fields"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_field_becomes_markup_and_line_ends_stay() {
        assert_eq!(
            hidden_input("\"><script>", "a\r\n'\"<"),
            "<input type=\"hidden\" name=\"&quot;&gt;&lt;script&gt;\" value=\"a&#13;&#10;&#39;&quot;&lt;\">"
        );
    }

    #[test]
    fn a_long_list_of_names_is_bounded_and_holds_each_once() {
        let fields: Vec<_> = (0..200)
            .map(|at| (format!("n{}", at / 2), String::new()))
            .collect();
        assert_eq!(
            names(Language::default(), &fields).matches("<li>").count(),
            MAX_NAMES
        );
        let long = [("x".repeat(500), "value".to_owned())];
        let html = names(Language::default(), &long);
        assert!(html.len() < 200 && !html.contains("value"), "{html}");
    }
}
