//! The authorization request (OpenID Connect Core 3.1.2.1, RFC 7636, RFC 9126).

use std::borrow::Cow;

use openidconnect::core::{CoreAuthenticationFlow, CoreClient};
use openidconnect::{AuthUrl, CsrfToken, Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope};
use url::Url;

use crate::client::dpop::DpopKey;
use crate::{ProviderSettings, ResponseMode};

/// The parameters of one login, in addition to the configured ones.
#[derive(Clone, Copy)]
pub struct AuthorizationRequest<'a> {
    /// The address to which the provider returns the browser.
    pub redirect_uri: &'a RedirectUrl,
    /// Binds the answer to this browser.
    pub state: &'a str,
    /// Binds the ID token to this login.
    pub nonce: &'a str,
    /// PKCE code verifier; only its S256 challenge is sent.
    pub verifier: &'a str,
    /// Allow-listed parameters of this login (`login_hint`, `prompt`, …). They override configured ones,
    /// except `organization` and `audience`. Protocol parameters among them are ignored.
    pub extra: &'a [(String, String)],
    /// `max_age` in seconds; overrides the one in `extra`.
    pub max_age: Option<u64>,
    /// Whether the provider must prompt the user, even if a user is signed in there.
    pub needs_account_prompt: bool,
    /// Wall clock in seconds since the Unix epoch, for client assertions.
    pub now: u64,
}

/// Parameters that only the protocol sets, never configuration or a login.
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

/// The URL of the request at `endpoint`, with each parameter except `resource` once.
pub(crate) fn address(
    client: CoreClient,
    endpoint: &AuthUrl,
    settings: &ProviderSettings,
    request: &AuthorizationRequest<'_>,
    asking_prompt: &str,
    dpop_key: Option<&DpopKey>,
) -> Url {
    let client = client.disable_openid_scope().set_auth_uri(endpoint.clone()); // `scope` is configured as a whole
    let state = CsrfToken::new(request.state.to_owned());
    let nonce = Nonce::new(request.nonce.to_owned());
    let verifier = PkceCodeVerifier::new(request.verifier.to_owned());
    let max_age = request.max_age.map(|secs| secs.to_string());
    let prompt = request
        .needs_account_prompt
        .then(|| asking(asking_prompt, settings, request));
    let mut builder = client
        .authorize_url(CoreAuthenticationFlow::AuthorizationCode, || state, || nonce)
        .set_redirect_uri(Cow::Borrowed(request.redirect_uri))
        .add_scope(Scope::new(settings.scope.clone()))
        .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
    let own = [
        (
            "response_mode",
            (settings.response_mode == ResponseMode::FormPost).then_some("form_post"),
        ),
        ("audience", settings.audience.as_deref()),
        ("organization", settings.organization.as_deref()),
        ("max_age", max_age.as_deref()),
        ("prompt", prompt.as_deref()),
        // binds the code to the key, so that an intercepted code is useless (RFC 9449, section 10).
        ("dpop_jkt", dpop_key.map(DpopKey::thumbprint)),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some((name, value?)));
    for (name, value) in further(own, settings, request) {
        builder = builder.add_extra_param(name, value);
    }
    builder.url().0
}

/// A `prompt` that forces a prompt, plus the values that the login or the configuration requests.
fn asking(prompt: &str, settings: &ProviderSettings, request: &AuthorizationRequest<'_>) -> String {
    let mut all = request.extra.iter().chain(&settings.authorization_params);
    let requested = all.find(|(name, _)| name == "prompt");
    let requested = requested.map_or("", |(_, value)| value.as_str()).split(' ');
    let further = requested.filter(|word| !word.is_empty() && *word != "none" && *word != prompt);
    let words: Vec<&str> = [prompt].into_iter().chain(further).collect();
    words.join(" ")
}

/// The parameters of a request that `address` created for the endpoint.
pub(crate) fn parameters(address: &Url, endpoint: &AuthUrl) -> Vec<(String, String)> {
    let parameters = address.query_pairs().into_owned();
    parameters.skip(endpoint.url().query_pairs().count()).collect()
}

/// Parameters in addition to those that `openidconnect` sets. If a name repeats, the first one counts: our
/// `own`, then this login's, then configured ones.
fn further<'a>(
    own: impl Iterator<Item = (&'a str, &'a str)>,
    settings: &'a ProviderSettings,
    request: &AuthorizationRequest<'a>,
) -> Vec<(&'a str, &'a str)> {
    let others = request.extra.iter().chain(&settings.authorization_params);
    let others = others.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut parameters: Vec<(&str, &str)> = Vec::new();
    for (name, value) in own.chain(others.filter(|(name, _)| !PROTOCOL_PARAMETERS.contains(name))) {
        if !parameters.iter().any(|(known, _)| *known == name) {
            parameters.push((name, value));
        }
    }
    // contradictory: a new authentication needs a prompt
    if parameters.contains(&("max_age", "0")) {
        parameters.retain(|parameter| *parameter != ("prompt", "none"));
    }
    let resources = settings.resources.iter();
    parameters.extend(resources.map(|resource| ("resource", resource.as_str())));
    parameters
}
