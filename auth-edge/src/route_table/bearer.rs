//! What a rule requires of a client that shows an access token of its own (RFC 6750, RFC 9449) in the place of a session.

/// When the provider is asked about a token (RFC 7662).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Introspection {
    /// Never: only JWT access tokens pass.
    #[default]
    Never,
    /// For tokens that are no JWT.
    OpaqueTokens,
    /// For every token, so that a revocation counts before the token has expired.
    Always,
}

/// What `[route.bearer]` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BearerRule {
    /// What `aud` has to name; without it the address of the route, or the URL requested.
    pub(crate) audience: Option<String>,
    /// Clients whose tokens pass without an audience.
    pub(crate) clients: Vec<String>,
    /// Scopes the token has to carry, those of the rule itself among them.
    pub(crate) scopes: Vec<String>,
    /// Whether only tokens that are bound to a key pass.
    pub(crate) dpop_required: bool,
    /// When the provider is asked.
    pub(crate) introspection: Introspection,
    /// Whether the client's own `Authorization` goes on to the upstream.
    pub(crate) pass_authorization: bool,
    /// Whether a token passes that `authorization_details` narrow, which the edge ignores (RFC 9396).
    pub(crate) ignore_authorization_details: bool,
}
