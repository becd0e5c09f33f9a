//! How this receiver proves who it is at a transmitter: by a token it was given, or by one it fetches with the client credentials
//! grant (RFC 6749 section 4.4), as the CAEP Interoperability Profile 1.0 section 2.7 has it; or by the certificate of each
//! connection alone.
//!
//! Invariants: tokens and secrets are in no `Debug` output and no error. A fetched token is kept in memory until shortly before its
//! end, and fetched once for all who wait for it.
//!
//! Deliberately absent: the code grant, which needs a person; tokens bound to a key (RFC 9449), which no transmitter asks for.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::access::TOKEN_ENDPOINT;
use crate::endpoint::endpoint_is_secure;
use crate::http_client::{HttpClient, ProviderResponse};
use crate::json::seconds_or_text;
use crate::{ClientAuth, ClientSecret, OAuthError, ProviderError, TransmitterError, random};

/// How long before its end a token is used no more: the transmitter has to find it good when the request arrives.
const EARLY: Duration = Duration::from_secs(30);
/// How long a token lives whose answer does not say, in seconds.
const DEFAULT_LIFETIME_SECS: u64 = 300;
/// No token is kept longer than this, in seconds, whatever its answer says: rights that were withdrawn are noticed.
const LONGEST_LIFETIME_SECS: u64 = 86_400;

/// How a receiver proves who it is at a transmitter.
#[derive(Clone, Debug)]
pub struct TransmitterCredentials(Kind);

#[derive(Clone, Debug)]
enum Kind {
    None,
    Token(ClientSecret),
    Grant(Box<ClientCredentials>),
}

/// What an access token is fetched with (RFC 6749 section 4.4).
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    /// Where it is fetched.
    pub token_endpoint: Url,
    /// Who asks for it.
    pub client_id: String,
    /// How the client proves who it is; an assertion is for the token endpoint.
    pub auth: ClientAuth,
    /// The scope requested, space-separated; `None` leaves it to the authorization server. `ssf.manage` is the one that every
    /// transmitter of the CAEP Interoperability Profile takes.
    pub scope: Option<String>,
}

impl TransmitterCredentials {
    /// None: requests carry no `Authorization`.
    #[must_use]
    pub fn none() -> Self {
        Self(Kind::None)
    }

    /// A bearer token, white space around it cut. `None` where it is none (RFC 6750 section 2.1).
    #[must_use]
    pub fn bearer(token: &str) -> Option<Self> {
        let token = token.trim();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        let is_token = !token.is_empty() && token.bytes().all(legal);
        is_token.then(|| Self(Kind::Token(ClientSecret::new(token.to_owned()))))
    }

    /// Tokens fetched with the client credentials grant. `None` where the token endpoint is not https outside loopback.
    #[must_use]
    pub fn client_credentials(grant: ClientCredentials) -> Option<Self> {
        endpoint_is_secure(&grant.token_endpoint).then(|| Self(Kind::Grant(Box::new(grant))))
    }

    pub(crate) fn client_auth(&self) -> Option<&ClientAuth> {
        match &self.0 {
            Kind::Grant(grant) => Some(&grant.auth),
            Kind::None | Kind::Token(_) => None,
        }
    }
}

/// Credentials, with the token that was fetched by them.
pub(crate) struct HeldCredentials {
    credentials: TransmitterCredentials,
    fetched: Mutex<Option<Fetched>>,
}

struct Fetched {
    token: ClientSecret,
    good_until: Instant,
}

impl HeldCredentials {
    pub(crate) fn new(credentials: TransmitterCredentials) -> Self {
        Self {
            credentials,
            fetched: Mutex::new(None),
        }
    }

    pub(crate) fn credentials(&self) -> &TransmitterCredentials {
        &self.credentials
    }

    /// The token a request carries, fetched where none is there; `None` where requests carry none. `refused` is a token that was
    /// just refused, so that another one is fetched in its place. `now` in seconds since the Unix epoch.
    ///
    /// # Errors
    /// None can be had.
    pub(crate) async fn token(
        &self,
        http: &HttpClient,
        timeout: Duration,
        refused: Option<&ClientSecret>,
        now: u64,
    ) -> Result<Option<ClientSecret>, TransmitterError> {
        let grant = match &self.credentials.0 {
            Kind::None => return Ok(None),
            Kind::Token(token) => return Ok(Some(token.clone())),
            Kind::Grant(grant) => grant,
        };
        let mut fetched = self.fetched.lock().await;
        if let Some(Fetched { token, good_until }) = fetched.as_ref()
            && Instant::now() < *good_until
            && refused.is_none_or(|refused| refused.secret() != token.secret())
        {
            return Ok(Some(token.clone()));
        }
        *fetched = None;
        let asked_at = Instant::now();
        let (token, lifetime) = grant.fetch(http, timeout, now).await?;
        *fetched = Some(Fetched {
            token: token.clone(),
            good_until: asked_at + lifetime.saturating_sub(EARLY.min(lifetime / 2)),
        });
        Ok(Some(token))
    }

    /// Whether another token can be had in the place of one that was refused.
    pub(crate) fn can_fetch(&self) -> bool {
        matches!(self.credentials.0, Kind::Grant(_))
    }
}

impl ClientCredentials {
    async fn fetch(
        &self,
        http: &HttpClient,
        timeout: Duration,
        now: u64,
    ) -> Result<(ClientSecret, Duration), TransmitterError> {
        let unsigned = || TransmitterError::Token(ProviderError::ClientAssertion);
        let token_id = random::token().map_err(|_| unsigned())?;
        let audience = self.token_endpoint.as_str();
        let proof = self.auth.prove(&self.client_id, audience, &token_id, now);
        let proof = proof.map_err(|_| unsigned())?;
        let mut fields = vec![
            ("grant_type", "client_credentials"),
            ("client_id", &self.client_id),
        ];
        fields.extend(self.scope.as_deref().map(|scope| ("scope", scope)));
        let url = &self.token_endpoint;
        let answer = http.post_form(TOKEN_ENDPOINT, url, proof, &fields, timeout, None);
        token_of(&answer.await.map_err(TransmitterError::Token)?)
    }
}

/// What an answer says: the token, and how long it lives.
fn token_of(answer: &ProviderResponse) -> Result<(ClientSecret, Duration), TransmitterError> {
    let document = answer.json::<Map<String, Value>>();
    if answer.status != 200 {
        let document = document.ok().filter(|_| matches!(answer.status, 400 | 401 | 403));
        let error = document.as_ref().and_then(|document| document.get("error"));
        return Err(match error.and_then(Value::as_str) {
            Some(error) => TransmitterError::TokenRefused(OAuthError::new(error)),
            None => TransmitterError::Token(answer.status_error()),
        });
    }
    let document = document.map_err(TransmitterError::Token)?;
    let text = |name| document.get(name).and_then(Value::as_str);
    let is_bearer = text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("Bearer"));
    let token = text("access_token").filter(|_| is_bearer);
    let token = token.and_then(TransmitterCredentials::bearer);
    let Some(TransmitterCredentials(Kind::Token(token))) = token else {
        return Err(TransmitterError::TokenUnusable);
    };
    let lifetime = seconds_or_text(document.get("expires_in"))
        .unwrap_or(DEFAULT_LIFETIME_SECS)
        .min(LONGEST_LIFETIME_SECS);
    Ok((token, Duration::from_secs(lifetime)))
}
