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

mod pages;
pub(crate) mod person_cookie;
mod sealed;

use std::ops::Deref;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use chassis::audit::RequestId;
use http_body::Body as _;
use session_proto::v1::Session;
use url::form_urlencoded;

use self::person_cookie::{PersonCookies, PersonTag, tag};
use self::sealed::{KeptForm, MAX_BODY_BYTES, MAX_SEALED_BYTES, repeatable};
use crate::http::errors::{HttpError, NOT_KEPT};
use crate::http::no_content;
use crate::http::pages::NextStep;
use crate::http::pages::language::Language;
use crate::http::protect::csrf::{Provenance, provenance};
use crate::http::protect::slow_client;
use crate::http::request::{self, is_prefetch};
use crate::http::shared::Shared;
use crate::sessions::Use;
use crate::values::reserved::{FORM_PATH, FORM_ROUTE_PARAMETER};
use crate::values::return_to::ReturnTo;

/// The field that the sealed form comes back in.
const SEALED_FIELD: &str = "sealed";
/// Room for the field's name before the sealed form.
const FIELD_BYTES: usize = 16;

/// What forms are kept with.
#[derive(Clone)]
pub(crate) struct KeptForms {
    /// What other rooms use too.
    pub(crate) shared: Arc<Shared>,
    /// Who was here last.
    pub(crate) people: PersonCookies,
    /// How long one is kept, in seconds: as long as a sign-in may take.
    pub(crate) duration_secs: u64,
}

impl Deref for KeptForms {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Extension of a refusal: the form could be kept.
#[derive(Clone)]
struct Keepable {
    /// Where its person signs in and comes back to it.
    login: String,
    /// Whose it is, where the session still says so.
    person: Option<PersonTag>,
}

/// Where a sign-in leads back to for a form that was sent to this path. The path is told for the sign-in alone, which may
/// depend on the route.
pub(crate) fn way_back(path: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(FORM_ROUTE_PARAMETER, path);
    format!("{FORM_PATH}?{}", query.finish())
}

/// Whether a refusal is of a form that could be kept.
pub(crate) fn is_marked(refused: &Response) -> bool {
    refused.extensions().get::<Keepable>().is_some()
}

impl KeptForms {
    /// Marks the refusal of a form on a route that keeps forms.
    pub(crate) fn mark(&self, refused: &mut Response, login: String, session: Option<&Session>) {
        let person = session.map(|session| tag(&session.issuer, &session.subject));
        refused.extensions_mut().insert(Keepable { login, person });
    }

    /// The refusal of a form, with the form sealed in it where it can be kept.
    pub(crate) async fn keep(&self, request: Request, mut refused: Response) -> Response {
        let extensions = refused.extensions_mut();
        let (Some(keepable), Some(failure), Some(next)) = (
            extensions.remove::<Keepable>(),
            extensions.get::<HttpError>(),
            extensions.get::<NextStep>(),
        ) else {
            return refused;
        };
        let language = Language::of(request.headers());
        let id = request.extensions().get::<RequestId>().copied();
        match self.seal(keepable.person, request).await {
            Ok(Some(sealed)) => {
                tracing::info!("a form is kept over a sign-in");
                let id = id.as_ref().map(RequestId::as_str);
                let kept = (sealed.as_str(), keepable.login.as_str());
                pages::keep(&self.pages, language, (failure, next), id, kept)
            }
            Ok(None) => refused,
            Err(too_much @ HttpError::NotSent(_)) => {
                extensions.insert(too_much);
                refused
            }
            Err(failure) => failure.into_response(),
        }
    }

