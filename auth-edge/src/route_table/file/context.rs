//! What a route table is read with.

/// What else is configured, as far as routes may ask for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteFileContext {
    /// Whether there are keys to sign assertions with.
    pub(crate) signs: bool,
    /// Whether sessions are bound to devices.
    pub(crate) binds: bool,
    /// The hosts of the edge, as rules name them; none leaves them unjudged.
    pub(crate) hosts: Vec<String>,
    /// The ids of the providers of `OIDC_PROVIDERS`.
    pub(crate) connections: Vec<String>,
    /// Where the edge itself answers, outside the paths that are always its own: sign-in and its callbacks, if they were
    /// moved.
    pub(crate) own_paths: Vec<String>,
}
