//! A form that meets a dead session is kept while its person signs in, and offered to them again (`keep_form` of a route).
//!
//! The guard refuses the form as ever. Where it can be kept, the answer holds it sealed, for the tab to keep; after the sign-in
//! the tab hands it back to [`handle`], which shows it to its person. A press sends it, as a plain form of a page does, and
//! the guard judges it like any other.
//!
//! Invariants
//! - Nothing of a form is kept here: any replica can take it up.
//! - It is kept for the person of the session, or of the [`PersonCookies`] where the session is gone; for nobody without
//!   either, and it is offered to nobody else.
//! - It is kept only if one of our own pages has sent it, and leads nowhere but there.
//! - A body is read only on behalf of a person who was here.
//!
//! Deliberately absent: files (`multipart/form-data`), whose bytes no page can send again; sending by itself; forms of scripts.

mod sealed;

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body::Body as _;
use session_proto::v1::Session;
use url::form_urlencoded;

use self::sealed::{KeptForm, MAX_BODY_BYTES, MAX_SEALED_BYTES, repeatable};
use super::guard::{Authorized, RequestHead};
use crate::gateway::Gateway;
use crate::http::errors::{HttpError, NOT_KEPT};
use crate::http::no_content;
use crate::http::pages::Pages;
use crate::http::pages::kept_form::{NotOffered, Offer, SealedForm};
use crate::http::pages::language::Language;
use crate::http::protect::csrf::{Provenance, provenance};
use crate::http::protect::slow_client;
use crate::http::request::{self, is_prefetch};
use crate::route_table::{Guard, Route};
use crate::sessions::Use;
use crate::sessions::keys::DerivedKeys;
use crate::sessions::person_cookie::{PersonCookies, PersonTag};
use crate::values::reserved::{FORM_PATH, FORM_ROUTE_PARAMETER};
use crate::values::return_to::ReturnTo;

/// The field that the sealed form comes back in.
const SEALED_FIELD: &str = "sealed";
/// Room for the field's name before the sealed form.
const FIELD_BYTES: usize = 16;

/// What forms are kept with.
#[derive(Clone)]
pub(crate) struct KeptForms {
    /// The pages that keep, hand back and offer them.
    pub(crate) pages: Pages,
    /// Keys to seal them.
    pub(crate) keys: DerivedKeys,
    /// Who was here last.
    pub(crate) people: PersonCookies,
    /// How long one is kept, in seconds: as long as a sign-in may take.
    pub(crate) duration_secs: u64,
}

/// Extension of a refusal: the form could be kept.
#[derive(Clone)]
struct Keepable {
    /// Where its person signs in and comes back to it.
    login: String,
    /// Whose it is, where the session still says so.
    person: Option<PersonTag>,
}

/// Why a form is not kept.
enum NotKept {
    /// It has files, or is too long.
    TooMuch,
    /// It did not come in time, or could not be read.
    Unread(HttpError),
    /// It is none of ours, nobody's, or nothing a page can send again.
    NoPlainForm,
}

/// Where a sign-in leads back to for a form that was sent to this path. The path is told for the sign-in alone, which may
/// depend on the route.
pub(super) fn way_back(path: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(FORM_ROUTE_PARAMETER, path);
    format!("{FORM_PATH}?{}", query.finish())
}

/// Marks the refusal of a form on a route that keeps forms.
pub(super) fn mark(gateway: &Gateway, refused: &mut Response, login: String, session: Option<&Session>) {
    let people = &gateway.kept_forms.people;
    let person = session.and_then(|session| people.tag(&session.issuer, &session.subject));
    refused.extensions_mut().insert(Keepable { login, person });
}

/// Whether a refusal is of a form that could be kept.
pub(super) fn is_marked(refused: &Response) -> bool {
    refused.extensions().get::<Keepable>().is_some()
}

/// The refusal of a form, with the form sealed in it where it can be kept.
pub(super) async fn keep(gateway: &Gateway, request: Request, mut refused: Response) -> Response {
    let Some(keepable) = refused.extensions_mut().remove::<Keepable>() else {
        return refused;
    };
    let form = seal(gateway, keepable, request).await;
    let failure = refused.extensions_mut().get_mut::<HttpError>();
    let Some(HttpError::NotSent { words, kept, .. }) = failure else {
        return refused;
    };
    match form {
        Ok(form) => {
            tracing::info!("a form is kept over a sign-in");
            *kept = Some(Arc::new(form));
        }
        Err(NotKept::TooMuch) => *words = NOT_KEPT,
        Err(NotKept::Unread(failure)) => return failure.into_response(),
        Err(NotKept::NoPlainForm) => {}
    }
    refused
}

