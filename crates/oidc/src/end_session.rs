//! RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0 section 2).

/// What a logout tells the provider.
#[derive(Clone, Copy, Default)]
pub struct EndSessionRequest<'a> {
    /// The newest ID token of the session; it may have expired.
    pub id_token_hint: Option<&'a str>,
    /// Where the provider sends the browser afterwards.
    pub post_logout_redirect_uri: Option<&'a str>,
    /// Comes back with the browser.
    pub state: Option<&'a str>,
}
