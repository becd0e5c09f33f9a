//! Why a security event was refused, and what its transmitter is told of it (RFC 8935 section 2.4).

use crate::subject_identifier::SubjectError;
use crate::{IdTokenError, ProviderError};

/// A security event token was refused.
#[derive(Debug, thiserror::Error)]
pub enum SecurityEventError {
    /// The keys could not be had: no verdict, and the transmitter may try again.
    #[error(transparent)]
    Provider(ProviderError),
    /// No key of the transmitter fits the token, also none that was fetched anew, as often as that is done. It may not be
    /// published yet.
    #[error("no key of the transmitter fits the token")]
    UnknownKey,
    /// The signature does not verify by the key the token names.
    #[error("the signature does not verify")]
    Signature,
    /// `alg` is none that tokens may be signed with.
    #[error("the token is signed with an algorithm that is not allowed")]
    Algorithm,
    /// Not a compact JWS, too long, or not strict JSON inside.
    #[error("the token is malformed")]
    Malformed,
    /// The header has `crit`.
    #[error("the header has members that can not be understood")]
    Header,
    /// `typ` is not `secevent+jwt` (RFC 8417 section 2.3, SSF 1.0 section 4.1.1).
    #[error("typ is not secevent+jwt")]
    Type,
    /// `iss` is absent or another (SSF 1.0 section 4.1.6).
    #[error("iss is not the transmitter")]
    Issuer,
    /// `aud` is absent, malformed, or names none of ours (RFC 8935 section 2).
    #[error("aud does not name this receiver")]
    Audience,
    /// A claim is there that makes the token one of another kind: `exp`, `sub` or `nonce` (SSF 1.0 sections 4.1.2, 4.1.3 and
    /// 4.1.7, RFC 8417 section 4).
    #[error("a security event has no {claim}")]
    OtherKind {
        /// The claim.
        claim: &'static str,
    },
    /// `nbf` is malformed or not reached.
    #[error("nbf has not been reached")]
    NotYetValid,
    /// `iat` is absent or in the future.
    #[error("iat is absent or in the future")]
    IssuedAt,
    /// `jti` is absent, empty or too long.
    #[error("jti is absent")]
    TokenId,
    /// `sub_id` is absent or malformed (SSF 1.0 section 3.1).
    #[error("sub_id is no subject: {0}")]
    Subject(SubjectError),
    /// `events` does not hold one event (RFC 8417 section 2.2, SSF 1.0 section 4.2.1).
    #[error("events does not hold one event")]
    Events,
    /// What the definition of the event requires is absent or malformed.
    #[error("the event {event_type} has no {member} that can be used")]
    Payload {
        /// The type of the event.
        event_type: &'static str,
        /// What is absent.
        member: &'static str,
    },
    /// An event about a stream is about something else than an opaque identifier (SSF 1.0 sections 8.1.4.1 and 8.1.5).
    #[error("sub_id of an event about a stream is not opaque")]
    StreamSubject,
}

/// The `err` of the answer to a push that is refused (RFC 8935 section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityEventErrorCode {
    /// It cannot be parsed, or the event does not conform to its definition.
    InvalidRequest,
    /// The key it is signed with is not acceptable.
    InvalidKey,
    /// Nothing of its issuer is taken.
    InvalidIssuer,
    /// It is for somebody else.
    InvalidAudience,
    /// Whoever has sent it is not known: for the endpoint it was sent to.
    AuthenticationFailed,
}

impl SecurityEventErrorCode {
    /// Its name in the registry of Security Event Token Error Codes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidKey => "invalid_key",
            Self::InvalidIssuer => "invalid_issuer",
            Self::InvalidAudience => "invalid_audience",
            Self::AuthenticationFailed => "authentication_failed",
        }
    }
}

impl SecurityEventError {
    /// The code of the answer; `None` if the token could not be judged, which is an error of HTTP (RFC 8935 section 2.3).
    #[must_use]
    pub fn code(&self) -> Option<SecurityEventErrorCode> {
        Some(match self {
            Self::Provider(_) => return None,
            Self::UnknownKey | Self::Signature | Self::Algorithm => SecurityEventErrorCode::InvalidKey,
            Self::Issuer => SecurityEventErrorCode::InvalidIssuer,
            Self::Audience => SecurityEventErrorCode::InvalidAudience,
            Self::Malformed
            | Self::Header
            | Self::Type
            | Self::OtherKind { .. }
            | Self::NotYetValid
            | Self::IssuedAt
            | Self::TokenId
            | Self::Subject(_)
            | Self::Events
            | Self::Payload { .. }
            | Self::StreamSubject => SecurityEventErrorCode::InvalidRequest,
        })
    }

