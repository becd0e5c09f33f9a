//! A sign-in: the claim of an attempt, and the session that it creates.

use session_proto::v1::begin_sign_in_response::Outcome;
use session_proto::{timestamp, v1};

use super::api::Api;
use super::call::Call;
use super::{arguments, new_session};
use crate::sessions::{BeginSignInOutcome, SessionsError, SignInAttempt};

pub(super) async fn begin(
    api: &Api,
    call: &Call,
    request: v1::BeginSignInRequest,
) -> Result<v1::BeginSignInResponse, SessionsError> {
    let attempt = SignInAttempt {
        valid_for: arguments::duration("valid_for", request.valid_for.as_ref())?,
        waiting: request.waiting,
        ..attempt(&request.request_id, &request.holder)?
    };
    let (outcome, created) = match api.sessions.begin_sign_in(&attempt).await? {
        BeginSignInOutcome::Begun => (Outcome::Begun, None),
        BeginSignInOutcome::Pending => (Outcome::Pending, None),
        BeginSignInOutcome::Created(created) => (Outcome::Created, Some(created)),
        BeginSignInOutcome::Failed => (Outcome::Failed, None),
    };
    let mut answer = v1::BeginSignInResponse {
        outcome: outcome.into(),
        now: Some(timestamp::from_ms(api.sessions.now_ms())),
        ..v1::BeginSignInResponse::default()
    };
    if let Some(created) = created {
        call.is_about(created.session.handle);
        answer.session_id = created.id.reveal();
        answer.session = Some(api.resource(&created.session));
    }
    Ok(answer)
}

pub(super) async fn abandon(
    api: &Api,
    _: &Call,
    request: v1::AbandonSignInRequest,
) -> Result<v1::AbandonSignInResponse, SessionsError> {
    let attempt = attempt(&request.request_id, &request.holder)?;
    api.sessions.abandon_sign_in(&attempt).await?;
    Ok(v1::AbandonSignInResponse {})
}

pub(super) async fn create_session(
    api: &Api,
    call: &Call,
    request: v1::CreateSessionRequest,
) -> Result<v1::CreateSessionResponse, SessionsError> {
    let new = new_session::read(&request, api.sessions.now_ms())?;
    call.is_about_person(&new.values.issuer, &new.values.subject);
    let created = api.sessions.create(new).await?;
    call.is_about(created.session.handle);
    Ok(v1::CreateSessionResponse {
        session_id: created.id.reveal(),
        session: Some(api.resource(&created.session)),
    })
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
