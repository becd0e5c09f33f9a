//! Why an access token fails, with the client's answer: error code, status, and a challenge with the metadata
//! URL (RFC 6750 section 3, RFC 9449 section 7.1, RFC 9470 section 3, RFC 9728 section 5.1).

use std::sync::Arc;

use axum::http::StatusCode;
use oidc::{AccessTokenError, ProofError};
use session_proto::v1::ErrorReason;

use crate::gateway::challenge;
use crate::http::errors::{HttpError, Limit};
use crate::http::protect::rate_limit::RateExceeded;
use crate::route_table::unmet_requirement::{UnmetRequirement, WRONG_CONNECTION, WRONG_ORGANIZATION};

/// Why a token fails.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.describe().1.words())]
pub(super) enum TokenRefusal {
    /// The header does not follow its scheme.
    Malformed,
    /// The token itself is invalid.
    #[error(transparent)]
    Token(#[from] Arc<AccessTokenError>),
    /// The token is not a JWT, and the provider's introspection is not in use.
    Opaque,
    /// `iss` names no configured provider, or not the provider of the host.
    Issuer,
    /// A bound token without a proof.
    WithoutProof,
    /// An unbound token with a proof, or on a route that accepts only bound tokens.
    NotBound,
    /// The proof is invalid.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The proof was used before.
    Replay,
    /// The token lacks a scope.
    Scope,
    /// `authorization_details` limit the token, and neither the edge nor the upstream enforces them.
    AuthorizationDetails,
    /// The issuer is not the provider of the route.
    Connection,
    /// The token does not meet the requirements of the route.
    Missing(HttpError),
    /// The route requires a more recent or stronger authentication.
    StepUp,
    /// Too many recent failures.
    TooMany(#[from] RateExceeded),
    /// Too many introspection calls are open, or the store of proofs is full.
    Overloaded,
}

impl From<UnmetRequirement> for TokenRefusal {
    fn from(missing: UnmetRequirement) -> Self {
        match missing {
            UnmetRequirement::StepUp => Self::StepUp,
            UnmetRequirement::Organization => Self::Missing(WRONG_ORGANIZATION),
            UnmetRequirement::Connection => Self::Connection,
            UnmetRequirement::NotBySignIn(failure) => Self::Missing(failure),
            // A token is no session and holds no other token.
            UnmetRequirement::Session | UnmetRequirement::Device | UnmetRequirement::Token(_) => {
                Self::Malformed
            }
        }
    }
}

impl TokenRefusal {
    /// A stable short name for logs and metrics, and the answer ([`HttpError::AccessToken`] if standard).
    pub(super) fn describe(&self) -> (&'static str, HttpError) {
        let standard = |code, status, words| HttpError::AccessToken { code, status, words };
        let invalid = |words| standard("invalid_token", StatusCode::UNAUTHORIZED, words);
        let proof = |words| standard("invalid_dpop_proof", StatusCode::UNAUTHORIZED, words);
        let scope = |words| standard("insufficient_scope", StatusCode::FORBIDDEN, words);
        let step_up = |words| standard(challenge::STEP_UP, StatusCode::UNAUTHORIZED, words);
        let request = |words| standard("invalid_request", StatusCode::BAD_REQUEST, words);
        match self {
            Self::Malformed => (
                "malformed_header",
                request("Send one Authorization header, with one token."),
            ),
            Self::Token(error) => match **error {
                AccessTokenError::Provider(_) => (
                    error.reason(),
                    HttpError::session(ErrorReason::ErrProviderUnavailable),
                ),
                _ => (error.reason(), invalid(words(error))),
            },
            Self::Opaque => ("opaque", invalid("Only JWT access tokens are accepted here.")),
            Self::Issuer => (
                "iss",
                invalid("The access token is from an issuer that is not accepted here."),
            ),
            Self::WithoutProof => (
                "without_proof",
                invalid("The access token is bound to a key: present it by DPoP, with a proof."),
            ),
            Self::NotBound => (
                "not_bound",
                invalid(
                    "The access token is not bound to a key: present it by Bearer, without a proof, where that is allowed.",
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
            Self::Scope => ("scope", scope("The access token lacks a required scope.")),
            Self::AuthorizationDetails => (
                "authorization_details",
                scope(
                    "The access token is limited by authorization_details (RFC 9396), which are not evaluated here.",
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
        "iss" => "The access token is from an issuer that is not accepted here.",
        "typ" => "The token is not an access token: it has another typ (RFC 9068: at+jwt).",
        "shape" => "The token does not have the form of its provider's access tokens.",
        "token_type" => "The provider says that the token is not an access token (token_type).",
        "cnf" => "The access token is bound to something that is not checked here.",
        "inactive" => "The access token is not active.",
        _ => "The access token is malformed, or its issuer is not accepted here.",
    }
}
