//! Why an access token does not pass, and how the client is told: error code, status, and the challenge that leads it to the
//! resource's metadata (RFC 6750 section 3, RFC 9449 section 7.1, RFC 9470 section 3, RFC 9728 section 5.1).

use std::sync::Arc;

use axum::http::StatusCode;
use oidc::{AccessTokenError, ProofError};

use crate::gateway::challenge;
use crate::http::errors::HttpError;
use crate::http::protect::rate_limit::TooMany;
use crate::route_table::missing::{Missing, WRONG_ORGANIZATION};

/// Why a token does not pass.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenRefusal {
    /// The header is not what its scheme says.
    #[error("the Authorization header is malformed")]
    Malformed,
    /// The token itself.
    #[error(transparent)]
    Token(#[from] Arc<AccessTokenError>),
    /// A token that is no JWT, where the provider is not asked about tokens.
    #[error("the token is opaque, and the route does not introspect")]
    Opaque,
    /// `iss` is none of the providers, or not the one the host belongs to.
    #[error("iss is no provider that counts here")]
    Issuer,
    /// A bound token without a proof.
    #[error("the token is bound to a key and is not shown with a proof")]
    WithoutProof,
    /// A token that is bound to nothing, with a proof, or where only bound ones pass.
    #[error("the token is bound to no key")]
    NotBound,
    /// The proof.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The proof was seen before.
    #[error("the proof was used before")]
    Replay,
    /// The token lacks a scope.
    #[error("the token lacks a scope")]
    Scope,
    /// `authorization_details` narrow the token, and neither the edge nor the upstream looks at them.
    #[error("the token is narrowed by authorization_details, which the route does not look at")]
    AuthorizationDetails,
    /// The token was issued by another provider than the route is for.
    #[error("the token is of another provider than the route is for")]
    Connection,
    /// What the route requires of everybody.
    #[error("the token lacks what the route requires")]
    Missing(HttpError),
    /// A younger or stronger authentication of the person is required.
    #[error("the person's authentication is too old or too weak, or the token does not tell")]
    StepUp,
    /// Too much was refused of late.
    #[error("too many tokens or proofs from there")]
    TooMany(#[from] TooMany),
    /// More questions to providers are open than may be, or more proofs came than can be remembered.
    #[error("there is no room to judge one more token")]
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

/// Error code, status and words of a standard's answer.
type StandardAnswer = (&'static str, StatusCode, &'static str);

impl TokenRefusal {
    /// A short name that stays, for logs and metrics; and the standard's answer, if it has one for this.
    pub(super) fn told(&self) -> (&'static str, Option<StandardAnswer>) {
        let invalid = |words| Some(("invalid_token", StatusCode::UNAUTHORIZED, words));
        let proof = |words| Some(("invalid_dpop_proof", StatusCode::UNAUTHORIZED, words));
        let scope = |words| Some(("insufficient_scope", StatusCode::FORBIDDEN, words));
        let step_up = |words| Some((challenge::STEP_UP, StatusCode::UNAUTHORIZED, words));
        let request = |words| Some(("invalid_request", StatusCode::BAD_REQUEST, words));
        match self {
            Self::Malformed => (
                "malformed_header",
                request("There has to be one Authorization header, with one token."),
            ),
            Self::Token(error) => match **error {
                AccessTokenError::Provider(_) => (error.reason(), None),
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
            Self::Connection => ("connection", None),
            Self::Missing(_) => ("requirement", None),
            Self::TooMany(_) => ("rate_limited", None),
            Self::Overloaded => ("overloaded", None),
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
