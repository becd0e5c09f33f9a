//! Lets a request pass if its X-Auth-Assertion is valid, and greets its user.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::{StatusCode, request::Parts};
use axum::routing::get;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use tokio::sync::Mutex;

/// The user of a request: a handler with this argument answers 401 without a valid assertion.
#[derive(Deserialize)]
struct User {
    #[serde(rename = "sub")]
    _subject: String,
    email: String,
}

impl FromRequestParts<Arc<Verifier>> for User {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(
        parts: &mut Parts,
        verifier: &Arc<Verifier>,
    ) -> Result<Self, Self::Rejection> {
        let mut values = parts.headers.get_all("x-auth-assertion").iter();
        let user = match (values.next(), values.next()) {
            (Some(token), None) => verifier.read_user(token.as_bytes()).await,
            _ => None,
        };
        user.ok_or((StatusCode::UNAUTHORIZED, "No valid assertion\n"))
    }
}

#[derive(Default)]
struct Keys {
    set: Option<JwkSet>,
    fetched: Option<Instant>,
    asked: Option<Instant>,
}

struct Verifier {
    rules: Validation,
    http: reqwest::Client,
    keys_url: String,
    keys: Mutex<Keys>,
}

impl Verifier {
    async fn read_user(&self, token: &[u8]) -> Option<User> {
        let header = decode_header(token).ok()?;
        if header.typ.as_deref() != Some("JWT") {
            return None;
        }
        let key = self.find_key(&header.kid?).await?;
        Some(decode(token, &key, &self.rules).ok()?.claims)
    }

    /// Keys live five minutes. An unknown ID fetches them again, at most every ten seconds.
    async fn find_key(&self, id: &str) -> Option<DecodingKey> {
        let older_than =
            |time: Option<Instant>, secs| time.is_none_or(|time| time.elapsed() > Duration::from_secs(secs));
        let mut keys = self.keys.lock().await;
        if older_than(keys.fetched, 300) {
            keys.set = None;
        }
        let is_known = keys.set.as_ref().is_some_and(|set| set.find(id).is_some());
        if !is_known && older_than(keys.asked, 10) {
            keys.asked = Some(Instant::now());
            if let Ok(set) = self.fetch_keys().await {
                (keys.set, keys.fetched) = (Some(set), keys.asked);
            }
        }
        DecodingKey::from_jwk(keys.set.as_ref()?.find(id)?).ok()
    }

    async fn fetch_keys(&self) -> Result<JwkSet, Box<dyn Error>> {
        let answer = self.http.get(&self.keys_url).send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&answer.bytes().await?)?)
    }
}

#[expect(clippy::disallowed_methods, reason = "an example has no settings of its own")]
fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("set {name}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let issuer = variable("VESTIBULE_ISSUER")?;
    let mut rules = Validation::new(Algorithm::ES256);
    rules.set_issuer(&[&issuer]);
    rules.set_audience(&[variable("AUDIENCE")?]);
    rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    (rules.validate_nbf, rules.leeway) = (true, 5);
    let verifier = Verifier {
        rules,
        http: reqwest::Client::builder()
            .timeout(Duration::from_secs(5))
            .build()?,
        keys_url: variable("KEYS_URL").unwrap_or(format!("{issuer}/.well-known/vestibule/jwks.json")),
        keys: Mutex::default(),
    };
    let greet = async |user: User| format!("Hello {}\n", user.email);
    let app = Router::new()
        .route("/", get(greet))
        .with_state(Arc::new(verifier));
    let address = format!("127.0.0.1:{}", variable("PORT").unwrap_or("8080".into()));
    axum::serve(tokio::net::TcpListener::bind(address).await?, app).await?;
    Ok(())
}
