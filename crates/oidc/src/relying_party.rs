//! The relying party: one provider, one client registration.

mod api_tokens;
mod cross_app;
mod groups;
mod probing;
mod resource;
mod signed;

use std::sync::{Arc, Once};

use arc_swap::ArcSwap;
use openidconnect::core::CoreClient;
use openidconnect::{ClientId, IssuerUrl, JsonWebKeySet};
use serde_json::{Map, Value};
use url::Url;

use self::signed::TokenUse;
use crate::client::request_object;
use crate::grants::access::{Access, TOKEN_ENDPOINT};
use crate::grants::authorization;
use crate::grants::grant;
use crate::json::strict_claims;
use crate::logout::end_session;
use crate::provider::http_client::ProviderResponse;
use crate::provider::issuer_settings::check_issuer;
use crate::provider::key_refetch::TokenOrigin;
use crate::provider::provider_cache::{Documents, ProviderCache};
use crate::settings::endpoint::endpoint_is_secure;
use crate::tokens::claims::ClaimChecks;
use crate::tokens::jws::UnverifiedToken;
use crate::tokens::userinfo;
use crate::{
    ApiTokenGrant, AuthorizationRequest, BuildError, ClientAuth, Credentials, EndSessionRequest,
    ExpectedIdToken, GrantError, IdToken, IdTokenError, LogoutTemplate, LogoutToken, Metadata, Par,
    ProviderError, ProviderSettings, RefreshedTokens, RevocationResult, TokenHint, TokenSet, UserinfoError,
};

/// The allowed `typ` of ID tokens, which other kinds of tokens do not have.
const ID_TOKEN_TYPES: [&str; 2] = ["application/jwt", "application/id_token+jwt"];
/// The allowed `typ` of signed userinfo.
const USERINFO_TYPES: [&str; 2] = ["application/jwt", "application/userinfo+jwt"];

/// Acts as one client of one provider. Clones are cheap and share caches.
#[derive(Clone)]
pub struct RelyingParty {
    settings: Arc<ProviderSettings>,
    /// Has only the client's identity; endpoints and keys are set for each request.
    client: Arc<CoreClient>,
    access: Arc<ArcSwap<Access>>,
    cache: Arc<ProviderCache>,
    /// Logs the warning once, not for each sign-in.
    push_warning: Arc<Once>,
}

impl RelyingParty {
    /// Creates it without network access; discovery happens on first use.
    pub fn new(settings: ProviderSettings) -> Result<Self, BuildError> {
        let issuer = IssuerUrl::new(settings.issuer.clone()).map_err(|_| BuildError::Issuer)?;
        check_issuer(issuer.url())?;
        if settings
            .metadata_url
            .as_ref()
            .is_some_and(|url| !endpoint_is_secure(url))
        {
            return Err(BuildError::InsecureIssuer);
        }
        let client_id = ClientId::new(settings.client_id.clone());
        let settings = Arc::new(settings);
        let access = Access::new(&settings, settings.credentials.clone())?;
        Ok(Self {
            settings,
            client: Arc::new(CoreClient::new(client_id, issuer, JsonWebKeySet::default())),
            access: Arc::new(ArcSwap::from_pointee(access)),
            cache: Arc::default(),
            push_warning: Arc::new(Once::new()),
        })
    }

    /// The settings of this relying party.
    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    /// The client credentials in use.
    pub fn credentials(&self) -> Credentials {
        self.access.load().credentials.clone()
    }

    /// Replaces the client credentials and re-reads certificate files; running requests continue.
    pub fn reload(&self, credentials: Credentials) -> Result<(), BuildError> {
        self.access
            .store(Arc::new(Access::new(&self.settings, credentials)?));
        Ok(())
    }

    /// This client's public keys, to register with the provider; `None` if it signs nothing.
    pub fn client_jwks(&self) -> Option<Value> {
        let credentials = self.credentials();
        let keys = match credentials.auth {
            ClientAuth::PrivateKeyJwt(keys) => Some(keys),
            _ => credentials.request_keys,
        };
        keys.map(|keys| keys.public_jwks())
    }

