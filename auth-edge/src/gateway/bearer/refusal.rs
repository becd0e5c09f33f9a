//! Why an access token does not pass, and how the client is told: error code, status, and the challenge that leads it to the
//! resource's metadata (RFC 6750 section 3, RFC 9449 section 7.1, RFC 9470 section 3, RFC 9728 section 5.1).

use std::sync::Arc;

use axum::http::StatusCode;
use oidc::{AccessTokenError, ProofError};
use session_proto::v1::ErrorReason;

use crate::gateway::challenge;
use crate::http::errors::{HttpError, Limit};
use crate::http::protect::rate_limit::TooMany;
use crate::route_table::missing::{Missing, WRONG_CONNECTION, WRONG_ORGANIZATION};

/// Why a token does not pass.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.told().1.words())]
pub(super) enum TokenRefusal {
    /// The header is not what its scheme says.
    Malformed,
    /// The token itself.
    #[error(transparent)]
    Token(#[from] Arc<AccessTokenError>),
    /// A token that is no JWT, where the provider is not asked about tokens.
    Opaque,
    /// `iss` is none of the providers, or not the one the host belongs to.
    Issuer,
    /// A bound token without a proof.
    WithoutProof,
    /// A token that is bound to nothing, with a proof, or where only bound ones pass.
    NotBound,
    /// The proof.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The proof was seen before.
    Replay,
    /// The token lacks a scope.
    Scope,
    /// `authorization_details` narrow the token, and neither the edge nor the upstream looks at them.
    AuthorizationDetails,
    /// The token was issued by another provider than the route is for.
    Connection,
    /// What the route requires of everybody.
    Missing(HttpError),
    /// A younger or stronger authentication of the person is required.
    StepUp,
    /// Too much was refused of late.
    TooMany(#[from] TooMany),
    /// More questions to providers are open than may be, or more proofs came than can be remembered.
    Overloaded,
}

impl From<Missing> for TokenRefusal {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::StepUp => Self::StepUp,
            Missing::Organization => Self::Missing(WRONG_ORGANIZATION),
            Missing::Connection => Self::Connection,
            Missing::NotBySignIn(failure) => Self::Missing(failure),
            // A token is no session and holds no other one.
            Missing::Session | Missing::Device | Missing::Token(_) => Self::Malformed,
        }
    }
}

impl TokenRefusal {
    /// A short name that stays, for logs and metrics; and the answer, an [`HttpError::AccessToken`] where a standard has one.
    pub(super) fn told(&self) -> (&'static str, HttpError) {
        let standard = |code, status, words| HttpError::AccessToken { code, status, words };
        let invalid = |words| standard("invalid_token", StatusCode::UNAUTHORIZED, words);
        let proof = |words| standard("invalid_dpop_proof", StatusCode::UNAUTHORIZED, words);
        let scope = |words| standard("insufficient_scope", StatusCode::FORBIDDEN, words);
        let step_up = |words| standard(challenge::STEP_UP, StatusCode::UNAUTHORIZED, words);
        let request = |words| standard("invalid_request", StatusCode::BAD_REQUEST, words);
        match self {
            Self::Malformed => (
                "malformed_header",
                request("There has to be one Authorization header, with one token."),
            ),
            Self::Token(error) => match **error {
                AccessTokenError::Provider(_) => (
                    error.reason(),
                    HttpError::session(ErrorReason::ErrProviderUnavailable),
                ),
                _ => (error.reason(), invalid(words(error))),
            },
            Self::Opaque => ("opaque", invalid("Only JWT access tokens are taken here.")),
            Self::Issuer => (
                "iss",
                invalid("The access token is of an issuer that does not count here."),
            ),
            Self::WithoutProof => (
                "without_proof",
                invalid("The access token is bound to a key: present it by DPoP, with a proof."),
            ),
            Self::NotBound => (
                "not_bound",
                invalid(
                    "The access token is bound to no key: present it by Bearer, without a proof, where that is allowed.",
                ),
            ),
            Self::Proof(_) => (
                "proof",
                proof("The DPoP proof is absent, or not for this request and this token."),
            ),
            Self::Replay => (
                "replay",
                proof("The DPoP proof was used before: make one for each request."),
            ),
            Self::Scope => (
                "scope",
                scope("The access token lacks a scope that is asked for."),
            ),
            Self::AuthorizationDetails => (
                "authorization_details",
                scope(
                    "The access token is narrowed by authorization_details (RFC 9396), which are not looked at here.",
                ),
            ),
            Self::StepUp => ("step_up", step_up("A different sign-in is needed.")),
            Self::Connection => ("connection", WRONG_CONNECTION),
            Self::Missing(failure) => ("requirement", failure.clone()),
            Self::TooMany(too_many) => ("rate_limited", too_many.refuse(Limit::AccessTokens)),
            Self::Overloaded => ("overloaded", HttpError::Overloaded(Limit::TokenChecks)),
        }
    }
}

fn words(error: &AccessTokenError) -> &'static str {
    match error.reason() {
        "aud" if matches!(error, AccessTokenError::NoAudience) => "The access token names no audience (aud).",
        "expired" => "The access token has expired.",
        "nbf" | "iat" => "The access token is not valid yet.",
        "aud" => "The access token is for another resource.",
        "iss" => "The access token is of an issuer that does not count here.",
        "typ" => "The token is no access token: its typ is another one (RFC 9068: at+jwt).",
        "shape" => "The token is no access token as its provider makes them.",
        "token_type" => "The provider says that the token is no access token (token_type).",
        "cnf" => "The access token is bound to something that is not checked here.",
        "inactive" => "The access token is not active.",
        _ => "The access token is malformed, or was not issued by a provider that counts here.",
    }
}
