//! Lets a request pass if its X-Auth-Assertion is valid, and greets its user.

use std::env::var;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, StatusCode, request::Parts};
use axum::{Router, routing::get};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, jwk::JwkSet};
use serde::Deserialize;
use tokio::{net::TcpListener, sync::Mutex};

/// The user of a request: a handler with this argument answers 401 without a valid assertion.
#[derive(Deserialize)]
struct User {
    #[serde(rename = "sub")]
    _subject: String,
    email: String,
}

impl FromRequestParts<Arc<Verifier>> for User {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, state: &Arc<Verifier>) -> Result<Self, Self::Rejection> {
        let user = state.read_user(&parts.headers).await;
        user.ok_or((StatusCode::UNAUTHORIZED, "No valid assertion\n"))
    }
}

struct Verifier {
    rules: Validation,
    http: reqwest::Client,
    keys_url: String,
    keys: Mutex<(JwkSet, Option<Instant>)>,
}

impl Verifier {
    async fn read_user(&self, headers: &HeaderMap) -> Option<User> {
        let token = headers.get("x-auth-assertion")?;
        let header = decode_header(token).ok()?;
        if headers.get_all("x-auth-assertion").iter().count() > 1 || header.typ.as_deref() != Some("JWT") {
            return None;
        }
        let key = self.find_key(&header.kid?).await?;
        Some(decode(token, &key, &self.rules).ok()?.claims)
    }

    /// Keys live five minutes. An unknown ID fetches them again, at most every ten seconds.
    async fn find_key(&self, id: &str) -> Option<DecodingKey> {
        let (keys, asked) = &mut *self.keys.lock().await;
        let lifetime = Duration::from_secs(if keys.find(id).is_some() { 300 } else { 10 });
        if asked.is_none_or(|time| time.elapsed() > lifetime) {
            *asked = Some(Instant::now());
            *keys = self.fetch_keys().await.unwrap_or_default();
        }
        DecodingKey::from_jwk(keys.find(id)?).ok()
    }

    async fn fetch_keys(&self) -> reqwest::Result<JwkSet> {
        self.http.get(&self.keys_url).send().await?.json().await
    }
}

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "an example has no settings of its own")]
async fn main() -> std::io::Result<()> {
    let issuer = var("VESTIBULE_ISSUER").expect("set VESTIBULE_ISSUER");
    let mut rules = Validation::new(Algorithm::ES256);
    rules.set_issuer(&[&issuer]);
    rules.set_audience(&[var("AUDIENCE").expect("set AUDIENCE")]);
    rules.set_required_spec_claims(&["exp", "iss", "aud"]);
    (rules.validate_nbf, rules.leeway) = (true, 5);
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default(); // for reqwest
    let http = reqwest::Client::builder().timeout(Duration::from_secs(5));
    let verifier = Arc::new(Verifier {
        rules,
        http: http.build().expect("an HTTP client"),
        keys_url: var("KEYS_URL").unwrap_or(format!("{issuer}/.well-known/vestibule/jwks.json")),
        keys: Mutex::default(),
    });
    let greet = async |user: User| format!("Hello {}\n", user.email);
    let app = Router::new().route("/", get(greet)).with_state(verifier);
    let address = format!("127.0.0.1:{}", var("PORT").unwrap_or("8080".into()));
    axum::serve(TcpListener::bind(address).await?, app).await
}
