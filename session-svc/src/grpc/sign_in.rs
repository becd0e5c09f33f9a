//! An attempt at a sign-in, read, and what it comes to, written.

use session_proto::v1::begin_sign_in_response::Outcome;
use session_proto::{timestamp, v1};

use super::{arguments, resource};
use crate::session::Lifetime;
use crate::sessions::{BeginSignInOutcome, SessionsError, SignInAttempt};

pub(super) fn begun(request: &v1::BeginSignInRequest) -> Result<SignInAttempt, SessionsError> {
    Ok(SignInAttempt {
        valid_for: arguments::duration("valid_for", request.valid_for.as_ref())?,
        waiting: request.waiting,
        ..attempt(&request.request_id, &request.holder)?
    })
}

pub(super) fn abandoned(request: &v1::AbandonSignInRequest) -> Result<SignInAttempt, SessionsError> {
    attempt(&request.request_id, &request.holder)
}

fn attempt(request_id: &str, holder: &str) -> Result<SignInAttempt, SessionsError> {
    let Some(request_id) = arguments::request_id(request_id)? else {
        return arguments::wrong("request_id", "is required");
    };
    let Some(holder) = arguments::holder(holder)? else {
        return arguments::wrong("holder", "is required");
    };
    Ok(SignInAttempt {
        request_id: request_id.to_owned(),
        holder: holder.to_owned(),
        valid_for: None,
        waiting: false,
    })
}

pub(super) fn answer(
    begin: BeginSignInOutcome,
    now_ms: u64,
    lifetime: &Lifetime,
) -> Result<v1::BeginSignInResponse, SessionsError> {
    let (outcome, created) = match begin {
        BeginSignInOutcome::Begun => (Outcome::Begun, None),
        BeginSignInOutcome::Pending => (Outcome::Pending, None),
        BeginSignInOutcome::Created(created) => (Outcome::Created, Some(created)),
        BeginSignInOutcome::Failed => (Outcome::Failed, None),
    };
    let mut answer = v1::BeginSignInResponse {
        outcome: outcome.into(),
        now: Some(timestamp::from_ms(now_ms)),
        ..v1::BeginSignInResponse::default()
    };
    if let Some(created) = created {
        answer.session_id = created.id.reveal();
        answer.session = Some(resource::session(&created.session, lifetime));
    }
    Ok(answer)
}
