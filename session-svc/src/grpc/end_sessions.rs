//! An EndSessionsRequest, read.

use std::time::Duration;

use session_proto::v1;
use tokio::time::Instant;

use super::arguments;
use crate::session::Cause;
use crate::sessions::{EndAll, OfflineTokens, Once, SessionsError};

/// What a request wants ended, for a caller who waits until `answer_by`.
pub(super) fn read(
    request: &v1::EndSessionsRequest,
    answer_by: Option<Instant>,
) -> Result<EndAll, SessionsError> {
    let issuer = arguments::issuer(&request.issuer)?.to_owned();
    let subject = arguments::name("subject", &request.subject)?.map(str::to_owned);
    let provider_sid = arguments::name("provider_sid", &request.provider_sid)?.map(str::to_owned);
    if subject.is_none() && provider_sid.is_none() {
        return arguments::wrong("subject", "subject or provider_sid is required");
    }
    let except = match request.except_handle.as_str() {
        "" => None,
        text => Some(arguments::handle("except_handle", text)?),
    };
    Ok(EndAll {
        issuer,
        subject,
        provider_sid,
        except,
        cause: arguments::cause(request.cause, Cause::Operator),
        offline_tokens: OfflineTokens::kept_if(request.keep_offline_tokens),
        existing_only: request.existing_only,
        once: once(request)?,
        told_ago_ms: told_ago_ms(request)?,
        answer_by,
    })
}

/// How long ago the caller learnt of the ending, in milliseconds: at most a minute, which is longer than a caller
/// retries the call.
fn told_ago_ms(request: &v1::EndSessionsRequest) -> Result<Option<u64>, SessionsError> {
    const MOST: Duration = Duration::from_secs(60);
    match arguments::duration("told_ago", request.told_ago.as_ref())? {
        Some(told_ago) if told_ago > MOST => arguments::wrong("told_ago", "is longer than a minute"),
        told_ago => Ok(told_ago.map(|ago| u64::try_from(ago.as_millis()).unwrap_or_default())),
    }
}

fn once(request: &v1::EndSessionsRequest) -> Result<Option<Once>, SessionsError> {
    let until_ms = arguments::time_ms("once_until", request.once_until.as_ref())?;
    let Some(id) = arguments::once_id(&request.once_id)? else {
        return Ok(None);
    };
    let Some(until_ms) = until_ms else {
        return arguments::wrong("once_until", "is required with once_id");
    };
    Ok(Some(Once {
        id: id.to_owned(),
        until_ms,
        request_id: arguments::request_id(&request.request_id)?.map(str::to_owned),
    }))
}
