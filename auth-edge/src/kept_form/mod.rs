//! Keeps a form whose session has ended while its user signs in, and offers it again (`keep_form` of a
//! route).
//!
//! The guard rejects the form as usual. Its answer holds the sealed form for the tab to store. After the
//! sign-in the tab posts it to [`handle`], which shows it to its user. A click sends it as a plain form, and
//! the guard checks it like any other request.
//!
//! Invariants
//! - The edge does not store forms: any replica can continue.
//! - A form is kept only for the session's user, or else the user in [`PersonCookies`]. Only that user sees it.
//! - A form is kept only if one of our own pages sent it, and is only sent to its original address.
//! - The edge reads a body only for a user who was signed in here.
//!
//! Deliberately absent: files (`multipart/form-data`), which no page can resend; automatic sending.

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
use crate::sessions::SessionUse;
use crate::values::reserved::{FORM_PATH, FORM_ROUTE_PARAMETER};
use crate::values::return_to::ReturnTo;

/// The field of the sealed form.
const SEALED_FIELD: &str = "sealed";
/// Room for the field's name before the sealed form.
const FIELD_BYTES: usize = 16;

/// Keeps forms during a sign-in.
#[derive(Clone)]
pub(crate) struct KeptForms {
    /// State shared with the other parts of the edge.
    pub(crate) shared: Arc<Shared>,
    /// The cookies that name the last user.
    pub(crate) people: PersonCookies,
    /// How long a form is kept, in seconds: the longest duration of a sign-in.
    pub(crate) duration_secs: u64,
}

impl Deref for KeptForms {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Extension of an error answer: the form could be kept.
#[derive(Clone)]
struct Keepable {
    /// The login URL, which returns to the form.
    login: String,
    /// The form's user, if the session is still known.
    person: Option<PersonTag>,
}

/// The return address of a sign-in for a form that was sent to this path. The path is only for the sign-in,
/// whose parameters may depend on the route.
pub(crate) fn way_back(path: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(FORM_ROUTE_PARAMETER, path);
    format!("{FORM_PATH}?{}", query.finish())
}

/// Whether the form of a rejected request could be kept.
pub(crate) fn is_marked(refused: &Response) -> bool {
    refused.extensions().get::<Keepable>().is_some()
}

impl KeptForms {
    /// Marks a rejected form on a route that keeps forms.
    pub(crate) fn mark(&self, refused: &mut Response, login: String, session: Option<&Session>) {
        let person = session.map(|session| tag(&session.issuer, &session.subject));
        refused.extensions_mut().insert(Keepable { login, person });
    }

    /// The answer to a rejected form, with the sealed form if it can be kept.
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
                tracing::info!("a form is kept during a sign-in");
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

    /// The sealed form, if our own page sent it, its user is known, and a page can send it again.
    ///
    /// # Errors
    /// [`HttpError::NotSent`] if it has files or is too long; another error if it was late or unreadable.
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
        // The sign-in can return to the form only if its address fits within that limit too.
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

    /// The cookie that names this user as the owner of later forms once the session is gone; `None` if the
    /// browser has it. A page and its form's address may have different rules. So every guarded page sets the
    /// cookie if any rule of the table keeps forms.
    pub(crate) fn remember(&self, headers: &HeaderMap, session: &Session) -> Option<HeaderValue> {
        if !request::is_navigation(headers) {
            return None;
        }
        let person = tag(&session.issuer, &session.subject);
        self.people.remember(headers, person, self.clock.now_ms())
    }
}

/// A body of at most `limit` bytes.
async fn read(body: Body, limit: usize) -> Result<Bytes, HttpError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(HttpError::TooLarge);
    }
    let read = to_bytes(body, limit).await;
    read.map_err(|error| slow_client::unread(&error))
}

/// The media type of a body, without parameters.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    request::text(headers, header::CONTENT_TYPE.as_str())?
        .split(';')
        .next()
        .map(str::trim)
}

/// GET loads the form from the tab. POST from our own page brings it, and offers it to its user.
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
    let current = forms.sessions.current(&head.headers, SessionUse::LookOnly).await;
    let current = current
        .map_err(|error| HttpError::session_service_down(&error, "a form's session could not be read"))?;
    let Some(current) = current else {
        let back = way_back(form.target.url().path());
        return Ok(pages::sign_in(pages, language, site.login_url(Some(&back), None)));
    };
    if form.person != tag(&current.session.issuer, &current.session.subject) {
        return dropped(pages::OTHER_PERSON);
    }
    Ok(pages::offer(pages, language, &form))
}
