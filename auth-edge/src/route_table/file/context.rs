//! What a route table is read with.

/// What else is configured, as far as routes may ask for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteFileContext<'a> {
    /// Whether there are keys to sign assertions with.
    pub(crate) signs: bool,
    /// Whether sessions are bound to devices.
    pub(crate) binds: bool,
    /// The hosts of the edge, as rules name them; `None` leaves them unjudged.
    pub(crate) hosts: Option<&'a [String]>,
    /// The ids of the providers of `OIDC_PROVIDERS`; `None` leaves them unjudged.
    pub(crate) connections: Option<&'a [String]>,
    /// Where the edge itself answers, outside the paths that are always its own: sign-in and its callbacks, if they were
    /// moved.
    pub(crate) own_paths: &'a [String],
}
