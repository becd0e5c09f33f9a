//! Parses the requests of `session.v1.OperatorSessionService`, and notes who asks for the record of the call.

use std::sync::Arc;

use chassis::audit::Operator;
use session_proto::v1;
use session_proto::v1::session_filter::By;

use super::arguments::{self, wrong};
use super::call::Call;
use crate::session::claims::comparable_email;
use crate::session::{FilterBy, SessionFilter};
use crate::sessions::SessionsError;

/// The most bytes of a purpose, and of a message to a person: a short paragraph.
const MAX_TEXT_BYTES: usize = 500;

/// The most claims of a request, and the most bytes of a name.
const MAX_CLAIMS: usize = 50;
const MAX_CLAIM_BYTES: usize = 256;

/// The most bytes of an email address or a name of a user.
const MAX_VALUE_BYTES: usize = 512;

type Read<T> = Result<T, SessionsError>;

/// Reads the operator and notes it.
pub(super) fn note_operator(call: &Call, given: Option<&v1::Operator>) -> Read<()> {
    let Some(given) = given else {
        return wrong("operator", "is required");
    };
    if given.purpose.trim().is_empty() || !is_text(&given.purpose, MAX_TEXT_BYTES) {
        let problem = "has to be 1 to 500 bytes without control characters";
        return wrong("operator.purpose", problem);
    }
    if !given.issuer.is_empty() {
        arguments::issuer(&given.issuer)?;
    }
    arguments::name("operator.subject", &given.subject)?;
    if !given.handle.is_empty() {
        arguments::handle("operator.handle", &given.handle)?;
    }
    let _ = call.notes.operator.set(Arc::new(Operator {
        issuer: given.issuer.clone(),
        subject: given.subject.clone(),
        session: given.handle.clone(),
        purpose: given.purpose.clone(),
    }));
    Ok(())
}

/// Reads a filter and notes it.
pub(super) fn filter(call: &Call, given: Option<&v1::SessionFilter>) -> Read<SessionFilter> {
    let Some(given) = given else {
        return wrong("filter", "is required");
    };
    let name = |field, text: &String| arguments::required_name(field, text).map(str::to_owned);
    let by = match &given.by {
        Some(By::Handle(handle)) => FilterBy::Handle(arguments::handle("filter.handle", handle)?),
        Some(By::Subject(subject)) => FilterBy::Subject(name("filter.subject", subject)?),
        Some(By::ProviderSid(sid)) => FilterBy::ProviderSid(name("filter.provider_sid", sid)?),
        Some(By::Email(email)) => FilterBy::Email(comparable_email(value("filter.email", email)?)),
        Some(By::Name(name)) => FilterBy::Name(FilterBy::comparable_name(value("filter.name", name)?)),
        Some(By::Address(text)) => match FilterBy::network(text) {
            Some(network) => FilterBy::Address(network),
            None => return wrong("filter.address", "is neither an IP address nor a network (CIDR)"),
        },
        Some(By::Everyone(true)) => FilterBy::Everyone,
        Some(By::Everyone(false)) | None => {
            return wrong("filter", "has to say which sessions, or everyone");
        }
    };
    let created_after_ms = arguments::time_ms("filter.created_after", given.created_after.as_ref())?;
    let created_before_ms = arguments::time_ms("filter.created_before", given.created_before.as_ref())?;
    let filter = SessionFilter {
        issuer: arguments::issuer(&given.issuer)?.to_owned(),
        by,
        created_after_ms: created_after_ms.unwrap_or_default(),
        created_before_ms: created_before_ms.unwrap_or(u64::MAX),
    };
    let _ = call.notes.filter.set(filter.description());
    match &filter.by {
        FilterBy::Handle(handle) => call.is_about(*handle),
        FilterBy::Subject(subject) => call.is_about_person(&filter.issuer, subject),
        _ => {}
    }
    Ok(filter)
}

/// The names of claims to return.
pub(super) fn claims(names: &[String]) -> Read<&[String]> {
    let is_name = |name: &String| !name.is_empty() && is_text(name, MAX_CLAIM_BYTES);
    if names.len() <= MAX_CLAIMS && names.iter().all(is_name) {
        return Ok(names);
    }
    let problem = "are more than 50, or one is no name of at most 256 bytes";
    wrong("claims", problem)
}

/// What a person reads at the next sign-in; `None` for nothing.
pub(super) fn message(text: &str) -> Read<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    if is_text(text, MAX_TEXT_BYTES) {
        return Ok(Some(text.to_owned()));
    }
    let problem = "is longer than 500 bytes or holds control characters";
    wrong("message_to_person", problem)
}

fn value<'a>(field: &'static str, text: &'a str) -> Read<&'a str> {
    if !text.trim().is_empty() && is_text(text, MAX_VALUE_BYTES) {
        return Ok(text);
    }
    wrong(field, "has to be 1 to 512 bytes without control characters")
}

fn is_text(text: &str, most_bytes: usize) -> bool {
    text.len() <= most_bytes && !text.chars().any(char::is_control)
}
