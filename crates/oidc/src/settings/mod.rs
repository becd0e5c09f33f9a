//! What has to be configured about a provider before the first request to it.
//!
//! Reading and judging the settings is the caller's part (crate `provider-settings`); this is only their shape.

pub(crate) mod accepted_algorithms;
pub(crate) mod access_token_shape;
pub(crate) mod endpoint;
pub(crate) mod observer;
pub(crate) mod proxy;
pub(crate) mod tenants;
pub(crate) mod token_target;

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::client::client_key::ClientKeys;
use crate::client::dpop::DpopKey;
use crate::{
    AcceptedAlgorithms, AccessTokenShape, ApiTokenGrant, ClientAuth, ForwardProxy, RequestObserver,
    TenantRule,
};

/// The lifetime assumed for an access token whose response names none, in seconds: RFC 6749, section 5.1, only recommends `expires_in`. Too
/// short costs a refresh, too long an upstream's 401; five minutes are what Keycloak's tokens live for by default.
pub const DEFAULT_TOKEN_LIFETIME_SECS: u64 = 300;

/// Everything configured about the provider and this client's registration with it.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// Issuer identifier, compared byte by byte with what the provider says.
    pub issuer: String,
    /// The tenants whose issuers count as this one; `None` where there is one issuer.
    pub tenants: Option<TenantRule>,
    /// Where a person's groups are listed, for ID tokens that leave them out because there are too many.
    pub groups_url: Option<Url>,
    /// Where the metadata are; `None` is below the issuer (Discovery 4.1).
    pub metadata_url: Option<Url>,
    /// Endpoints that take the place of those in the metadata, by the metadata's names. Each has passed the https rule.
    pub endpoints: Vec<(&'static str, Url)>,
    /// Whether the issuer only signs tokens: its metadata's issuer and key set count, and nothing else they say.
    pub only_signs: bool,
    /// What people call the provider; `None` where nobody said.
    pub name: Option<String>,
    /// Client identifier.
    pub client_id: String,
    /// Audiences that an ID token or logout token may name beside this client.
    pub trusted_audiences: Vec<String>,
    /// What proves who this client is, at the start.
    pub credentials: Credentials,
    /// Scope requested, space-separated; contains `openid`.
    pub scope: String,
    /// `audience` parameter of the authorization request.
    pub audience: Option<String>,
    /// Resources the access token is for (RFC 8707).
    pub resources: Vec<String>,
    /// How access tokens for single APIs are requested.
    pub api_token_grant: ApiTokenGrant,
    /// Organization every login must belong to: `org_…` is an id, anything else a name.
    pub organization: Option<String>,
    /// How the provider hands the answer back.
    pub response_mode: ResponseMode,
    /// The algorithms ID tokens, logout tokens and signed userinfo may have.
    pub signing_algs: AcceptedAlgorithms,
    /// How the provider makes its JWT access tokens.
    pub access_tokens: &'static AccessTokenShape,
    /// Further parameters of the authorization request.
    pub authorization_params: Vec<(String, String)>,
    /// Whether authorization requests are pushed (RFC 9126).
    pub par: Par,
    /// Bound on each HTTP exchange with the provider, body included.
    pub http_timeout: Duration,
    /// Bound on a refresh grant, a repetition with the server's nonce included, if it is more than `http_timeout`: an answer
    /// that comes after it was given up holds a rotated token nobody will have.
    pub refresh_timeout: Duration,
    /// Tolerance for clocks that differ, in seconds.
    pub clock_tolerance_secs: u64,
    /// PEM file of the certification authorities trusted for the provider instead of the public ones.
    pub ca_file: Option<PathBuf>,
    /// Whoever measures requests to the provider.
    pub observer: Option<RequestObserver>,
}

impl ProviderSettings {
    /// Settings with the documented defaults and a client that has no secret.
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            tenants: None,
            groups_url: None,
            metadata_url: None,
            endpoints: Vec::new(),
            only_signs: false,
            name: None,
            client_id: client_id.into(),
            trusted_audiences: Vec::new(),
            credentials: Credentials::default(),
            scope: "openid profile email".to_owned(),
            audience: None,
            resources: Vec::new(),
            api_token_grant: ApiTokenGrant::TokenExchange,
            organization: None,
            response_mode: ResponseMode::Query,
            signing_algs: AcceptedAlgorithms::Auto,
            access_tokens: AccessTokenShape::rfc9068(),
            authorization_params: Vec::new(),
            par: Par::Auto,
            http_timeout: Duration::from_millis(5_000),
            refresh_timeout: Duration::from_millis(20_000),
            clock_tolerance_secs: 60,
            ca_file: None,
            observer: None,
        }
    }

    /// Settings for an issuer that only signs tokens. This document names its keys. The endpoints that metadata have to name are
    /// never used.
    pub fn of_signer(issuer: impl Into<String>, document: Url) -> Self {
        let issuer = issuer.into();
        let unused = ["authorization_endpoint", "token_endpoint"];
        let own = Url::parse(&issuer).unwrap_or_else(|_| document.clone());
        Self {
            endpoints: unused.map(|name| (name, own.clone())).to_vec(),
            only_signs: true,
            metadata_url: Some(document),
            ..Self::new(issuer, String::new())
        }
    }

    /// Whether this is the provider's issuer, or that of one of its allowed tenants.
    #[must_use]
    pub fn is_issuer(&self, issuer: &str) -> bool {
        match &self.tenants {
            None => issuer == self.issuer,
            Some(tenants) => tenants.tenant(issuer).is_some(),
        }
    }

    /// The issuer that the provider's metadata have to name.
    #[must_use]
    pub fn issuer_of_metadata(&self) -> Cow<'_, str> {
        match &self.tenants {
            None => Cow::Borrowed(&self.issuer),
            Some(tenants) => Cow::Owned(tenants.pattern()),
        }
    }

    /// `max_age` in seconds when the configured authorization parameters ask for one.
    pub fn configured_max_age(&self) -> Option<u64> {
        self.configured("max_age").and_then(|value| value.parse().ok())
    }

    /// `acr_values` when the configured authorization parameters ask for them.
    pub(crate) fn configured_acr_values(&self) -> Option<&str> {
        self.configured("acr_values")
    }

    fn configured(&self, name: &str) -> Option<&str> {
        self.authorization_params
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What proves who this client is; replaced as a whole when files change.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// How this client proves who it is.
    pub auth: ClientAuth,
    /// Keys that sign authorization requests (RFC 9101); `None` leaves them unsigned.
    pub request_keys: Option<ClientKeys>,
    /// Key that tokens are bound to (RFC 9449); `None` means bearer tokens.
    pub dpop_key: Option<DpopKey>,
    /// The proxy calls to the provider go through, which may know this client by user and password.
    pub proxy: Option<ForwardProxy>,
}

/// How the provider returns the authorization response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMode {
    /// In the query of a redirect.
    Query,
    /// In the body of a form the browser posts.
    FormPost,
}

/// Whether authorization requests are pushed to the provider first (RFC 9126).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Par {
    /// When the provider offers it.
    Auto,
    /// Always; without an endpoint for it no login starts.
    Require,
    /// Never.
    Off,
}
