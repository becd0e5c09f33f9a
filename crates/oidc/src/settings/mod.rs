//! The settings of a provider that are needed before the first request to it.
//!
//! The crate `provider-settings` reads and checks the settings. This module only defines their types.

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

/// The assumed lifetime of an access token without `expires_in`, in seconds: RFC 6749, section 5.1, only
/// recommends it. Too short costs a refresh, too long an upstream's 401. Keycloak's default is 300.
pub const DEFAULT_TOKEN_LIFETIME_SECS: u64 = 300;

/// The settings of the provider and of this client's registration.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// Issuer identifier, compared byte by byte.
    pub issuer: String,
    /// The tenants whose issuers count as this one; `None` for a single issuer.
    pub tenants: Option<TenantRule>,
    /// The URL that lists a user's groups, for ID tokens that omit them because there are too many.
    pub groups_url: Option<Url>,
    /// The URL of the metadata; `None` means below the issuer (Discovery 4.1).
    pub metadata_url: Option<Url>,
    /// Endpoints that replace those of the metadata, by metadata name. All obey the https rule.
    pub endpoints: Vec<(&'static str, Url)>,
    /// What this product uses the issuer for.
    pub issuer_use: IssuerUse,
    /// The provider's display name, if set.
    pub name: Option<String>,
    /// Client identifier.
    pub client_id: String,
    /// Audiences that an ID token or logout token may have in addition to this client.
    pub trusted_audiences: Vec<String>,
    /// The initial client credentials.
    pub credentials: Credentials,
    /// Scope requested, space-separated; contains `openid`.
    pub scope: String,
    /// `audience` parameter of the authorization request.
    pub audience: Option<String>,
    /// Resources the access token is for (RFC 8707).
    pub resources: Vec<String>,
    /// How access tokens for single APIs are requested.
    pub api_token_grant: ApiTokenGrant,
    /// The organization required for every login: `org_…` is an id, all others are names.
    pub organization: Option<String>,
    /// How the provider returns the answer.
    pub response_mode: ResponseMode,
    /// The accepted algorithms of ID tokens, logout tokens and signed userinfo.
    pub signing_algs: AcceptedAlgorithms,
    /// The shape of the provider's JWT access tokens.
    pub access_tokens: &'static AccessTokenShape,
    /// Further parameters of the authorization request.
    pub authorization_params: Vec<(String, String)>,
    /// Whether authorization requests are pushed (RFC 9126).
    pub par: Par,
    /// Bound on each HTTP exchange with the provider, body included.
    pub http_timeout: Duration,
    /// Bound on a refresh grant with its nonce retry, if above `http_timeout`. It is long, because an answer
    /// after the timeout is lost, and with it the rotated refresh token.
    pub refresh_timeout: Duration,
    /// Tolerance for clocks that differ, in seconds.
    pub clock_tolerance_secs: u64,
    /// PEM file of the certification authorities trusted for the provider instead of the public ones.
    pub ca_file: Option<PathBuf>,
    /// Receives the metrics of requests to the provider.
    pub observer: Option<RequestObserver>,
}

impl ProviderSettings {
    /// Settings with the documented defaults, for a client without a secret.
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            tenants: None,
            groups_url: None,
            metadata_url: None,
            endpoints: Vec::new(),
            issuer_use: IssuerUse::SignIn,
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

    /// Settings for an issuer that only signs tokens. `document` is the URL of its metadata, of which only issuer
    /// and key set count.
    pub fn of_signer(issuer: impl Into<String>, document: Url) -> Self {
        let issuer = issuer.into();
        let unused = ["authorization_endpoint", "token_endpoint"];
        let own = Url::parse(&issuer).unwrap_or_else(|_| document.clone());
        Self {
            endpoints: unused.map(|name| (name, own.clone())).to_vec(),
            issuer_use: IssuerUse::Signatures,
            metadata_url: Some(document),
            ..Self::new(issuer, String::new())
        }
    }

    /// Settings for the authorization server of an API, which signs no user in. Without `token_endpoint` its metadata
    /// name the endpoints (RFC 8414).
    pub fn of_api_server(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        token_endpoint: Option<Url>,
    ) -> Self {
        let mut settings = Self::new(issuer, client_id);
        settings.issuer_use = IssuerUse::ApiTokens;
        if let Ok(own) = Url::parse(&settings.issuer) {
            // Such a server may lack both.
            let unused = ["authorization_endpoint", "jwks_uri"];
            settings.endpoints = unused.map(|name| (name, own.clone())).to_vec();
        }
        let endpoints = &mut settings.endpoints;
        endpoints.extend(token_endpoint.map(|url| ("token_endpoint", url)));
        settings
    }

    /// Whether this is the provider's issuer, or an allowed tenant's.
    #[must_use]
    pub fn is_issuer(&self, issuer: &str) -> bool {
        match &self.tenants {
            None => issuer == self.issuer,
            Some(tenants) => tenants.tenant(issuer).is_some(),
        }
    }

    /// The issuer that the provider's metadata must have.
    #[must_use]
    pub fn issuer_of_metadata(&self) -> Cow<'_, str> {
        match &self.tenants {
            None => Cow::Borrowed(&self.issuer),
            Some(tenants) => Cow::Owned(tenants.pattern()),
        }
    }

    /// The configured `max_age` in seconds, if any.
    pub fn configured_max_age(&self) -> Option<u64> {
        self.configured("max_age").and_then(|value| value.parse().ok())
    }

    /// The configured `acr_values`, if any.
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

/// The client credentials; replaced as a whole when files change.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// The authentication method.
    pub auth: ClientAuth,
    /// Keys that sign authorization requests (RFC 9101); `None` means unsigned.
    pub request_keys: Option<ClientKeys>,
    /// The key to bind tokens to (RFC 9449); `None` means bearer tokens.
    pub dpop_key: Option<DpopKey>,
    /// The proxy for calls to the provider. It may authenticate this client by user and password.
    pub proxy: Option<ForwardProxy>,
}

/// The use of an issuer, which decides the metadata that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerUse {
    /// It signs users in.
    SignIn,
    /// It only signs tokens: only issuer and key set of its metadata count.
    Signatures,
    /// It is the authorization server of an API, and only issues tokens for assertions of a provider.
    ApiTokens,
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
    /// If the provider supports it.
    Auto,
    /// Always; without such an endpoint no login starts.
    Require,
    /// Never.
    Off,
}
