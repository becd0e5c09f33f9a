//! The unmet requirements of a guard, and the answer if a sign-in did not meet them.

use session_proto::v1::ErrorReason;

use super::requirements::Requirements;
use crate::http::errors::HttpError;
use crate::sessions::CachedSession;
use crate::values::refusal::PROVIDER_TELLS_NO_TIME;

/// An unmet requirement.
pub(crate) enum UnmetRequirement {
    /// A session, or one whose state still allows the request.
    Session,
    /// A recent enough sign-in, or one of a required class.
    StepUp,
    /// A sign-in as a member of the organization.
    Organization,
    /// A sign-in at the provider of the route.
    Connection,
    /// Proof that the request comes from the session's device.
    Device,
    /// A usable access token, for this reason.
    Token(ErrorReason),
    /// A requirement that no sign-in meets: a permission, or a service that is down.
    NotBySignIn(HttpError),
}

impl UnmetRequirement {
    /// Whether the properties of a sign-in meet it.
    pub(crate) fn is_of_sign_in(&self) -> bool {
        matches!(self, Self::StepUp | Self::Organization | Self::Connection)
    }

    /// The answer after a sign-in did not meet the requirement. Another sign-in would not meet it either, and
    /// would cause a redirect loop.
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
                    "You signed in, but not in the way this address requires."
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

/// The session belongs to another organization.
pub(crate) const WRONG_ORGANIZATION: HttpError = HttpError::Forbidden {
    code: "wrong_organization",
    words: "This address is for members of another organization.",
};

/// The session comes from another provider.
pub(crate) const WRONG_CONNECTION: HttpError = HttpError::Forbidden {
    code: "wrong_connection",
    words: "This address is for users of another provider.",
};
