//! `Debug` for messages with a secret or claims about a user: it shows only their names.
//!
//! These are the messages with a `debug_redact` field in the `.proto` files.

use std::fmt::{Debug, Formatter, Result};

use crate::v1;

/// Implements `Debug` for messages with their names only.
macro_rules! redact {
    ($($($message:ident)::+),* $(,)?) => {$(
        impl Debug for v1::$($message)::+ {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                f.debug_struct(stringify!($($message)::+)).finish_non_exhaustive()
            }
        }
    )*};
}

redact! {
    Session,
    TokenSet,
    BeginSignInResponse,
    CreateSessionRequest,
    CreateSessionResponse,
    GetSessionRequest,
    RollSessionRequest,
    UpdateSessionRequest,
    GetAccessTokenRequest,
    GetAccessTokenResponse,
    ReceiveSecurityEventRequest,
    EndSessionRequest,
    EndSessionResponse,
    get_session_request::By,
    end_session_request::By,
}

/// The generator skips `Debug` for the enums of a skipped message as well.
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
        assert!(shown.contains("CreateSessionRequest"), "{shown}");
    }
}
