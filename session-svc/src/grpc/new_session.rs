//! Parses a CreateSessionRequest.

use prost::Message as _;
use session_proto::v1;

use super::arguments::{self, wrong};
use crate::session::{AccessToken, Scope, SessionTokens, SessionValues, StoredToken};
use crate::sessions::{FINGERPRINT_BYTES, NewSession, SessionsError, fingerprint, holder_hash};

/// The known types of access tokens; their case is ignored (RFC 6749, section 5.1).
const TOKEN_TYPES: [&str; 2] = ["Bearer", "DPoP"];

/// Parses a request of `now_ms`, in milliseconds since the Unix epoch.
pub(super) fn read(request: &v1::CreateSessionRequest, now_ms: u64) -> Result<NewSession, SessionsError> {
    let user = arguments::claims("user", &request.user)?;
    let subject = user.subject().unwrap_or_default();
    arguments::required_name("user.sub", &subject)?;
    let none = v1::TokenSet::default();
    let tokens = request.tokens.as_ref().unwrap_or(&none);
    let token_type = token_type(&tokens.token_type)?;
    let replaces = match request.replaces_session_id.as_str() {
        "" => None,
        text => Some(arguments::session_id("replaces_session_id", text)?),
    };
    let expires_at_ms = arguments::time_ms("tokens.expires_at", tokens.expires_at.as_ref())?
        .unwrap_or_else(|| now_ms.saturating_add(oidc::DEFAULT_TOKEN_LIFETIME_SECS * 1_000));
    let access = stored(&tokens.access_token).map(|value| AccessToken {
        value,
        token_type: token_type.to_owned(),
        expires_at_ms,
        lifetime_ms: AccessToken::kept_lifetime_ms(expires_at_ms.saturating_sub(now_ms) / 1_000),
    });
    let values = SessionValues {
        issuer: arguments::issuer(&request.issuer)?.to_owned(),
        subject,
        user,
        tokens: SessionTokens {
            access,
            scope: Scope::parse(&tokens.scope),
            refresh: stored(&tokens.refresh_token),
            id_token: stored(&tokens.id_token),
            generation: 1,
            ..SessionTokens::default()
        },
        provider_sid: arguments::name("provider_sid", &request.provider_sid)?.map(str::to_owned),
        authenticated_at_ms: arguments::time_ms("authenticated_at", request.authenticated_at.as_ref())?,
        created_on: arguments::device(request.device.as_ref())?.unwrap_or_default(),
        not_after_ms: arguments::time_ms("not_after", request.not_after.as_ref())?,
        ..SessionValues::default()
    };
    Ok(NewSession {
        values,
        replaces,
        request: request_fingerprint(request)?,
        received_at_ms: arguments::time_ms("tokens_received_at", request.tokens_received_at.as_ref())?,
    })
}

/// The request's name, and the hash that identifies a repetition: of the claim's holder, or of the whole request.
fn request_fingerprint(
    request: &v1::CreateSessionRequest,
) -> Result<Option<(String, [u8; FINGERPRINT_BYTES])>, SessionsError> {
    let holder = arguments::holder(&request.holder)?;
    let Some(id) = arguments::request_id(&request.request_id)? else {
        return match holder {
            Some(_) => wrong("request_id", "is required with holder"),
            None => Ok(None),
        };
    };
    let hash = holder.map_or_else(|| fingerprint(&request.encode_to_vec()), holder_hash);
    Ok(Some((id.to_owned(), hash)))
}

fn token_type(text: &str) -> Result<&'static str, SessionsError> {
    if text.is_empty() {
        return Ok(TOKEN_TYPES[0]);
    }
    let known = TOKEN_TYPES
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(text));
    known.map_or_else(|| wrong("tokens.token_type", "is neither Bearer nor DPoP"), Ok)
}

fn stored(text: &str) -> Option<StoredToken> {
    (!text.is_empty()).then(|| StoredToken::new(text.to_owned()))
}
