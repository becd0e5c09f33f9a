//! A refused callback: why, words for the visitor, and the answer.

use axum::http::{HeaderMap, header};
use axum::response::Response;
use oidc::{GroupsError, IdTokenError, TokenError, UserinfoError};
use session_proto::client::SessionError;
use session_proto::v1::ErrorReason;

use crate::http::errors::{HttpError, PROVIDER_TELLS_NO_TIME};
use crate::providers::IdentityProvider;
use crate::sign_in::SignIn;
use crate::sign_in::refusal::{self, SignInRefusal};
use crate::values::refusal::{RefusalReason, SignInStep};
use crate::values::return_to::ReturnTo;

/// Why a callback was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    /// There is no usable `state`, or it is repeated.
    #[error("state is missing or repeated")]
    State,
    /// No transaction of this browser belongs to the state.
    #[error("no pending sign-in of this browser belongs to the state")]
    UnknownTransaction,
    /// The transaction's time is over.
    #[error("the pending sign-in has expired")]
    ExpiredTransaction,
    /// The transaction has been taken to the provider before.
    #[error("the pending sign-in has been used already")]
    AlreadyUsed,
    /// The answer came to the callback of another provider than the sign-in was begun at (RFC 9700, section 4.4).
    #[error("the answer is not of the provider the sign-in was begun at")]
    OtherProvider,
    /// The `iss` parameter is missing, repeated or names another issuer (RFC 9207).
    #[error("the iss parameter is missing or wrong")]
    Issuer,
    /// The provider's metadata could not be had.
    #[error("the provider's metadata could not be had")]
    Metadata(#[source] oidc::ProviderError),
    /// The person said no at the provider.
    #[error("the provider answered access_denied")]
    Denied,
    /// A silent sign-in needs the person after all.
    #[error("the provider needs the person to take part")]
    InteractionNeeded,
    /// The provider answered with another error.
    #[error("the provider answered with an error")]
    ProviderError,
    /// There is not exactly one `code`, or it is nothing a provider issues.
    #[error("code is missing, repeated, too long or of another shape")]
    Code,
    /// The code could not be redeemed.
    #[error("the code could not be redeemed")]
    Exchange(#[source] TokenError),
    /// The ID token was refused.
    #[error("the ID token was refused")]
    IdToken(#[source] IdTokenError),
    /// Userinfo could not be had or was refused.
    #[error("userinfo was refused")]
    Userinfo(#[source] UserinfoError),
    /// The groups of the person could not be had.
    #[error("the groups of the person could not be had")]
    Groups(#[source] GroupsError),
    /// The session service refused what the provider said, for its size or form.
    #[error("the session service refused the session")]
    Session(#[source] session_proto::client::SessionError),
    /// The body of a posted answer could not be read.
    #[error("the posted answer could not be read")]
    Body,
}

/// A refused callback.
#[derive(Debug)]
pub(crate) struct Rejected {
    /// Why.
    pub(crate) reason: Reason,
    /// Where the visitor wanted to go, for trying again.
    pub(crate) return_to: Option<ReturnTo>,
    /// Whether the transaction is used up.
    pub(crate) consumed: bool,
    /// The key of the requirements that the session which stays does not meet, and this sign-in was requested for in vain.
    pub(crate) unmet_key: Option<String>,
    /// The error code of the provider's answer, where it had one.
    pub(crate) provider_error: Option<&'static str>,
}

impl From<Reason> for Rejected {
    /// A refusal before any transaction was found.
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            return_to: None,
            consumed: false,
            unmet_key: None,
            provider_error: None,
        }
    }
}

impl Reason {
    /// Whether the transaction is used up by it. What does not come from the provider, or may not, uses up nothing: the
    /// provider's own answer is still to come.
    #[must_use]
    pub(crate) fn consumes(&self) -> bool {
        !matches!(self, Self::OtherProvider | Self::Issuer | Self::Metadata(_))
    }

    /// Whether trying again brings the same.
    fn is_for_good(&self) -> bool {
        match self {
            Self::Groups(GroupsError::NotAllowed { .. } | GroupsError::TooMany) => true,
            Self::IdToken(IdTokenError::TooLong) => true,
            Self::Session(error) => is_too_large(error),
            _ => false,
        }
    }

    /// Its name among the reasons there are.
    #[must_use]
    pub(crate) fn stable(&self) -> RefusalReason {
        match self {
            Self::State => RefusalReason::State,
            Self::UnknownTransaction => RefusalReason::UnknownTransaction,
            Self::ExpiredTransaction => RefusalReason::ExpiredTransaction,
            Self::AlreadyUsed => RefusalReason::AlreadyUsed,
            Self::OtherProvider => RefusalReason::OtherProvider,
            Self::Issuer => RefusalReason::Issuer,
            Self::Metadata(error) => refusal::of_provider(error),
            Self::Denied => RefusalReason::Denied,
            Self::InteractionNeeded => RefusalReason::InteractionNeeded,
            Self::ProviderError => RefusalReason::ProviderError,
            Self::Code => RefusalReason::Code,
            Self::Exchange(error) => refusal::of_token(error),
            Self::IdToken(error) => refusal::of_id_token(error),
            Self::Userinfo(error) => refusal::of_userinfo(error),
            Self::Groups(GroupsError::Provider(error)) => refusal::of_provider(error),
            Self::Groups(GroupsError::NotAllowed { .. } | GroupsError::TooMany) => RefusalReason::Groups,
            Self::Session(error) if is_too_large(error) => RefusalReason::SessionTooLarge,
            Self::Session(_) => RefusalReason::Session,
            Self::Body => RefusalReason::Body,
        }
    }

    /// Whether no pending sign-in of this browser belongs to the callback: anybody on the network can send it.
    #[must_use]
    pub(crate) fn is_without_transaction(&self) -> bool {
        matches!(
            self,
            Self::State | Self::UnknownTransaction | Self::ExpiredTransaction | Self::Body
        )
    }

    /// The words for the visitor: never the provider's own.
    #[must_use]
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::State | Self::UnknownTransaction | Self::Body => {
                "This sign-in was not started in this browser, or it was finished already. Start again."
            }
            Self::ExpiredTransaction => "This sign-in took too long and has expired. Start again.",
            Self::AlreadyUsed => "This sign-in was used already. Start again if you are not signed in.",
            Self::Denied => "The sign-in was cancelled, or access was denied.",
            Self::InteractionNeeded => "Signing in without asking you was not possible. Start again.",
            Self::IdToken(IdTokenError::Organization) => {
                "You signed in with an account that does not belong to the expected organization."
            }
            Self::IdToken(IdTokenError::NoAuthTime) => PROVIDER_TELLS_NO_TIME,
            Self::Session(error) if is_too_large(error) => TOO_MUCH_TO_KEEP,
            Self::IdToken(IdTokenError::TooLong) => TOO_MUCH_FOR_A_TOKEN,
            Self::Groups(GroupsError::NotAllowed { .. } | GroupsError::TooMany) => GROUPS_UNKNOWN,
            Self::OtherProvider | Self::Issuer => {
                "An answer came that is not from the service you are signing in at. It was ignored, and your sign-in there goes on: finish it, or start again."
            }
            Self::Metadata(_)
            | Self::Exchange(TokenError::Provider(_))
            | Self::Groups(GroupsError::Provider(_))
            | Self::Userinfo(
                UserinfoError::Provider(_)
                | UserinfoError::Token(IdTokenError::Provider(_) | IdTokenError::UnknownKey),
            )
            | Self::IdToken(IdTokenError::Provider(_) | IdTokenError::UnknownKey) => {
                "The service that signs you in could not be reached or answered with a fault. Try again."
            }
            Self::ProviderError
            | Self::Code
            | Self::Exchange(_)
            | Self::IdToken(_)
            | Self::Userinfo(_)
            | Self::Session(_) => "The answer of the service that signs you in was not accepted. Try again.",
        }
    }
}

/// A person has more groups or other claims than a session may hold.
const TOO_MUCH_TO_KEEP: &str = "Your account has more groups, roles or other data than a sign-in here can hold (the size limit of a session). Signing in again will not help; tell whoever runs this site.";

/// A person has more groups or other claims than an ID token may hold.
const TOO_MUCH_FOR_A_TOKEN: &str = "Your account has more groups, roles or other data than an ID token may hold here (64 KiB). Signing in again will not help; tell whoever runs this site.";

/// The provider left out the person's groups, and they cannot be read elsewhere.
const GROUPS_UNKNOWN: &str = "You belong to more groups than the service that signs you in sends along (the claim groups), and this site may not read them there. Signing in again will not help; tell whoever runs this site.";

/// Whether the session is beyond a limit that trying again does not change.
fn is_too_large(error: &SessionError) -> bool {
    matches!(
        error.reason,
        ErrorReason::ErrSessionTooLarge | ErrorReason::ErrRequestTooLarge
    )
}

/// Where "try again" leads: a sign-in at the same provider, to the same address.
pub(super) fn try_again(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    headers: &HeaderMap,
    return_to: Option<&ReturnTo>,
) -> String {
    let connection = sign_in.providers.connection_of(provider.issuer());
    let site = sign_in.sites.of(headers);
    site.login_url(return_to.map(ReturnTo::as_str), connection)
}

/// The page that says so, and what the browser keeps and drops with it.
pub(super) fn refuse(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    headers: &HeaderMap,
    state: Option<&str>,
    rejected: Rejected,
) -> Response {
    let Rejected {
        reason,
        return_to,
        consumed,
        unmet_key,
        provider_error,
    } = rejected;
    sign_in.metrics.login("rejected", &provider.id);
    let try_again = try_again(sign_in, provider, headers, return_to.as_ref());
    let words = reason.words();
    let answer = match &reason {
        Reason::IdToken(IdTokenError::Acr(wanted)) => HttpError::MissingClass {
            acr: wanted.split(' ').map(str::to_owned).collect(),
            try_again: Some(try_again),
        },
        _ if reason.is_for_good() => HttpError::CallbackForGood { words },
        _ => HttpError::Callback {
            is_cancelled: matches!(reason, Reason::Denied),
            words,
            try_again,
        },
    };
    let refusal = SignInRefusal {
        provider_error,
        ..SignInRefusal::caused(SignInStep::Callback, reason.stable(), reason)
    };
    let mut response = refusal.answer(sign_in, Some(provider), answer);
    if let Some(cookie) = unmet_key.and_then(|key| sign_in.pending.remember_unmet(&key)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    if consumed
        && let Some(cookie) = state.and_then(|state| sign_in.pending.clear(state, provider.response_mode()))
    {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}
