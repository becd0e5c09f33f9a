//! A relying party without a browser: reads the provider's documents and refresh answers. Both providers
//! have the same keys. Each document gets a new relying party, since real ones cache.

use std::sync::OnceLock;

use http::HeaderMap;
use oidc::{ExpectedIdToken, ProviderSettings, RelyingParty};
use scripted_provider::{Answer as Scripted, CLIENT_ID, Endpoint};
use serde_json::{Value, json};
use url::Url;

use super::Outcome;
use super::provider::answer;
use super::world::{World, put};

const NOW: u64 = 1_800_000_000;
/// The longest accepted lifetime of an access token, in seconds: a year.
const LONGEST_LIFETIME: u64 = 365 * 86_400;

/// A relying party of a provider that gives this answer at one endpoint.
fn party(world: &World, endpoint: Endpoint, answer: Scripted) -> RelyingParty {
    world.other.script(|script| {
        script.answers.clear();
        script.answers.insert(endpoint, answer);
    });
    RelyingParty::new(ProviderSettings::new(world.other.issuer(), CLIENT_ID)).unwrap()
}

pub(super) fn metadata(world: &World, input: &[u8]) -> Outcome {
    let issuer = world.other.issuer();
    let document = String::from_utf8_lossy(&put(input, "ISSUER", issuer)).into_owned();
    let answer = Scripted::text(200, "application/json", document);
    let party = party(world, Endpoint::Discovery, answer);
    let Ok(metadata) = world.runtime.block_on(party.metadata()) else {
        return Outcome::Refused(0);
    };
    assert_eq!(metadata.issuer, issuer);
    let needed = [
        metadata.authorization_endpoint.url(),
        &metadata.token_endpoint,
        &metadata.jwks_uri,
    ];
    let offered = [
        metadata.userinfo_endpoint.as_ref(),
        metadata
            .end_session_endpoint
            .as_ref()
            .map(|endpoint| endpoint.url()),
        metadata.revocation_endpoint.as_ref(),
        metadata.pushed_authorization_request_endpoint.as_ref(),
    ];
    let all = needed.into_iter().chain(offered.into_iter().flatten());
    all.for_each(assert_secure);
    Outcome::Accepted
}

fn assert_secure(url: &Url) {
    let local = matches!(url.host_str(), Some(host) if host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]");
    assert!(
        url.scheme() == "https" || (url.scheme() == "http" && local),
        "{url}"
    );
}

fn modulus(world: &World) -> String {
    static MODULUS: OnceLock<String> = OnceLock::new();
    let read = || {
        let answer = world.get(&world.provider.url(Endpoint::Jwks), HeaderMap::new());
        let keys: Value = serde_json::from_slice(&answer.body).unwrap();
        let keys = keys["keys"].as_array().unwrap();
        let rsa = keys.iter().find(|key| key["kty"] == "RSA").unwrap();
        rsa["n"].as_str().unwrap().to_owned()
    };
    MODULUS.get_or_init(read).clone()
}

pub(super) fn jwks(world: &World, input: &[u8]) -> Outcome {
    let claims = json!({
        "iss": world.other.issuer(), "sub": "alice", "aud": CLIENT_ID, "iat": NOW, "exp": NOW + 60, "nonce": "nonce",
    });
    let token = world.other.sign(claims);
    let modulus = modulus(world);
    let document = String::from_utf8_lossy(&put(input, "MODULUS", &modulus)).into_owned();
    let answer = Scripted::text(200, "application/jwk-set+json", document.clone());
    let party = party(world, Endpoint::Jwks, answer);
    let expected = ExpectedIdToken {
        nonce: "nonce",
        ..ExpectedIdToken::default()
    };
    let verified = party.validate_id_token(&token, &expected, NOW);
    if world.runtime.block_on(verified).is_err() {
        return Outcome::Refused(0);
    }
    assert!(
        document.contains(&modulus),
        "verified without the key that signed"
    );
    Outcome::Accepted
}

pub(super) fn refresh_response(world: &World, input: &[u8]) -> Outcome {
    let (scripted, good, body) = answer(input);
    let party = party(world, Endpoint::Token, scripted);
    let Ok(tokens) = world.runtime.block_on(party.refresh("refresh", NOW)) else {
        return Outcome::Refused(0);
    };
    let said: Value = serde_json::from_str(&body).unwrap();
    assert!(good && said["access_token"] == tokens.access_token && !tokens.access_token.is_empty());
    assert_eq!(tokens.token_type, "Bearer");
    assert!((NOW..=NOW + LONGEST_LIFETIME).contains(&tokens.expires_at));
    assert!(
        tokens
            .refresh_token
            .is_none_or(|token| said["refresh_token"] == token && !token.is_empty())
    );
    Outcome::Accepted
}
