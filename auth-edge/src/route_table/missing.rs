//! What a guard misses, and what is left to say when signing in has not brought it.

use session_proto::v1::ErrorReason;

use super::requirements::Requirements;
use crate::http::errors::HttpError;
use crate::sessions::CachedSession;
use crate::values::refusal::PROVIDER_TELLS_NO_TIME;

/// What is missing.
pub(crate) enum Missing {
    /// A session, or one that still does what is required.
    Session,
    /// A sign-in that is young enough, or of one of the required classes.
    StepUp,
    /// A sign-in as member of the organization.
    Organization,
    /// A sign-in at the provider the route is for.
    Connection,
    /// Proof that the session comes from the device it is bound to.
    Device,
    /// A usable access token, for this reason.
    Token(ErrorReason),
    /// What signing in again does not bring: a right, or a service that is down.
    NotBySignIn(HttpError),
}

impl Missing {
    /// Whether a sign-in is what brings it.
    pub(crate) fn is_of_sign_in(&self) -> bool {
        matches!(self, Self::StepUp | Self::Organization | Self::Connection)
    }

    /// What a sign-in was requested for and did not bring the next one would not bring either: another one would go round in
    /// circles.
    pub(crate) fn after_sign_in(self, session: &CachedSession, requirements: &Requirements) -> Self {
        match self {
            Self::StepUp if requirements.lacks_class(session.into()) => {
                Self::NotBySignIn(HttpError::MissingClass {
                    acr: requirements.acr.clone(),
                })
            }
            Self::StepUp => {
                let undated = requirements.max_age_secs.is_some() && session.authenticated_at.is_none();
                let words = if undated {
                    PROVIDER_TELLS_NO_TIME
                } else {
                    "Signing in did not give what this address asks for."
                };
                Self::NotBySignIn(HttpError::Forbidden {
                    code: "insufficient_user_authentication",
                    words,
                })
            }
            Self::Organization => Self::NotBySignIn(WRONG_ORGANIZATION),
            Self::Connection => Self::NotBySignIn(WRONG_CONNECTION),
            Self::Session | Self::Device | Self::Token(_) | Self::NotBySignIn(_) => self,
        }
    }
}

/// The session is of another organization.
pub(crate) const WRONG_ORGANIZATION: HttpError = HttpError::Forbidden {
    code: "wrong_organization",
    words: "This address is for members of another organization.",
};

/// The session was made at another provider.
pub(crate) const WRONG_CONNECTION: HttpError = HttpError::Forbidden {
    code: "wrong_connection",
    words: "This address is for people of another provider.",
};
