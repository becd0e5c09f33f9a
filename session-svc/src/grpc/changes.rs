//! Changes of a session by the holder of its ID.

use session_proto::v1;

use super::api::Api;
use super::arguments;
use super::call::Call;
use crate::sessions::{SessionUpdate, SessionsError};

pub(super) async fn roll_session(
    api: &Api,
    call: &Call,
    request: v1::RollSessionRequest,
) -> Result<v1::RollSessionResponse, SessionsError> {
    let handle = call.by_id(&request.session_id);
    let device = arguments::device(request.device.as_ref())?;
    let caller = call.caller.log_name().unwrap_or_default();
    let (session, rolled) = api.sessions.roll(handle?, device, caller).await?;
    Ok(v1::RollSessionResponse {
        session: Some(Box::new(api.resource(&session))),
        rolled,
    })
}

pub(super) async fn update_session(
    api: &Api,
    call: &Call,
    request: v1::UpdateSessionRequest,
) -> Result<v1::UpdateSessionResponse, SessionsError> {
    let handle = call.by_id(&request.session_id)?;
    let session = api.sessions.update(handle, update(&request)?).await?;
    call.is_about_person(&session.issuer, &session.subject);
    Ok(v1::UpdateSessionResponse {
        session: Some(api.resource(&session)),
    })
}

pub(super) async fn rotate_cookie(
    api: &Api,
    call: &Call,
    request: v1::RotateCookieRequest,
) -> Result<v1::RotateCookieResponse, SessionsError> {
    let handle = call.by_id(&request.session_id)?;
    let shown = arguments::received_generation_of(&request)?;
    let grace_ms = arguments::grace_ms(request.grace.as_ref())?;
    let session = api.sessions.rotate_cookie(handle, &shown, grace_ms).await?;
    call.is_about_person(&session.issuer, &session.subject);
    Ok(v1::RotateCookieResponse {
        session: Some(api.resource(&session)),
    })
}

pub(super) async fn bind_session(
    api: &Api,
    call: &Call,
    request: v1::BindSessionRequest,
) -> Result<v1::BindSessionResponse, SessionsError> {
    let handle = call.by_id(&request.session_id)?;
    let key = arguments::device_key("jwk", &request.jwk)?;
    let session = api.sessions.bind(handle, &key).await?;
    call.is_about_person(&session.issuer, &session.subject);
    Ok(v1::BindSessionResponse {
        session: Some(api.resource(&session)),
    })
}

fn update(request: &v1::UpdateSessionRequest) -> Result<SessionUpdate, SessionsError> {
    let mut paths: Vec<&str> = request
        .update_mask
        .iter()
        .flat_map(|mask| mask.paths.iter().map(String::as_str))
        .collect();
    if paths.is_empty() {
        paths.extend((!request.user.is_empty()).then_some("user"));
        paths.extend((!request.attributes.is_empty()).then_some("attributes"));
    }
    if paths.is_empty() {
        return arguments::wrong(
            "update_mask",
            "names nothing to replace, and neither user nor attributes is present",
        );
    }
    let mut update = SessionUpdate {
        version: (request.version != 0).then_some(request.version),
        ..SessionUpdate::default()
    };
    for path in paths {
        match path {
            "user" if request.user.is_empty() => {
                return arguments::wrong("user", "is required by the update_mask");
            }
            "user" => update.user = Some(arguments::claims("user", &request.user)?),
            // Named in the mask but absent: the attributes are cleared.
            "attributes" => {
                update.attributes = Some(arguments::claims("attributes", &request.attributes)?);
            }
            _ => return arguments::wrong("update_mask", "names a field other than user and attributes"),
        }
    }
    Ok(update)
}