    /// The form sealed, if it is one of ours, somebody's, and one that a page can send again.
    ///
    /// # Errors
    /// [`HttpError::NotSent`] if it has files or is too long; another one if it did not come in time or could not be read.
    async fn seal(&self, person: Option<PersonTag>, request: Request) -> Result<Option<String>, HttpError> {
        const TOO_MUCH: HttpError = HttpError::NotSent(NOT_KEPT);
        let (head, body) = request.into_parts();
        let base = &self.sites.of(&head.headers).base_url;
        let kept_at_ms = self.clock.now_ms();
        let ours = head.method == Method::POST && provenance(&head.headers, base) == Provenance::SameOrigin;
        let person = person.or_else(|| self.people.read(&head.headers, kept_at_ms));
        let (true, Some(person)) = (ours, person) else {
            return Ok(None);
        };
        match media_type(&head.headers) {
            Some(kind) if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") => {}
            Some(kind) if kind.eq_ignore_ascii_case("multipart/form-data") => return Err(TOO_MUCH),
            _ => return Ok(None),
        }
        let sent_to = head.uri.path_and_query().map_or("/", |target| target.as_str());
        let target = ReturnTo::parse(base, sent_to).ok_or(TOO_MUCH)?;
        // The sign-in leads back to the form only if its own address is not too long for that either.
        ReturnTo::parse(base, &way_back(head.uri.path())).ok_or(TOO_MUCH)?;
        let body = match read(body, MAX_BODY_BYTES).await {
            Err(HttpError::TooLarge) => return Err(TOO_MUCH),
            read => repeatable(&read?),
        };
        let form = body.map(|body| KeptForm {
            kept_at_ms,
            person,
            target,
            body,
        });
        Ok(form.and_then(|form| form.seal(&self.keys, base)))
    }

    /// The cookie by which a form of this person will be known as theirs when their session is gone; none where the browser
    /// says so already. A page and the address its form goes to may have rules of their own, so every guarded page of a table
    /// that keeps forms sets it.
    pub(crate) fn remember(&self, headers: &HeaderMap, session: &Session) -> Option<HeaderValue> {
        if !request::is_navigation(headers) {
            return None;
        }
        let person = tag(&session.issuer, &session.subject);
        self.people.remember(headers, person, self.clock.now_ms())
    }
}

/// A body of at most so many bytes.
async fn read(body: Body, limit: usize) -> Result<Bytes, HttpError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(HttpError::TooLarge);
    }
    let read = to_bytes(body, limit).await;
    read.map_err(|error| slow_client::unread(&error))
}

/// The type a body says it has: without parameters, of which browsers send none with a form.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    request::text(headers, header::CONTENT_TYPE.as_str())?
        .split(';')
        .next()
        .map(str::trim)
}

/// GET fetches the form out of the tab; a POST of our own page brings it, and offers it to its person.
pub(crate) async fn handle(
    State(forms): State<Arc<KeptForms>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, body) = request.into_parts();
    let (pages, language) = (&forms.pages, Language::of(&head.headers));
    if head.method == Method::HEAD || is_prefetch(&head.headers) {
        return Ok(no_content());
    }
    if head.method != Method::POST {
        return Ok(pages::hand_over(pages, language));
    }
    let site = forms.sites.of(&head.headers);
    if provenance(&head.headers, &site.base_url) != Provenance::SameOrigin {
        return Err(HttpError::Csrf);
    }
    let body = read(body, MAX_SEALED_BYTES + FIELD_BYTES).await?;
    let sealed = form_urlencoded::parse(&body).find(|(name, _)| name == SEALED_FIELD);
    let form = sealed.and_then(|(_, sealed)| KeptForm::open(&forms.keys, &site.base_url, &sealed));
    let dropped = |page| Ok(pages::drop_form(pages, language, page));
    let Some(form) = form else {
        return dropped(pages::UNREADABLE);
    };
    if form.expired(forms.clock.now_ms(), forms.duration_secs) {
        return dropped(pages::TOO_OLD);
    }
    let current = forms.sessions.current(&head.headers, Use::LookOnly).await;
    let current = current
        .map_err(|error| HttpError::session_service_down(&error, "a kept form cannot ask for the session"))?;
    let Some(current) = current else {
        let back = way_back(form.target.url().path());
        return Ok(pages::sign_in(pages, language, site.login_url(Some(&back), None)));
    };
    if form.person != tag(&current.session.issuer, &current.session.subject) {
        return dropped(pages::OTHER_PERSON);
    }
    Ok(pages::offer(pages, language, &form))
}