async fn seal(gateway: &Gateway, keepable: Keepable, request: Request) -> Result<SealedForm, NotKept> {
    let forms = &gateway.kept_forms;
    let (head, body) = request.into_parts();
    let base = gateway.sites.of(&head.headers).base_url();
    let kept_at_ms = gateway.clock.now_ms();
    let ours = head.method == Method::POST && provenance(&head.headers, base) == Provenance::SameOrigin;
    let person = keepable
        .person
        .or_else(|| forms.people.read(&head.headers, kept_at_ms));
    let (true, Some(person)) = (ours, person) else {
        return Err(NotKept::NoPlainForm);
    };
    match media_type(&head.headers) {
        Some(kind) if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") => {}
        Some(kind) if kind.eq_ignore_ascii_case("multipart/form-data") => return Err(NotKept::TooMuch),
        _ => return Err(NotKept::NoPlainForm),
    }
    let sent_to = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let target = ReturnTo::parse(base, sent_to).ok_or(NotKept::TooMuch)?;
    // The sign-in leads back to the form only if its own address is not too long for that either.
    ReturnTo::parse(base, &way_back(head.uri.path())).ok_or(NotKept::TooMuch)?;
    let body = read(body, MAX_BODY_BYTES).await?;
    let form = KeptForm {
        kept_at_ms,
        person,
        target,
        body: repeatable(&body).ok_or(NotKept::NoPlainForm)?,
    };
    Ok(SealedForm {
        sealed: form.seal(&forms.keys, base).ok_or(NotKept::NoPlainForm)?,
        login: keepable.login,
    })
}

/// A body of at most so many bytes.
async fn read(body: Body, limit: usize) -> Result<axum::body::Bytes, NotKept> {
    if body.size_hint().lower() > limit as u64 {
        return Err(NotKept::TooMuch);
    }
    to_bytes(body, limit)
        .await
        .map_err(|error| match slow_client::unread(&error) {
            HttpError::TooLarge => NotKept::TooMuch,
            failure => NotKept::Unread(failure),
        })
}

/// The type a body says it has: without parameters, of which browsers send none with a form.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    request::text(headers, header::CONTENT_TYPE.as_str())?
        .split(';')
        .next()
        .map(str::trim)
}

/// The cookie by which a form of this person will be known as theirs when their session is gone; none where the browser says
/// so already. A page and the address its form goes to may have rules of their own, so every guarded page of a table that
/// keeps forms sets it.
pub(super) fn remember(
    gateway: &Gateway,
    route: &Route,
    request: &RequestHead<'_>,
    authorized: &Authorized,
) -> Option<HeaderValue> {
    let is_page = route.table.keeps_forms && route.guard == Guard::Page && request.method == Method::GET;
    if !is_page || !request::is_navigation(request.headers) {
        return None;
    }
    let session = &authorized.current.as_ref()?.session;
    let person = (session.issuer.as_str(), session.subject.as_str());
    gateway
        .kept_forms
        .people
        .remember(request.headers, person, gateway.clock.now_ms())
}

/// GET fetches the form out of the tab; a POST of our own page brings it, and offers it to its person.
pub(crate) async fn handle(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, body) = request.into_parts();
    let (pages, language) = (&gateway.kept_forms.pages, Language::of(&head.headers));
    if head.method == Method::HEAD || is_prefetch(&head.headers) {
        return Ok(no_content());
    }
    if head.method != Method::POST {
        return Ok(pages.hand_over_form(language));
    }
    let base = gateway.sites.of(&head.headers).base_url();
    if provenance(&head.headers, base) != Provenance::SameOrigin {
        return Err(HttpError::Csrf);
    }
    let body = match read(body, MAX_SEALED_BYTES + FIELD_BYTES).await {
        Ok(body) => body,
        Err(NotKept::Unread(failure)) => return Err(failure),
        Err(NotKept::TooMuch | NotKept::NoPlainForm) => return Err(HttpError::TooLarge),
    };
    let sealed = form_urlencoded::parse(&body).find(|(name, _)| name == SEALED_FIELD);
    let form = sealed.and_then(|(_, sealed)| KeptForm::open(&gateway.kept_forms.keys, base, &sealed));
    let Some(form) = form else {
        return Ok(dropped(pages, language, NotOffered::Unreadable));
    };
    if form.expired(gateway.clock.now_ms(), gateway.kept_forms.duration_secs) {
        return Ok(dropped(pages, language, NotOffered::TooOld));
    }
    let current = gateway.sessions.current(&head.headers, Use::LookOnly).await;
    let current = current.map_err(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "a kept form cannot ask for the session"
        );
        HttpError::SessionServiceDown
    })?;
    let Some(current) = current else {
        let back = way_back(form.target.url().path());
        let login = gateway.sites.of(&head.headers).login_url(Some(&back), None);
        let mut response = pages.sign_in_for_form(language, &login);
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return Ok(response);
    };
    let people = &gateway.kept_forms.people;
    if !people.is(&form.person, &current.session.issuer, &current.session.subject) {
        return Ok(dropped(pages, language, NotOffered::OtherPerson));
    }
    Ok(pages.offer_form(
        language,
        &Offer {
            action: form.target.as_str(),
            path: form.target.url().path(),
            fields: &form.fields(),
        },
    ))
}

fn dropped(pages: &Pages, language: Language, why: NotOffered) -> Response {
    tracing::info!(?why, "a kept form is dropped");
    let mut response = pages.drop_form(language, why);
    *response.status_mut() = match why {
        NotOffered::OtherPerson => StatusCode::FORBIDDEN,
        NotOffered::TooOld | NotOffered::Unreadable => StatusCode::BAD_REQUEST,
    };
    response
}
