//! The list of all reasons to reject a sign-in, or a logout message of the provider. The log, the metric and
//! `docs/sign-in-fails.md` use these names.
//!
//! Invariant: a name never gets another meaning, so that alerts stay valid.

/// The step that is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignInStep {
    /// The login route: the user has not been at the provider yet.
    Login,
    /// The callback: the user returns from the provider.
    Callback,
    /// Back-channel logout: a message of the provider itself.
    LogoutToken,
}

impl SignInStep {
    /// The name in logs and metrics.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Callback => "callback",
            Self::LogoutToken => "logout_token",
        }
    }
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $reason:ident = $name:literal,)+) => {
        /// Why a step is rejected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum RefusalReason {
            $($(#[doc = $doc])+ $reason,)+
        }

        impl RefusalReason {
            /// All reasons.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$reason),+];

            /// The name in logs, metrics and the manual.
            #[must_use]
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// The request is no page visit: a script, an image, a frame, a prefetch.
    NotANavigation = "not_a_visit",
    /// Too many requests from one address.
    RateLimited = "rate_limited",
    /// Our own session service, or its store, cannot be reached.
    SessionServiceUnavailable = "session_service_unavailable",
    /// An internal error of the edge.
    Fault = "fault",

    /// The login names an issuer that is not configured.
    UnknownIssuer = "unknown_issuer",
    /// The login names a connection that is not configured.
    UnknownConnection = "unknown_connection",
    /// The host belongs to another provider than the named connection.
    ConnectionElsewhere = "connection_elsewhere",

    /// No connection to the provider.
    ProviderUnreachable = "provider_unreachable",
    /// The provider did not answer in time.
    ProviderTimeout = "provider_timeout",
    /// The provider's answer has an unexpected status, type or text.
    ProviderAnswer = "provider_answer",
    /// The provider's metadata names another issuer than the configured one.
    ProviderIssuer = "provider_issuer",
    /// The provider's metadata lacks an endpoint, or has one without TLS.
    ProviderMetadata = "provider_metadata",
    /// The provider does not offer PKCE with S256.
    NoPkce = "no_pkce",
    /// The provider requires pushed authorization requests and they are off here, or the other way round.
    PushedRequests = "pushed_requests",
    /// The provider rejected the client's authentication.
    ClientRefused = "client_refused",
    /// The provider rejected a request of this client for another reason.
    RequestRefused = "request_refused",
    /// An assertion, a request object or a proof could not be signed.
    NotSigned = "not_signed",

    /// `state` is missing or repeated.
    State = "state",
    /// No pending sign-in of this browser belongs to `state`.
    UnknownTransaction = "unknown_transaction",
    /// The pending sign-in has expired.
    ExpiredTransaction = "expired_transaction",
    /// The pending sign-in has been used.
    AlreadyUsed = "already_used",
    /// The answer comes from another provider than the one of the sign-in.
    OtherProvider = "other_provider",
    /// The `iss` parameter is missing, repeated or wrong.
    Issuer = "issuer",
    /// The user denied the sign-in, or the provider denied the user.
    Denied = "denied",
    /// A silent sign-in needs the user.
    InteractionNeeded = "interaction_needed",
    /// The provider answered with another error.
    ProviderError = "provider_error",
    /// `code` is missing, repeated or malformed.
    Code = "code",
    /// The body could not be read.
    Body = "body",
    /// The provider rejected the code.
    CodeRefused = "code_refused",
    /// The token response lacks a token or has another type of token.
    TokenResponse = "token_response",

    /// The token is not a signed JWT, or its header requires an unsupported feature.
    TokenMalformed = "token_malformed",
    /// The token is longer than 64 KiB.
    TokenTooLong = "token_too_long",
    /// The token is signed with an algorithm that is not accepted.
    TokenAlgorithm = "token_algorithm",
    /// None of the provider's published keys fits the token.
    TokenUnknownKey = "token_unknown_key",
    /// The token's signature does not verify.
    TokenSignature = "token_signature",
    /// The token has another issuer.
    TokenIssuer = "token_issuer",
    /// The token is for another client.
    TokenAudience = "token_audience",
    /// The token has expired, or is not valid yet.
    TokenExpired = "token_expired",
    /// The token's `iat` is missing, in the future or too old.
    TokenIssuedAt = "token_issued_at",
    /// The token's `nonce` is not the one that was sent, or is present although none was sent.
    TokenNonce = "token_nonce",
    /// `at_hash` does not fit the access token.
    TokenAccessTokenHash = "token_access_token_hash",
    /// `auth_time` is older than requested, or in the future.
    TokenAuthTime = "token_auth_time",
    /// `auth_time` is missing, although requested.
    TokenNoAuthTime = "token_no_auth_time",
    /// `acr` is not one of the requested values.
    TokenAcr = "token_acr",
    /// `sub` is missing, or too long.
    TokenSubject = "token_subject",
    /// The user belongs to another organization.
    Organization = "organization",

    /// The provider does not accept the access token at userinfo.
    UserinfoRefused = "userinfo_refused",
    /// Userinfo describes another user.
    UserinfoSubject = "userinfo_subject",
    /// Userinfo is unreadable, or its signature does not meet the requirements.
    UserinfoAnswer = "userinfo_answer",
    /// The ID token omits the user's groups, and they cannot be read elsewhere.
    Groups = "groups",
    /// The session service rejected the session as invalid.
    Session = "session",
    /// The session would be larger than the session service allows.
    SessionTooLarge = "session_too_large",

    /// The `typ` of the logout token names another kind of token.
    TokenType = "token_type",
    /// The logout token has no usable `jti`.
    TokenId = "token_id",
    /// The logout token's `events` lacks the logout event.
    TokenEvents = "token_events",
    /// The logout token names neither a user nor a session.
    TokenWithoutSubject = "token_nobody",
    /// The logout token was used before.
    TokenReplayed = "token_replayed",
    /// The logout token's `sub` and `sid` do not belong together.
    TokenMismatch = "token_mismatch",
}

/// The page's text if a guard needs the time of the sign-in and the provider does not report it.
pub(crate) const PROVIDER_TELLS_NO_TIME: &str = "This address needs to know when you signed in, but your sign-in provider does not say so. Signing in again will not help. Tell the operator of this site.";

/// The page's text if the provider confirmed none of the requested authentication classes.
pub(crate) const OTHER_CLASS: &str =
    "Your sign-in provider did not confirm the kind of sign-in that this address requires.";

impl RefusalReason {
    /// The page's text for a rejected sign-in. Never quotes the provider.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::UnknownIssuer => "This sign-in was started for a provider that this site does not use.",
            Self::UnknownConnection => {
                "This connection does not exist. Name a configured connection, or none."
            }
            Self::ConnectionElsewhere => "Users of this connection sign in at another address.",
            Self::RequestRefused => {
                "The provider does not accept this sign-in request. Go back to the application and sign in from there."
            }
            Self::SessionServiceUnavailable => {
                "We cannot reach the session service right now, so you are not signed in yet. Try again in a moment."
            }
            Self::State | Self::UnknownTransaction | Self::Body => {
                "This sign-in did not start in this browser, or it is already complete. Start again."
            }
            Self::ExpiredTransaction => "This sign-in took too long and has expired. Start again.",
            Self::AlreadyUsed => "This sign-in is already complete. If you are not signed in, start again.",
            Self::Denied => "You cancelled the sign-in, or your provider denied access.",
            Self::InteractionNeeded => "We could not sign you in without asking you. Start again.",
            Self::Organization => {
                "You signed in with an account that does not belong to the expected organization."
            }
            Self::TokenNoAuthTime => PROVIDER_TELLS_NO_TIME,
            Self::TokenAcr => OTHER_CLASS,
            Self::SessionTooLarge => {
                "Your account has more groups, roles or other data than a session here can hold. Signing in again will not help. Tell the operator of this site."
            }
            Self::TokenTooLong => {
                "Your account has more groups, roles or other data than an ID token may hold here (64 KiB). Signing in again will not help. Tell the operator of this site."
            }
            Self::Groups => {
                "You belong to more groups than your sign-in provider sends (the claim groups), and this site may not read them there. Signing in again will not help. Tell the operator of this site."
            }
            Self::OtherProvider | Self::Issuer => {
                "We received an answer that is not from your sign-in provider, and ignored it. Your sign-in is still open: finish it, or start again."
            }
            Self::ProviderUnreachable
            | Self::ProviderTimeout
            | Self::ProviderAnswer
            | Self::ProviderIssuer
            | Self::ProviderMetadata
            | Self::NotSigned
            | Self::TokenUnknownKey => {
                "We could not reach your sign-in provider, or it answered with an error. Try again."
            }
            _ => "We did not accept the answer from your sign-in provider. Try again.",
        }
    }

    /// The answer to the provider if its logout token is rejected.
    pub(crate) fn words_for_provider(self) -> &'static str {
        match self {
            Self::TokenReplayed => "The logout token was used before.",
            Self::TokenMismatch => "The logout token's sub and sid do not belong together.",
            _ => "The logout token was refused.",
        }
    }

    /// Whether a retry fails the same way.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Groups | Self::TokenTooLong | Self::SessionTooLarge)
    }

    /// Whether the pending sign-in can still finish: this answer did not use it up.
    pub(crate) fn keeps_pending(self) -> bool {
        matches!(
            self,
            Self::State
                | Self::UnknownTransaction
                | Self::Body
                | Self::OtherProvider
                | Self::Issuer
                | Self::SessionServiceUnavailable
        )
    }

    /// Whether any client on the network can cause it without limit. Then it gets no record of its own.
    #[must_use]
    pub(crate) fn is_noise(self) -> bool {
        matches!(self, Self::NotANavigation | Self::RateLimited)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_manual_explains_every_reason_and_no_other() {
        let manual = include_str!("../../../docs/sign-in-fails.md");
        let (of_the_edge, _) = manual.split_once("## A refresh that fails").unwrap();
        let rows = of_the_edge.lines().filter_map(|line| line.strip_prefix("| `"));
        let explained: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        let names: Vec<&str> = RefusalReason::ALL.iter().map(|reason| reason.name()).collect();
        let set = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(set(&explained), set(&names));
        assert_eq!(explained.len(), names.len(), "each once");
        assert_eq!(set(&names).len(), names.len(), "no name twice");
    }
}