    /// A proof of possession of a token's key, for one request to a resource (RFC 9449 section 7); `None` if
    /// tokens are not bound.
    pub fn dpop_proof(
        &self,
        method: &str,
        url: &Url,
        access_token: &str,
        now: u64,
    ) -> Result<Option<String>, ProviderError> {
        let access = self.access.load();
        access.dpop_proof(method, url, Some(access_token), now)
    }

    /// Stores a resource's nonce for the next proof (RFC 9449 section 9). Returns whether it is usable.
    pub fn learn_dpop_nonce(&self, url: &Url, nonce: &str) -> bool {
        self.access.load().nonces.learn(url, nonce)
    }

    /// The provider's metadata: cached while fresh, stale while the provider is down.
    pub async fn metadata(&self) -> Result<Arc<Metadata>, ProviderError> {
        let access = self.access.load_full();
        self.cache.metadata(Documents::First, &access.http).await
    }

    /// The metadata. If a required endpoint is missing, adds the members of the RFC 8414 document.
    async fn metadata_with(&self, has: impl Fn(&Metadata) -> bool) -> Result<Arc<Metadata>, ProviderError> {
        let metadata = self.metadata().await?;
        if has(&metadata) {
            return Ok(metadata);
        }
        let access = self.access.load_full();
        self.cache.metadata(Documents::Both, &access.http).await
    }

    /// The URL of the provider that starts a login.
    pub async fn authorization_url(&self, request: &AuthorizationRequest<'_>) -> Result<Url, ProviderError> {
        let metadata = self
            .metadata_with(|metadata| {
                metadata.pushed_authorization_request_endpoint.is_some() || !self.requires_push(metadata)
            })
            .await?;
        if !metadata.supports_s256 {
            return Err(ProviderError::NoS256);
        }
        let access = self.access.load_full();
        let dpop_key = access.credentials.dpop_key.as_ref();
        let endpoint = &metadata.authorization_endpoint;
        let client = CoreClient::clone(&self.client);
        let whole = authorization::address(
            client,
            endpoint,
            &self.settings,
            request,
            metadata.asking_prompt(),
            dpop_key,
        );
        let offered = metadata.pushed_authorization_request_endpoint.as_ref();
        let pushed = offered.filter(|_| self.settings.par != Par::Off);
        if pushed.is_none() && self.requires_push(&metadata) {
            return Err(ProviderError::PushedRequests);
        }
        if pushed.is_none() && access.credentials.request_keys.is_none() {
            return Ok(whole);
        }
        let parameters = authorization::parameters(&whole, endpoint);
        let mut object = None;
        if let Some(keys) = &access.credentials.request_keys {
            let (client, issuer) = (&self.settings.client_id, &self.settings.issuer);
            let key = keys.signing_by(&metadata.request_object_signing_algs);
            let signed = request_object::sign(&key, client, issuer, &parameters, request.now);
            object = Some(signed?);
        }
        let sent = |is_pushed| match &object {
            Some(object) => request_object::around(object.clone(), &parameters, is_pushed),
            None => parameters.clone(),
        };
        let mut url = endpoint.url().clone();
        if let Some(endpoint) = pushed {
            match self.push(&metadata, endpoint, &sent(true), request.now).await {
                Ok(request_uri) => {
                    url.query_pairs_mut()
                        .append_pair("client_id", &self.settings.client_id)
                        .append_pair("request_uri", &request_uri);
                    return Ok(url);
                }
                Err(error) if self.may_go_on_without_push(&metadata, &error) => {}
                Err(error) => return Err(error),
            }
        }
        url.query_pairs_mut().extend_pairs(sent(false));
        Ok(url)
    }

    fn requires_push(&self, metadata: &Metadata) -> bool {
        self.settings.par == Par::Require || metadata.requires_pushed_requests
    }

