//! The authorization request (OpenID Connect Core 3.1.2.1, RFC 7636, RFC 9126).

use openidconnect::{PkceCodeChallenge, PkceCodeVerifier};

use crate::dpop::DpopKey;
use crate::{ProviderSettings, ResponseMode};

/// What one login adds to the configured authorization request.
#[derive(Clone, Copy, Default)]
pub struct AuthorizationRequest<'a> {
    /// Where the provider sends the browser back to.
    pub redirect_uri: &'a str,
    /// Binds the answer to this browser.
    pub state: &'a str,
    /// Binds the ID token to this login.
    pub nonce: &'a str,
    /// PKCE code verifier; only its S256 challenge is sent.
    pub verifier: &'a str,
    /// Allow-listed parameters of this login (`login_hint`, `prompt`, …). They override configured ones of the
    /// same name, except that a configured `organization` and `audience` stay; protocol parameters among them are ignored.
    pub extra: &'a [(String, String)],
    /// `max_age` in seconds; wins over one in `extra`.
    pub max_age: Option<u64>,
    /// Wall clock in seconds since the Unix epoch, for client assertions of pushed requests.
    pub now: u64,
}

/// Parameters only the protocol sets; neither configuration nor a login can.
pub const PROTOCOL_PARAMETERS: [&str; 14] = [
    "client_id",
    "response_type",
    "response_mode",
    "redirect_uri",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "request",
    "request_uri",
    "resource",
    "dpop_jkt",
    "client_secret",
];

/// All parameters of the request, in a stable order, each name but `resource` once.
pub(crate) fn parameters(
    settings: &ProviderSettings,
    request: &AuthorizationRequest<'_>,
    dpop_key: Option<&DpopKey>,
) -> Vec<(String, String)> {
    let verifier = PkceCodeVerifier::new(request.verifier.to_owned());
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
    let fixed = [
        ("client_id", settings.client_id.as_str()),
        ("response_type", "code"),
        ("redirect_uri", request.redirect_uri),
        ("scope", settings.scope.as_str()),
        ("state", request.state),
        ("nonce", request.nonce),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
    ];
    let mut parameters: Vec<(String, String)> = fixed
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    if settings.response_mode == ResponseMode::FormPost {
        parameters.push(("response_mode".to_owned(), "form_post".to_owned()));
    }
    let max_age = request.max_age.map(|secs| secs.to_string());
    let own = [
        ("audience", settings.audience.as_deref()),
        ("organization", settings.organization.as_deref()),
        ("max_age", max_age.as_deref()),
        // binds the code to the key, whoever intercepts it (RFC 9449, section 10)
        ("dpop_jkt", dpop_key.map(DpopKey::thumbprint)),
    ];
    for (name, value) in own {
        add(&mut parameters, name, value);
    }
    // the first of a name wins: protocol, configured binding values, this login, configured defaults
    for (name, value) in request.extra.iter().chain(&settings.authorization_params) {
        if !PROTOCOL_PARAMETERS.contains(&name.as_str()) {
            add(&mut parameters, name, Some(value));
        }
    }
    let resources = settings.resources.iter();
    parameters.extend(resources.map(|resource| ("resource".to_owned(), resource.clone())));
    // contradictory: nobody can prove who they are anew without being asked
    let is = |parameters: &[(String, String)], name: &str, value: &str| {
        parameters.iter().any(|(n, v)| n == name && v == value)
    };
    if is(&parameters, "max_age", "0") && is(&parameters, "prompt", "none") {
        parameters.retain(|(name, _)| name != "prompt");
    }
    parameters
}

fn add(parameters: &mut Vec<(String, String)>, name: &str, value: Option<&str>) {
    if let Some(value) = value
        && !parameters.iter().any(|(known, _)| known == name)
    {
        parameters.push((name.to_owned(), value.to_owned()));
    }
}
