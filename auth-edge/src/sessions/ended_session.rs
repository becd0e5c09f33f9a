//! What ending a session gave, for the sign-out at its provider. Invariant: no token of it gets into a log.

/// What ending a session gave.
#[derive(Clone)]
pub(crate) struct EndedSession {
    /// Whether there was a session.
    pub(crate) ended: bool,
    /// The ID token to show to the provider.
    pub(crate) id_token_hint: Option<String>,
    /// The provider it was made with.
    pub(crate) issuer: String,
}

impl std::fmt::Debug for EndedSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndedSession")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
