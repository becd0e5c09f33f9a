//! A rule's requirements for clients with an access token (RFC 6750, RFC 9449) in place of a session.

/// When the edge introspects a token at the provider (RFC 7662).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Introspection {
    /// Never: only JWT access tokens pass.
    #[default]
    Never,
    /// For tokens that are not JWTs.
    OpaqueTokens,
    /// For every token, so that a revocation takes effect before the token expires.
    Always,
}

/// The table `[route.bearer]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BearerRule {
    /// The required `aud`; without it the address of the route, or the requested URL.
    pub(crate) audience: Option<String>,
    /// Clients whose tokens pass without an audience.
    pub(crate) clients: Vec<String>,
    /// The required scopes of a token, including those of the rule itself.
    pub(crate) scopes: Vec<String>,
    /// Whether only key-bound tokens pass.
    pub(crate) dpop_required: bool,
    /// When the edge introspects a token.
    pub(crate) introspection: Introspection,
    /// Whether the client's own `Authorization` is forwarded to the upstream.
    pub(crate) pass_authorization: bool,
    /// Whether a token with `authorization_details` passes; the edge ignores these limits (RFC 9396).
    pub(crate) ignore_authorization_details: bool,
}
