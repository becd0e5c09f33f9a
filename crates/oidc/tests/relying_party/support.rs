//! A relying party before a provider that misbehaves on demand.

use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oidc::{
    AuthorizationRequest, ClientAuth, ClientSecret, DpopKey, ExpectedIdToken, ExpectedRefreshedIdToken,
    GrantError, IdToken, IdTokenError, ProviderSettings, RedirectUrl, RefreshedTokens, RelyingParty,
    TokenSet,
};
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, Script, ScriptedProvider};
use serde_json::Value;
use url::Url;

pub(crate) const NOW: u64 = 1_800_000_000;
pub(crate) const VERIFIER: &str = "verifier-verifier-verifier-verifier-verifier-1";
pub(crate) const BACK: &str = "http://127.0.0.1:3000/api/auth/callback";
static REDIRECT_URI: LazyLock<RedirectUrl> =
    LazyLock::new(|| RedirectUrl::new(BACK.to_owned()).expect("a URL"));

/// No terminating call takes this long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// A key to bind tokens to.
pub(crate) fn dpop_key() -> DpopKey {
    let algorithm = &aws_lc_rs::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let random = aws_lc_rs::rand::SystemRandom::new();
    let der = aws_lc_rs::signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
    let text = STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    DpopKey::from_pem(&pem).expect("a key")
}

pub(crate) struct Bench {
    pub(crate) provider: ScriptedProvider,
    pub(crate) party: RelyingParty,
}

pub(crate) fn bench_with(change: impl FnOnce(&mut ProviderSettings)) -> Bench {
    let provider = ScriptedProvider::start();
    provider.script(|script| script.now = Some(NOW));
    let mut settings = ProviderSettings::new(provider.issuer(), CLIENT_ID);
    settings.credentials.auth = ClientAuth::SecretBasic(ClientSecret::new(CLIENT_SECRET.to_owned()));
    settings.http_timeout = Duration::from_millis(1_500);
    settings.refresh_timeout = settings.http_timeout;
    change(&mut settings);
    let party = RelyingParty::new(settings).expect("usable settings");
    Bench { provider, party }
}

pub(crate) fn bench() -> Bench {
    bench_with(|_| {})
}

pub(crate) fn request() -> AuthorizationRequest<'static> {
    AuthorizationRequest {
        redirect_uri: &REDIRECT_URI,
        state: "state",
        nonce: "nonce",
        verifier: VERIFIER,
        extra: &[],
        max_age: None,
        needs_account_prompt: false,
        now: NOW,
    }
}

pub(crate) fn param(url: &Url, name: &str) -> Option<String> {
    url.query_pairs()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// Advances time for caches; the network works only while the clock runs.
pub(crate) async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

impl Bench {
    pub(crate) async fn code(&self) -> String {
        let url = self
            .party
            .authorization_url(&request())
            .await
            .expect("an address");
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("client");
        let answer = client.get(url).send().await.expect("an answer");
        let location = answer.headers()["location"].to_str().expect("text");
        param(&Url::parse(location).expect("a URL"), "code").expect("a code")
    }

    pub(crate) async fn exchange(&self) -> Result<TokenSet, GrantError> {
        let code = self.code().await;
        self.redeem(&code).await
    }

    pub(crate) async fn redeem(&self, code: &str) -> Result<TokenSet, GrantError> {
        self.party.exchange_code(code, VERIFIER, BACK, NOW).await
    }

    /// Validates the ID token of an exchange.
    pub(crate) async fn judge(&self, tokens: &TokenSet) -> Result<IdToken, IdTokenError> {
        let expected = ExpectedIdToken {
            nonce: "nonce",
            access_token: Some(&tokens.access_token),
            ..ExpectedIdToken::default()
        };
        self.party
            .validate_id_token(&tokens.id_token, &expected, NOW)
            .await
    }

    /// Validates a refresh's ID token; by default only the person is known.
    pub(crate) async fn judge_refreshed(
        &self,
        tokens: &RefreshedTokens,
        change: impl FnOnce(&mut ExpectedRefreshedIdToken<'_>),
    ) -> Result<IdToken, IdTokenError> {
        let mut expected = ExpectedRefreshedIdToken {
            iss: self.provider.issuer(),
            sub: "alice",
            nonce: None,
            access_token: &tokens.access_token,
        };
        change(&mut expected);
        let raw = tokens.id_token.as_deref().expect("an ID token");
        self.party.validate_refreshed_id_token(raw, &expected, NOW).await
    }

    pub(crate) async fn login_expecting(
        &self,
        change: impl FnOnce(&mut ExpectedIdToken<'_>),
    ) -> Result<IdToken, IdTokenError> {
        let tokens = self.exchange().await.expect("tokens");
        let mut expected = ExpectedIdToken {
            nonce: "nonce",
            access_token: Some(&tokens.access_token),
            ..ExpectedIdToken::default()
        };
        change(&mut expected);
        self.party
            .validate_id_token(&tokens.id_token, &expected, NOW)
            .await
    }

    pub(crate) async fn login(&self) -> Result<IdToken, IdTokenError> {
        self.login_expecting(|_| {}).await
    }

    pub(crate) async fn login_with(&self, change: impl FnOnce(&mut Script)) -> Result<IdToken, IdTokenError> {
        self.provider.reset();
        self.provider.script(change);
        self.login().await
    }

    pub(crate) async fn with_claim(&self, name: &str, value: Value) -> Result<IdToken, IdTokenError> {
        self.login_with(|script| {
            script.claims.insert(name.to_owned(), value);
        })
        .await
    }
}
