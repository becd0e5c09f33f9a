//! The browser's side: a key, and signatures with it.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING as ES256, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::{Answer, Browser};

/// When the proof cookie expires for the browser.
pub(crate) const UNTIL_RENEWED_MS: u64 = 540_000;

/// What Chromium sends with a registration and a refresh.
const OF_OURS: [(&str, &str); 2] = [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "no-cors")];

pub(crate) struct Device {
    pair: EcdsaKeyPair,
    handle: String,
    refresh_url: String,
}

impl Device {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ES256, &random).unwrap();
        Self {
            pair: EcdsaKeyPair::from_pkcs8(&ES256, der.as_ref()).unwrap(),
            handle: String::new(),
            refresh_url: String::new(),
        }
    }

    /// Signs in and binds the session.
    pub(crate) async fn bind(browser: &mut Browser) -> Self {
        let callback = browser.sign_in().await;
        let device = Self::new();
        let offer = callback.header("secure-session-registration").to_owned();
        let registered = device.register(browser, &offer).await;
        assert_eq!(registered.status, 200, "{registered:?}");
        device.named(&registered.json())
    }

    /// The device with the IDs from the session instructions.
    pub(crate) fn named(mut self, instructions: &Value) -> Self {
        let text = |name: &str| instructions[name].as_str().unwrap().to_owned();
        self.handle = text("session_identifier");
        self.refresh_url = text("refresh_url");
        self
    }

    pub(crate) fn handle(&self) -> &str {
        &self.handle
    }

    pub(crate) fn refresh_url(&self) -> &str {
        &self.refresh_url
    }

    /// The proof of a registration.
    pub(crate) fn registration(&self, offer: &str) -> String {
        let challenge = between(offer, "challenge=\"", "\"");
        let point = self.pair.public_key().as_ref();
        let (x, y) = (&point[1..33], &point[33..]);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
        let header = json!({ "typ": "dbsc+jwt", "alg": "ES256", "jwk": jwk });
        self.signed(&header, challenge)
    }

    /// Accepts an offer.
    pub(crate) async fn register(&self, browser: &mut Browser, offer: &str) -> Answer {
        let proof = self.registration(offer);
        let headers = [OF_OURS[0], OF_OURS[1], ("secure-session-response", &proof)];
        browser.post("/api/auth/device/register", &headers, "").await
    }

    /// The proof of a refresh.
    pub(crate) fn proof(&self, challenge: &str) -> String {
        self.signed(&json!({ "typ": "dbsc+jwt", "alg": "ES256" }), challenge)
    }

    /// Asks for the cookie, with this proof.
    pub(crate) async fn ask(&self, browser: &mut Browser, proof: Option<&str>) -> Answer {
        let named = ("sec-secure-session-id", self.handle.as_str());
        let proof = proof.map(|proof| ("secure-session-response", proof));
        let headers: Vec<_> = OF_OURS.into_iter().chain([named]).chain(proof).collect();
        browser.post(&self.refresh_url, &headers, "").await
    }

    /// Asks, and answers the challenge if there is one.
    pub(crate) async fn refresh(&self, browser: &mut Browser) -> Answer {
        let asked = self.ask(browser, None).await;
        if asked.status != 403 {
            return asked;
        }
        let proof = self.proof(&self.challenge_of(&asked));
        self.ask(browser, Some(&proof)).await
    }

    pub(crate) fn challenge_of(&self, asked: &Answer) -> String {
        between(asked.header("secure-session-challenge"), "\"", "\"").to_owned()
    }

    fn signed(&self, header: &Value, challenge: &str) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(&json!({ "jti": challenge })));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

pub(crate) fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before} in {text:?}"));
    rest.split_once(after).unwrap().0
}
