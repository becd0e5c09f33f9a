//! The stable reason of each error. Matches are exhaustive: an error that is added gets a reason, or the compiler asks for one.

use oidc::{IdTokenError, LogoutTokenError, OAuthError, ProviderError, TokenError, UserinfoError};

use crate::http::errors::HttpError;
use crate::values::refusal::RefusalReason as Reason;

/// Of a request to the provider that brought nothing.
pub(in crate::sign_in) fn of_provider(error: &ProviderError) -> Reason {
    match error {
        ProviderError::Unreachable { .. } => Reason::ProviderUnreachable,
        ProviderError::Timeout { .. } => Reason::ProviderTimeout,
        ProviderError::Status { .. }
        | ProviderError::TooLarge { .. }
        | ProviderError::Malformed { .. }
        | ProviderError::Unverified { .. } => Reason::ProviderAnswer,
        ProviderError::IssuerMismatch => Reason::ProviderIssuer,
        ProviderError::MissingEndpoint { .. } | ProviderError::InsecureEndpoint { .. } => {
            Reason::ProviderMetadata
        }
        ProviderError::NoS256 => Reason::NoPkce,
        ProviderError::PushedRequests => Reason::PushedRequests,
        ProviderError::Refused { refusal, .. } => of_refusal(refusal, Reason::RequestRefused),
        ProviderError::ClientRefused { .. } => Reason::ClientRefused,
        ProviderError::ClientAssertion => Reason::NotSigned,
        ProviderError::Recent(earlier) => of_provider(earlier),
    }
}

/// Of an exchange of the code that brought no tokens.
pub(in crate::sign_in) fn of_token(error: &TokenError) -> Reason {
    match error {
        TokenError::Provider(error) => of_provider(error),
        TokenError::Refused(refusal) => of_refusal(refusal, Reason::RequestRefused),
        TokenError::MissingAccessToken | TokenError::MissingIdToken | TokenError::TokenType => {
            Reason::TokenResponse
        }
    }
}

/// RFC 6749, section 5.2: whether it is the client, the grant, or something else.
fn of_refusal(refusal: &OAuthError, otherwise: Reason) -> Reason {
    match refusal.code() {
        _ if refusal.is_about_client() => Reason::ClientRefused,
        "unauthorized_client" => Reason::ClientRefused,
        "invalid_grant" => Reason::CodeRefused,
        _ => otherwise,
    }
}

/// Of an ID token, or of what a logout token shares with one.
pub(in crate::sign_in) fn of_id_token(error: &IdTokenError) -> Reason {
    match error {
        IdTokenError::Provider(error) => of_provider(error),
        IdTokenError::Malformed | IdTokenError::Header | IdTokenError::Type(_) => Reason::TokenMalformed,
        IdTokenError::TooLong => Reason::TokenTooLong,
        IdTokenError::Algorithm => Reason::TokenAlgorithm,
        IdTokenError::UnknownKey => Reason::TokenUnknownKey,
        IdTokenError::Signature => Reason::TokenSignature,
        IdTokenError::Issuer => Reason::TokenIssuer,
        IdTokenError::Audience | IdTokenError::AuthorizedParty => Reason::TokenAudience,
        IdTokenError::Expired | IdTokenError::NotYetValid => Reason::TokenExpired,
        IdTokenError::IssuedAt => Reason::TokenIssuedAt,
        IdTokenError::Nonce => Reason::TokenNonce,
        IdTokenError::AccessTokenHash => Reason::TokenAccessTokenHash,
        IdTokenError::AuthTime => Reason::TokenAuthTime,
        IdTokenError::NoAuthTime => Reason::TokenNoAuthTime,
        IdTokenError::Acr(_) => Reason::TokenAcr,
        IdTokenError::Subject => Reason::TokenSubject,
        IdTokenError::Organization => Reason::Organization,
    }
}

/// Of userinfo. What is wrong with a signed one says its cause.
pub(in crate::sign_in) fn of_userinfo(error: &UserinfoError) -> Reason {
    match error {
        UserinfoError::Provider(error) | UserinfoError::Token(IdTokenError::Provider(error)) => {
            of_provider(error)
        }
        UserinfoError::Unauthorized => Reason::UserinfoRefused,
        UserinfoError::Subject => Reason::UserinfoSubject,
        UserinfoError::Malformed | UserinfoError::Token(_) => Reason::UserinfoAnswer,
    }
}

/// Of a logout token.
pub(in crate::sign_in) fn of_logout_token(error: &LogoutTokenError) -> Reason {
    match error {
        LogoutTokenError::Provider(error) => of_provider(error),
        LogoutTokenError::UnknownKey => Reason::TokenUnknownKey,
        LogoutTokenError::Token(error) => of_id_token(error),
        LogoutTokenError::Type => Reason::TokenType,
        LogoutTokenError::Stale => Reason::TokenIssuedAt,
        LogoutTokenError::TokenId => Reason::TokenId,
        LogoutTokenError::Events => Reason::TokenEvents,
        LogoutTokenError::Nonce => Reason::TokenNonce,
        LogoutTokenError::Nobody => Reason::TokenNobody,
    }
}

/// Of answers any handler can give; `None` for those that refuse no sign-in.
pub(super) fn of_answer(answer: &HttpError) -> Option<Reason> {
    match answer {
        HttpError::RateLimited { .. } => Some(Reason::RateLimited),
        HttpError::Forbidden { .. } => Some(Reason::NotAVisit),
        HttpError::SessionServiceDown | HttpError::CallbackUnavailable { .. } => {
            Some(Reason::SessionServiceUnavailable)
        }
        HttpError::BadRequest(_)
        | HttpError::LogoutToken(_)
        | HttpError::TooLarge
        | HttpError::TooSlow
        | HttpError::UnsupportedMediaType { .. } => Some(Reason::Body),
        HttpError::Internal => Some(Reason::Fault),
        _ => None,
    }
}
