//! Errors of requests to a provider, one enum for each operation.
//!
//! No variant holds a token, code or secret. From the provider's text only OAuth error codes are kept, cut to
//! their legal characters and length.

pub(crate) mod oauth_error;

use std::sync::Arc;

use crate::{ClientProofError, OAuthError, SigningFailed};

/// These settings cannot make a relying party.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The issuer is not an absolute http or https URL without query and fragment.
    #[error("the issuer is not an absolute http or https URL without query and fragment")]
    Issuer,
    /// The issuer is neither https nor on loopback.
    #[error("the issuer must use https outside loopback")]
    InsecureIssuer,
    /// The file of certification authorities can not be read or holds no usable certificate.
    #[error("is no readable file of PEM certificates")]
    CaFile(#[source] Option<std::io::Error>),
    /// The file of the client certificate or its key can not be read.
    #[error("the client certificate or its key can not be read")]
    ClientFile(#[source] std::io::Error),
    /// The client certificate and key can not be used.
    #[error("the client certificate and key are not a usable PEM pair")]
    ClientCertificate,
    /// A configured HMAC algorithm needs a longer secret. The field is the minimum length in bytes.
    #[error(
        "HS256, HS384 and HS512 need client authentication by a secret of at least 32, 48 and 64 bytes: here {0}"
    )]
    SymmetricSecret(usize),
    /// The HTTP client could not be made.
    #[error("the HTTP client can not be built")]
    HttpClient(#[source] reqwest::Error),
}

/// The kind of outage, which decides the 5xx status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// No connection (503).
    Unreachable,
    /// No answer in time (504).
    Timeout,
    /// An unusable answer (502).
    BadAnswer,
}

