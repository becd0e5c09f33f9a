//! Errors of a security event token, and the code that its transmitter receives (RFC 8935 section 2.4).

use oidc::{IdTokenError, ProviderError};

/// A security event token is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SecurityEventError {
    /// The keys cannot be read: no verdict, the transmitter may retry.
    #[error("the keys of the transmitter cannot be read")]
    Keys(#[source] ProviderError),
    /// No key fits the token. The transmitter may not have published it yet.
    #[error("no key of the transmitter fits the token")]
    UnknownKey,
    /// The token is wrong.
    #[error("{part} {fault}")]
    Refused {
        /// The code for the transmitter.
        code: ErrorCode,
        /// The part of the token that is wrong.
        part: &'static str,
        /// What is wrong with it.
        fault: &'static str,
    },
}

/// The `err` of the answer to a refused push (RFC 8935 section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// It cannot be parsed, or the event does not conform to its definition.
    InvalidRequest,
    /// The key it is signed with is not acceptable.
    InvalidKey,
    /// The receiver does not trust its issuer.
    InvalidIssuer,
    /// It is for another receiver.
    InvalidAudience,
    /// The sender did not authenticate to the endpoint.
    AuthenticationFailed,
    /// The sender may not ask for this.
    AccessDenied,
}

impl ErrorCode {
    /// Its registered name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidKey => "invalid_key",
            Self::InvalidIssuer => "invalid_issuer",
            Self::InvalidAudience => "invalid_audience",
            Self::AuthenticationFailed => "authentication_failed",
            Self::AccessDenied => "access_denied",
        }
    }
}

impl SecurityEventError {
    /// The token does not conform to its definition.
    pub(crate) fn invalid(part: &'static str, fault: &'static str) -> Self {
        let code = ErrorCode::InvalidRequest;
        Self::Refused { code, part, fault }
    }

    /// Not a compact JWS, too long, or not strict JSON inside.
    #[must_use]
    pub fn malformed() -> Self {
        Self::invalid("the token", "is malformed")
    }

    /// The token of a transmitter that is not trusted.
    #[must_use]
    pub fn unknown_issuer() -> Self {
        Self::Refused {
            code: ErrorCode::InvalidIssuer,
            part: "iss",
            fault: "is not a trusted transmitter",
        }
    }

    /// The same fault, found in a token that authenticates a request.
    pub(crate) fn of_credential(self) -> Self {
        match self {
            Self::Refused { part, fault, .. } => Self::Refused {
                code: ErrorCode::AuthenticationFailed,
                part,
                fault,
            },
            undecided => undecided,
        }
    }

    /// The code of a refusal. `None` means no verdict: the transmitter's keys cannot be read, or lack the
    /// token's key. The same token may be valid later.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Keys(_) | Self::UnknownKey => None,
            Self::Refused { code, .. } => Some(*code),
        }
    }
}

impl From<IdTokenError> for SecurityEventError {
    fn from(error: IdTokenError) -> Self {
        let key = |part, fault| Self::Refused {
            code: ErrorCode::InvalidKey,
            part,
            fault,
        };
        match error {
            IdTokenError::Provider(source) => Self::Keys(source),
            IdTokenError::UnknownKey => Self::UnknownKey,
            IdTokenError::Signature => key("the signature", "does not verify"),
            IdTokenError::Algorithm => key("alg", "is not allowed"),
            IdTokenError::Header => Self::invalid("the header", "has members that cannot be understood"),
            _ => Self::malformed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_not_there_are_no_verdict_and_a_wrong_key_is_one() {
        let endpoint = "jwks_uri";
        for (error, code) in [
            (IdTokenError::Provider(ProviderError::Timeout(endpoint)), None),
            (IdTokenError::UnknownKey, None),
            (IdTokenError::Signature, Some("invalid_key")),
            (IdTokenError::Algorithm, Some("invalid_key")),
            (IdTokenError::Header, Some("invalid_request")),
            (IdTokenError::TooLong, Some("invalid_request")),
        ] {
            let error = SecurityEventError::from(error);
            assert_eq!(error.code().map(ErrorCode::name), code, "{error}");
        }
        let issuer = SecurityEventError::unknown_issuer();
        assert_eq!(issuer.code().map(ErrorCode::name), Some("invalid_issuer"));
    }
}