    /// Whether a sign-in continues although its request could not be pushed: the answer does not conform to
    /// RFC 9126, and neither settings nor provider require pushing. Warns the first time.
    fn may_go_on_without_push(&self, metadata: &Metadata, error: &ProviderError) -> bool {
        let is_unusable = matches!(
            error,
            ProviderError::Malformed { .. } | ProviderError::Status { .. } | ProviderError::TooLarge { .. }
        );
        let may = is_unusable && !self.requires_push(metadata);
        if may {
            self.push_warning.call_once(|| {
                tracing::warn!(
                    issuer = self.settings.issuer,
                    error = error as &dyn std::error::Error,
                    "the answer to a pushed authorization request cannot be used: sign-ins continue without it (OIDC_PAR)"
                );
            });
        }
        may
    }

    async fn push(
        &self,
        metadata: &Metadata,
        url: &Url,
        parameters: &[(String, String)],
        now: u64,
    ) -> Result<String, ProviderError> {
        let endpoint = "pushed_authorization_request_endpoint";
        let fields: Vec<(&str, &str)> = parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let answer = self.post(metadata, (endpoint, url), &fields, now).await?;
        grant::pushed_answer(&answer, &self.settings)
    }

    /// Exchanges an authorization code (OpenID Connect Core 3.1.3).
    pub async fn exchange_code(
        &self,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
        now: u64,
    ) -> Result<TokenSet, GrantError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let answer = self.request_token(&self.with_resources(&fields), now).await?;
        grant::code_answer(&answer, &self.settings, now)
    }

    /// Validates the ID token of a login (OpenID Connect Core 3.1.3.7).
    pub async fn validate_id_token(
        &self,
        raw: &str,
        expected: &ExpectedIdToken<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        let claims = self.verified_claims(raw, TokenUse::Id, &ID_TOKEN_TYPES).await?;
        IdToken::of_login(claims, &self.settings, expected, now)
    }

    /// Reads userinfo about `expected_sub`, without claims reserved for the ID token (OpenID Connect Core
    /// 5.3). Sends the token as its type requires.
    pub async fn userinfo(
        &self,
        token_type: &str,
        access_token: &str,
        expected_sub: &str,
        now: u64,
    ) -> Result<Map<String, Value>, UserinfoError> {
        let endpoint = "userinfo_endpoint";
        let metadata = self.metadata().await?;
        let url = metadata
            .userinfo_endpoint
            .as_ref()
            .ok_or(ProviderError::MissingEndpoint(endpoint))?;
        let answer = self
            .access
            .load_full()
            .get_with_token(endpoint, url, (token_type, access_token), now)
            .await?;
        match answer.status {
            200 => {}
            401 | 403 => return Err(UserinfoError::Unauthorized),
            _ => return Err(answer.status_error().into()),
        }
        let Some(raw) = answer.compact_jws() else {
            let claims = strict_claims(answer.text()).ok_or(UserinfoError::Malformed)?;
            return userinfo::about(claims, expected_sub);
        };
        let (claims, _) = self
            .verified_claims(raw, TokenUse::Userinfo, &USERINFO_TYPES)
            .await
            .map_err(UserinfoError::Token)?;
        let checks = ClaimChecks::new(&claims, &self.settings, now);
        checks
            .issuer_of(&self.settings, false)
            .and_then(|_issuer| checks.audience(&self.settings))
            .and_then(|()| checks.validity_if_limited())
            .map_err(UserinfoError::Token)?;
        userinfo::about(claims, expected_sub)
    }

    /// Exchanges a refresh token (RFC 6749 section 6). Sends no scope, which means the granted one.
    pub async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, GrantError> {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        self.send_refresh(&self.with_resources(&fields), now).await
    }

    async fn send_refresh(&self, fields: &[(&str, &str)], now: u64) -> Result<RefreshedTokens, GrantError> {
        let metadata = self.metadata().await?;
        let timeout = self.settings.refresh_timeout.max(self.settings.http_timeout);
        let at = (TOKEN_ENDPOINT, &metadata.token_endpoint);
        let access = self.access.load_full();
        let answer = access.post(&metadata, at, fields, now, timeout).await?;
        grant::refresh_answer(&answer, &self.settings, now)
    }

    /// Revokes a token (RFC 7009).
    pub async fn revoke(
        &self,
        token: &str,
        hint: TokenHint,
        now: u64,
    ) -> Result<RevocationResult, ProviderError> {
        let endpoint = "revocation_endpoint";
        let metadata = self
            .metadata_with(|metadata| metadata.revocation_endpoint.is_some())
            .await?;
        let Some(url) = &metadata.revocation_endpoint else {
            return Ok(RevocationResult::NotOffered);
        };
        let fields = [("token", token), ("token_type_hint", hint.name())];
        let answer = self.post(&metadata, (endpoint, url), &fields, now).await?;
        if answer.status == 200 {
            return Ok(RevocationResult::Done);
        }
        Err(grant::refused(&answer, &self.settings))
    }

    /// The URL that ends the provider's session; `None` if the provider has no such endpoint.
    pub async fn end_session_url(
        &self,
        request: &EndSessionRequest<'_>,
    ) -> Result<Option<Url>, ProviderError> {
        let metadata = self.metadata().await?;
        let endpoint = metadata.end_session_endpoint.as_ref();
        Ok(endpoint.map(|endpoint| end_session::address(endpoint, &self.settings.client_id, request)))
    }

    /// The URL that ends the session of a provider with its own parameters; `None` if the provider lacks the
    /// endpoint in the template. Reads metadata only for such a template.
    pub async fn templated_logout_url(
        &self,
        template: &LogoutTemplate,
        return_to: &str,
    ) -> Result<Option<Url>, ProviderError> {
        let metadata = match template.needs_metadata() {
            true => Some(self.metadata().await?),
            false => None,
        };
        let endpoint = metadata
            .as_ref()
            .and_then(|metadata| metadata.end_session_endpoint.as_ref());
        let endpoint = endpoint.map(|endpoint| endpoint.url());
        let settings = &self.settings;
        Ok(template.address(&settings.issuer, endpoint, &settings.client_id, return_to))
    }

    /// Validates a logout token; the caller prevents replays (Back-Channel Logout 2.6).
    pub async fn validate_logout_token(&self, raw: &str, now: u64) -> Result<LogoutToken, IdTokenError> {
        let token = UnverifiedToken::parse(raw, &self.settings.signing_algs)?;
        if !LogoutToken::has_right_type(&token) {
            return Err(IdTokenError::LogoutType);
        }
        // Before the signature check, so that an invalid token never causes a key fetch.
        let logout = LogoutToken::validate(&token.claims()?, &self.settings, now)?;
        self.verify(&token, TokenUse::Id, TokenOrigin::Unauthenticated)
            .await?;
        Ok(logout)
    }

    /// Posts a token request.
    async fn request_token(
        &self,
        fields: &[(&str, &str)],
        now: u64,
    ) -> Result<ProviderResponse, ProviderError> {
        let metadata = self.metadata().await?;
        let at = (TOKEN_ENDPOINT, &metadata.token_endpoint);
        self.post(&metadata, at, fields, now).await
    }

    async fn post(
        &self,
        metadata: &Metadata,
        at: (&'static str, &Url),
        fields: &[(&str, &str)],
        now: u64,
    ) -> Result<ProviderResponse, ProviderError> {
        let access = self.access.load_full();
        access
            .post(metadata, at, fields, now, self.settings.http_timeout)
            .await
    }

    /// The resources of a token request (RFC 8707 section 2.2): only the first one if the others get tokens
    /// of their own.
    fn with_resources<'a>(&'a self, fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let count = match self.settings.api_token_grant {
            ApiTokenGrant::TokenExchange => usize::MAX,
            ApiTokenGrant::Refresh => 1,
        };
        let resources = self.settings.resources.iter().take(count);
        let resources = resources.map(|resource| ("resource", resource.as_str()));
        fields.iter().copied().chain(resources).collect()
    }
}
