//! The context for reading a route table.

/// The other settings that routes depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteFileContext {
    /// Whether keys for assertions are configured.
    pub(crate) signs: bool,
    /// Whether applications expect the headers of oauth2-proxy.
    pub(crate) aliases: bool,
    /// Whether sessions are bound to devices.
    pub(crate) binds: bool,
    /// The hosts of the edge, as rules name them. If empty, hosts are not checked.
    pub(crate) hosts: Vec<String>,
    /// The ids of the providers of `OIDC_PROVIDERS`.
    pub(crate) connections: Vec<String>,
    /// The edge's own paths besides the fixed ones: sign-in and its callbacks, if they were moved.
    pub(crate) own_paths: Vec<String>,
}
