//! The authorization request (OpenID Connect Core 3.1.2.1, RFC 7636, RFC 9126).

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