    /// Whether this is no verdict: the transmitter's keys cannot be had, or lack the token's. The same token may be good later.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        matches!(self, Self::Provider(_) | Self::UnknownKey)
    }

    /// A short name that stays, for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Provider(_) => "transmitter_unavailable",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Algorithm => "alg",
            Self::Malformed => "malformed",
            Self::Header => "header",
            Self::Type => "typ",
            Self::Issuer => "iss",
            Self::Audience => "aud",
            Self::OtherKind { .. } => "other_kind",
            Self::NotYetValid => "nbf",
            Self::IssuedAt => "iat",
            Self::TokenId => "jti",
            Self::Subject(_) | Self::StreamSubject => "sub_id",
            Self::Events => "events",
            Self::Payload { .. } => "payload",
        }
    }
}

impl From<SubjectError> for SecurityEventError {
    fn from(error: SubjectError) -> Self {
        Self::Subject(error)
    }
}

impl From<IdTokenError> for SecurityEventError {
    fn from(error: IdTokenError) -> Self {
        match error {
            IdTokenError::Provider(provider) => Self::Provider(provider),
            IdTokenError::UnknownKey => Self::UnknownKey,
            IdTokenError::Signature => Self::Signature,
            IdTokenError::Algorithm => Self::Algorithm,
            IdTokenError::Header | IdTokenError::Type(_) => Self::Header,
            IdTokenError::Issuer => Self::Issuer,
            IdTokenError::NotYetValid => Self::NotYetValid,
            // The others are of claims that are judged here.
            _ => Self::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SecurityEventErrorCode as Code;

    #[test]
    fn each_refusal_is_told_by_one_code_and_no_verdict_by_none() {
        let endpoint = "jwks_uri";
        let event_type = crate::SECURITY_EVENT_TYPES[0];
        for (error, code, undecided) in [
            (
                SecurityEventError::Provider(ProviderError::Timeout { endpoint }),
                None,
                true,
            ),
            (SecurityEventError::UnknownKey, Some(Code::InvalidKey), true),
            (SecurityEventError::Signature, Some(Code::InvalidKey), false),
            (SecurityEventError::Algorithm, Some(Code::InvalidKey), false),
            (SecurityEventError::Malformed, Some(Code::InvalidRequest), false),
            (SecurityEventError::Header, Some(Code::InvalidRequest), false),
            (SecurityEventError::Type, Some(Code::InvalidRequest), false),
            (SecurityEventError::Issuer, Some(Code::InvalidIssuer), false),
            (SecurityEventError::Audience, Some(Code::InvalidAudience), false),
            (
                SecurityEventError::OtherKind { claim: "exp" },
                Some(Code::InvalidRequest),
                false,
            ),
            (SecurityEventError::NotYetValid, Some(Code::InvalidRequest), false),
            (SecurityEventError::IssuedAt, Some(Code::InvalidRequest), false),
            (SecurityEventError::TokenId, Some(Code::InvalidRequest), false),
            (
                SecurityEventError::Subject(SubjectError::Format),
                Some(Code::InvalidRequest),
                false,
            ),
            (SecurityEventError::Events, Some(Code::InvalidRequest), false),
            (
                SecurityEventError::Payload {
                    event_type,
                    member: "claims",
                },
                Some(Code::InvalidRequest),
                false,
            ),
            (
                SecurityEventError::StreamSubject,
                Some(Code::InvalidRequest),
                false,
            ),
        ] {
            assert_eq!((error.code(), error.is_undecided()), (code, undecided), "{error}");
        }
    }

    #[test]
    fn codes_have_the_names_that_are_registered() {
        let codes = [
            Code::InvalidRequest,
            Code::InvalidKey,
            Code::InvalidIssuer,
            Code::InvalidAudience,
            Code::AuthenticationFailed,
        ];
        assert_eq!(
            codes.map(Code::name),
            [
                "invalid_request",
                "invalid_key",
                "invalid_issuer",
                "invalid_audience",
                "authentication_failed",
            ]
        );
    }
}
