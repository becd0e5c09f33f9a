//! Signed authorization requests (RFC 9101, OpenID Connect Core 6.1), which no third party can change.

use serde_json::{Map, Value, json};

use crate::client::client_key::{ClientKey, SigningFailed};
use crate::random;

/// Lifetime of a request object in seconds. It can be short: the browser delivers the object at once.
const LIFETIME_SECS: u64 = 300;

/// Signs all parameters as one object for the provider.
pub(crate) fn sign(
    key: &ClientKey,
    client_id: &str,
    issuer: &str,
    parameters: &[(String, String)],
    now: u64,
) -> Result<String, SigningFailed> {
    let mut claims = Map::new();
    for (name, value) in parameters {
        match claims.get_mut(name) {
            // Only `resource` may occur more than once.
            Some(Value::Array(values)) => values.push(json!(value)),
            Some(first) => *first = json!([first.take(), value]),
            None => {
                claims.insert(name.clone(), json!(value));
            }
        }
    }
    // OpenID Connect Core 6.1: numbers stay numbers inside the object.
    if let Some(max_age) = claims
        .get("max_age")
        .and_then(Value::as_str)
        .and_then(|text| text.parse::<u64>().ok())
    {
        claims.insert("max_age".to_owned(), json!(max_age));
    }
    let own = [
        ("iss", json!(client_id)),
        ("aud", json!(issuer)),
        ("jti", json!(random::token())),
        ("iat", json!(now)),
        ("nbf", json!(now)),
        ("exp", json!(now.saturating_add(LIFETIME_SECS))),
    ];
    claims.extend(own.map(|(name, value)| (name.to_owned(), value)));
    key.sign(
        json!({ "typ": "oauth-authz-req+jwt", "kid": key.thumbprint() }),
        &Value::Object(claims),
    )
}

/// Builds the request around the object. Unless `pushed`, it repeats parameters that OpenID Connect requires.
pub(crate) fn around(object: String, parameters: &[(String, String)], pushed: bool) -> Vec<(String, String)> {
    const STAY: [&str; 3] = ["client_id", "response_type", "scope"];
    let stay = if pushed { &STAY[..1] } else { &STAY };
    let around = stay
        .iter()
        .flat_map(|stay| parameters.iter().find(|(name, _)| name == stay));
    let object = ("request".to_owned(), object);
    around.cloned().chain([object]).collect()
}
