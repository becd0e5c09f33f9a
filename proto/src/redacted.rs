//! `Debug` for the messages that carry a secret or claims about a person: these are shown as `…`, or as nothing when they are empty.
//!
//! The fields are those marked `debug_redact` in the `.proto` files.

use std::fmt::{Debug, Formatter, Result};

use crate::v1;

struct Redacted<'a>(&'a str);

impl Debug for Redacted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(if self.0.is_empty() { "\"\"" } else { "…" })
    }
}

/// Writes `Debug` for a message: `shown` fields as they are, `hidden` ones redacted.
macro_rules! redact {
    ($($message:ident { shown: [$($shown:ident),*], hidden: [$($hidden:ident),*] })*) => {$(
        impl Debug for v1::$message {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                f.debug_struct(stringify!($message))
                    $(.field(stringify!($shown), &self.$shown))*
                    $(.field(stringify!($hidden), &Redacted(&self.$hidden)))*
                    .finish()
            }
        }
    )*};
}

/// An enum within a message that is left out is left out with it.
impl Debug for v1::begin_sign_in_response::Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.as_str_name())
    }
}

impl Debug for v1::session::State {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.as_str_name())
    }
}

redact! {
    Session {
        shown: [
            handle, issuer, subject, scope, access_token_expires_at, has_refresh_token, provider_sid, authenticated_at, created_at,
            rolled_at, expires_at, absolute_expires_at, created_on, last_seen_on, state, version, current, device_binding, cookie_generation, theft_at,
            sign_in_demand
        ],
        hidden: [user, attributes]
    }
    TokenSet { shown: [token_type, scope, expires_at], hidden: [access_token, refresh_token, id_token] }
    CreateSessionRequest {
        shown: [
            issuer, tokens, provider_sid, authenticated_at, device, request_id, not_after, tokens_received_at, holder
        ],
        hidden: [user, replaces_session_id]
    }
    BeginSignInResponse { shown: [outcome, now, session], hidden: [session_id] }
    CreateSessionResponse { shown: [session], hidden: [session_id] }
    GetSessionRequest { shown: [by], hidden: [] }
    RollSessionRequest { shown: [device], hidden: [session_id] }
    UpdateSessionRequest { shown: [update_mask, version], hidden: [session_id, user, attributes] }
    GetAccessTokenRequest { shown: [scopes, force_refresh, audience, resource], hidden: [session_id] }
    GetAccessTokenResponse { shown: [token_type, scope, expires_at, audience, resource, good_until], hidden: [access_token] }
    EndSessionRequest { shown: [by, cause, keep_offline_tokens], hidden: [] }
    ReceiveSecurityEventRequest { shown: [], hidden: [token, authorization] }
    EndSessionResponse { shown: [ended, issuer], hidden: [id_token_hint] }
}

impl Debug for v1::get_session_request::By {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::SessionId(id) => f.debug_tuple("SessionId").field(&Redacted(id)).finish(),
            Self::Handle(handle) => f.debug_tuple("Handle").field(handle).finish(),
        }
    }
}

impl Debug for v1::end_session_request::By {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::SessionId(id) => f.debug_tuple("SessionId").field(&Redacted(id)).finish(),
            Self::Handle(handle) => f.debug_tuple("Handle").field(handle).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::v1;

    #[test]
    fn debug_shows_no_secret() {
        let request = v1::CreateSessionRequest {
            issuer: "https://issuer.example".into(),
            user: r#"{"sub": "s3cret-person"}"#.into(),
            replaces_session_id: "s3cret-session".into(),
            tokens: Some(v1::TokenSet {
                access_token: "s3cret-access".into(),
                refresh_token: "s3cret-refresh".into(),
                id_token: "s3cret-id".into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let by = v1::GetSessionRequest {
            by: Some(v1::get_session_request::By::SessionId("s3cret-by".into())),
        };
        let session = v1::Session {
            user: r#"{"sub": "s3cret-person"}"#.into(),
            attributes: r#"{"note": "s3cret-note"}"#.into(),
            ..Default::default()
        };
        let shown = format!("{request:?} {by:?} {session:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(shown.contains("https://issuer.example"), "{shown}");
    }
}