/// The provider did not give a usable answer. Most variants begin with the endpoint that was asked.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// No connection, or it broke.
    #[error("the provider's {0} can not be reached")]
    Unreachable(&'static str, #[source] reqwest::Error),
    /// No complete answer within the HTTP timeout.
    #[error("the provider's {0} did not answer in time")]
    Timeout(&'static str),
    /// An unexpected HTTP status.
    #[error("the provider's {0} answered with status {1}")]
    Status(&'static str, u16),
    /// The answer exceeds this limit in bytes.
    #[error("the provider's {0} answered with more than {1} bytes")]
    TooLarge(&'static str, usize),
    /// The answer is not the JSON that the specification requires.
    #[error("the provider's {0} answered with malformed JSON")]
    Malformed(&'static str),
    /// The signed answer is rejected: the signing key is not published yet, or the answer is for another client.
    #[error("the answer of the provider's {0} does not verify")]
    Unverified(&'static str, #[source] Box<IdTokenError>),
    /// The metadata is for another issuer (OpenID Connect Discovery 4.3).
    #[error("the provider's metadata names another issuer than the configured one")]
    IssuerMismatch,
    /// The metadata lacks an endpoint this operation needs.
    #[error("the provider's metadata has no {0} that can be used")]
    MissingEndpoint(&'static str),
    /// An endpoint is not https although the provider is not on loopback.
    #[error("the provider's {0} does not use https")]
    InsecureEndpoint(&'static str),
    /// The provider does not support PKCE with S256 (RFC 7636).
    #[error("the provider does not support PKCE with S256")]
    NoS256,
    /// Provider or settings require pushed authorization requests, but the other side does not offer them.
    #[error("the provider and the configuration disagree about pushed authorization requests")]
    PushedRequests,
    /// The provider refused the request with an OAuth error.
    #[error("the provider's {0} refused the request: {1}")]
    Refused(&'static str, OAuthError),
    /// The provider rejected the client by the status 401 or 403 alone, without `invalid_client` (RFC 6749
    /// section 5.2). The last field is advice for an operator.
    #[error("the provider's {0} answered with status {1}: it rejects this client ({2})")]
    ClientRefused(&'static str, u16, &'static str),
    /// A client assertion, a request object or a proof could not be signed.
    #[error("the client's assertion, request or proof cannot be signed")]
    ClientAssertion(#[from] SigningFailed),
    /// This client cannot authenticate.
    #[error(transparent)]
    ClientProof(#[from] ClientProofError),
    /// The same fetch failed a moment ago. It is not retried yet.
    #[error(transparent)]
    Recent(Arc<ProviderError>),
}

impl ProviderError {
    /// Whether the status is a refusal that RFC 6749 does not define, such as 404. The cause is unknown, for
    /// example a dead grant, a wrong address or a proxy. So the caller keeps the grant and retries later.
    pub fn is_unknown_refusal(&self) -> bool {
        // RFC 6749 defines 400 and 401. 408, 425 and 429 ask for a retry.
        matches!(
            self,
            Self::Status(_, 402..=407 | 409..=424 | 426..=428 | 430..=499)
        )
    }

    /// The kind of this outage.
    pub fn outage(&self) -> Outage {
        match self {
            Self::Unreachable(..) => Outage::Unreachable,
            Self::Timeout(_) => Outage::Timeout,
            Self::Recent(earlier) => earlier.outage(),
            _ => Outage::BadAnswer,
        }
    }
}

/// A grant of a code (OpenID Connect Core 3.1.3), refresh token (RFC 6749 section 6) or exchange failed.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The provider refused. [`OAuthError::is_final`] says whether the grant is dead (`invalid_grant`);
    /// otherwise the client's registration is at fault, and the session must survive.
    #[error("the provider refused the grant: {0}")]
    Refused(OAuthError),
    /// The provider answered with success but without a usable token, or with another token type.
    #[error("the token response cannot be used: {0}")]
    Unusable(&'static str),
    /// No usable answer this time; the refresh token stays valid.
    #[error("the provider gave no usable answer to the grant")]
    Transient(#[from] ProviderError),
}

/// An API's own authorization server gave no token for a user of the provider.
#[derive(Debug, thiserror::Error)]
pub enum CrossAppError {
    /// The provider gave no usable assertion.
    #[error("the provider gave no assertion for the API's authorization server")]
    Provider(#[source] GrantError),
    /// The API's authorization server gave no usable token for the assertion.
    #[error("the API's authorization server gave no token for the assertion")]
    Server(#[source] GrantError),
}

/// An ID token (OpenID Connect Core 3.1.3.7) or a logout token (Back-Channel Logout 2.6) was refused.
#[derive(Debug, thiserror::Error)]
pub enum IdTokenError {
    /// The keys cannot be read.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// Not a compact JWS, or not strict JSON inside.
    #[error("the token is malformed")]
    Malformed,
    /// It is longer than 64 KiB.
    #[error("the token is longer than 64 KiB")]
    TooLong,
    /// The header has an algorithm that is not accepted.
    #[error("the token is signed with another algorithm than the configured one")]
    Algorithm,
    /// The header has `crit`.
    #[error("the token's header requires something that is not supported")]
    Header,
    /// `typ` is that of another kind of token. It is cut to the legal characters of a media type.
    #[error("typ is {0}, another kind of token than the one expected")]
    Type(String),
    /// No published key fits, or the metadata lack the algorithm. The provider may publish either later.
    #[error("no key of the provider fits the token")]
    UnknownKey,
    /// The signature does not verify with the key that the token names.
    #[error("the token's signature does not verify")]
    Signature,
    /// `iss` is missing or different.
    #[error("iss is not the provider")]
    Issuer,
    /// `aud` is absent, lacks this client, or has an audience that neither `azp` nor the operator allows.
    #[error("aud is not this client alone; OIDC_TRUSTED_AUDIENCES can allow further audiences")]
    Audience,
    /// `azp` is another client.
    #[error("azp is not this client")]
    AuthorizedParty,
    /// `exp` is missing or in the past.
    #[error("exp is absent or has passed")]
    Expired,
    /// `nbf` is malformed or in the future.
    #[error("nbf has not been reached")]
    NotYetValid,
    /// `iat` is absent, in the future or a day old.
    #[error("iat is absent, in the future or too old")]
    IssuedAt,
    /// `nonce` is missing or different.
    #[error("nonce is not the one that was sent, or is in a logout token")]
    Nonce,
    /// `at_hash` does not match the access token.
    #[error("at_hash does not fit the access token")]
    AccessTokenHash,
    /// `auth_time` is in the future, or older than the `max_age` requested.
    #[error("auth_time is in the future or older than max_age allows")]
    AuthTime,
    /// `auth_time` is missing, although `max_age` was requested.
    #[error("auth_time is absent, though max_age was asked for")]
    NoAuthTime,
    /// `acr` is not one of the requested values, listed here with spaces.
    #[error("acr is not one of the requested values: {0}")]
    Acr(String),
    /// `sub` is missing, empty, too long or different from before.
    #[error("sub is absent or not the expected one")]
    Subject,
    /// The organization is not the requested one.
    #[error("the organization is not the one asked for")]
    Organization,
    /// `typ` of a logout token is neither absent nor `logout+jwt`.
    #[error("typ is not logout+jwt")]
    LogoutType,
    /// `jti` of a logout token is absent, empty or too long.
    #[error("jti is absent")]
    TokenId,
    /// `events` of a logout token lacks the back-channel logout event.
    #[error("events does not hold the logout event")]
    Events,
    /// A logout token has neither `sub` nor `sid`, so it names no user.
    #[error("neither sub nor sid is present")]
    Nobody,
}

impl IdTokenError {
    /// The error for a token whose header has this `typ`.
    pub(crate) fn of_type(typ: &str) -> Self {
        const LONGEST: usize = 64; // the names of registered types are shorter
        let legal = |c: &char| c.is_ascii_alphanumeric() || "!#$&-^_.+/".contains(*c);
        Self::Type(typ.chars().filter(legal).take(LONGEST).collect())
    }

    /// Whether there is no verdict: the keys are unavailable, or lack the token's key. A retry may succeed.
    pub fn is_undecided(&self) -> bool {
        matches!(self, Self::Provider(_) | Self::UnknownKey)
    }
}

/// Why a user's groups could not be read.
#[derive(Debug, thiserror::Error)]
pub enum GroupsError {
    /// No usable answer.
    #[error("the groups of the person could not be read")]
    Provider(#[from] ProviderError),
    /// The access token lacks the permission. The field is the status of the answer.
    #[error(
        "the claim groups is missing because the person has too many, and the person's access token may not read them (status {0}): \
         grant the application the delegated permission GroupMember.Read.All or User.Read, and ask for a token for Microsoft Graph; or have the provider send only \
         groups that are assigned to the application; or set OIDC_ENDPOINTS=groups=off, and people sign in without groups"
    )]
    NotAllowed(u16),
    /// The list has more pages than the limit.
    #[error(
        "the claim groups is missing because the person has too many, and there are more than a session can hold: have the provider send only groups that are assigned to the application"
    )]
    TooMany,
}

/// Userinfo was refused (OpenID Connect Core 5.3).
#[derive(Debug, thiserror::Error)]
pub enum UserinfoError {
    /// The provider gave no usable answer.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The provider rejected the access token.
    #[error("the provider does not accept the access token for userinfo")]
    Unauthorized,
    /// `sub` is missing or different.
    #[error("userinfo is about another subject")]
    Subject,
    /// The answer is not a JSON object.
    #[error("userinfo is malformed")]
    Malformed,
    /// The signature of the answer did not verify.
    #[error("signed userinfo was refused")]
    Token(#[source] IdTokenError),
}

/// A resource rejected an access token (RFC 9068 section 4, RFC 7662 section 2.2).
#[derive(Debug, thiserror::Error)]
pub enum AccessTokenError {
    /// The keys or the introspection endpoint are unavailable: no verdict.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// A check that access tokens and ID tokens share failed.
    #[error(transparent)]
    Token(IdTokenError),
    /// `typ` differs from that of the provider's access tokens: it is another kind of token, or not RFC 9068.
    #[error("typ is not the one that OIDC_ACCESS_TOKENS sets for access tokens")]
    Type,
    /// The token lacks required claims of the provider's access tokens, or has claims of ID tokens.
    #[error("the token does not have the shape of OIDC_ACCESS_TOKENS, or may be an ID token")]
    Shape,
    /// `aud` does not name the resource.
    #[error("aud does not name the resource")]
    Audience,
    /// `aud` is missing, and the resource requires it.
    #[error("the token has no aud, and the route names no clients")]
    NoAudience,
    /// `iat` is malformed, missing although required, or in the future.
    #[error("iat is absent or in the future")]
    IssuedAt,
    /// `client_id` is missing or not a string.
    #[error("client_id is absent")]
    Client,
    /// `scope` is not a string.
    #[error("scope is not a string")]
    Scope,
    /// `cnf` has a binding that cannot be checked here, such as a client certificate (RFC 8705).
    #[error("the token is bound to something that can not be checked here")]
    Binding,
    /// `token_type` of an introspected token names another kind, such as `refresh_token`.
    #[error("token_type of the introspection response is not that of an access token")]
    TokenType,
    /// The provider says that the token is not active.
    #[error("the provider says that the token is not active")]
    Inactive,
}

impl AccessTokenError {
    /// A short, stable name for logs and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Provider(_) => "provider_unavailable",
            Self::Type => "typ",
            Self::Shape => "shape",
            Self::Audience | Self::NoAudience => "aud",
            Self::IssuedAt => "iat",
            Self::Client => "client_id",
            Self::Scope => "scope_malformed",
            Self::Binding => "cnf",
            Self::TokenType => "token_type",
            Self::Inactive => "inactive",
            Self::Token(error) => match error {
                IdTokenError::Provider(_) => "provider_unavailable",
                IdTokenError::Algorithm => "alg",
                IdTokenError::Header | IdTokenError::Type(_) => "header",
                IdTokenError::UnknownKey => "unknown_key",
                IdTokenError::Signature => "signature",
                IdTokenError::Issuer => "iss",
                IdTokenError::Audience | IdTokenError::AuthorizedParty => "aud",
                IdTokenError::Expired => "expired",
                IdTokenError::NotYetValid => "nbf",
                IdTokenError::IssuedAt => "iat",
                IdTokenError::Subject => "sub",
                _ => "malformed",
            },
        }
    }
}

impl From<IdTokenError> for AccessTokenError {
    fn from(error: IdTokenError) -> Self {
        match error {
            IdTokenError::Provider(provider) => Self::Provider(provider),
            other => Self::Token(other),
        }
    }
}

/// The `iss` parameter of an authorization response was rejected (RFC 9207 section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerParameterError {
    /// The provider announces the parameter, but it is missing.
    #[error("iss is absent although the provider promises it")]
    Missing,
    /// The parameter names another issuer.
    #[error("iss is another issuer")]
    Mismatch,
}
