//! Requests the tests send, and helpers for their answers.

use session_proto::error::{metadata_of, reason_of};
use session_proto::v1::{self, ErrorReason};
use tonic::Status;

use crate::support::{ISSUER, World, world};

/// Just past the margin before Alice's first access token expires.
pub(crate) const EXPIRED_MS: u64 = 240_001;

pub(crate) async fn signed_in() -> (World, String) {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    (world, id)
}

/// Alice, just signed in, with an access token for five minutes and a refresh token.
pub(crate) fn alice() -> v1::CreateSessionRequest {
    v1::CreateSessionRequest {
        issuer: ISSUER.to_owned(),
        user: claims(serde_json::json!({"sub": "alice", "name": "Alice"})),
        tokens: Some(v1::TokenSet {
            access_token: "access-0".to_owned(),
            scope: "openid email".to_owned(),
            refresh_token: "refresh-0".to_owned(),
            id_token: "hint".to_owned(),
            ..Default::default()
        }),
        provider_sid: "sid-1".to_owned(),
        ..Default::default()
    }
}

pub(crate) fn claims(json: serde_json::Value) -> String {
    json.to_string()
}

pub(crate) fn by_id(id: &str) -> v1::GetSessionRequest {
    v1::GetSessionRequest {
        by: Some(v1::get_session_request::By::SessionId(id.to_owned())),
    }
}

pub(crate) fn end(id: &str) -> v1::EndSessionRequest {
    v1::EndSessionRequest {
        by: Some(v1::end_session_request::By::SessionId(id.to_owned())),
        ..Default::default()
    }
}

pub(crate) fn token(id: &str) -> v1::GetAccessTokenRequest {
    v1::GetAccessTokenRequest {
        session_id: id.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn forced(id: &str) -> v1::GetAccessTokenRequest {
    v1::GetAccessTokenRequest {
        force_refresh: true,
        ..token(id)
    }
}

pub(crate) fn reason<T: std::fmt::Debug>(answer: Result<T, Status>) -> ErrorReason {
    reason_of(&answer.unwrap_err()).unwrap()
}

pub(crate) fn field<T: std::fmt::Debug>(answer: Result<T, Status>) -> String {
    let status = answer.unwrap_err();
    assert_eq!(reason_of(&status), Some(ErrorReason::ErrInvalidArgument));
    metadata_of(&status).remove("field").unwrap()
}

pub(crate) fn roll(id: &str) -> v1::RollSessionRequest {
    v1::RollSessionRequest {
        session_id: id.to_owned(),
        device: None,
    }
}

pub(crate) fn end_all(subject: &str, sid: &str) -> v1::EndSessionsRequest {
    let (subject, provider_sid) = (subject.to_owned(), sid.to_owned());
    v1::EndSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject,
        provider_sid,
        ..Default::default()
    }
}

pub(crate) fn list(page_size: i32, page_token: &str) -> v1::ListSessionsRequest {
    v1::ListSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject: "alice".to_owned(),
        page_size,
        page_token: page_token.to_owned(),
    }
}
