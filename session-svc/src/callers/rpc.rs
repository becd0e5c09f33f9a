//! The methods of `session.v1.SessionService` and `session.v1.OperatorSessionService` as values.

named! {
    all;
    /// A method, by its fully qualified name (OpenTelemetry semantic conventions for RPC, `rpc.method`), in
    /// the order of the services' definitions.
    pub enum Rpc {
        /// Claims a sign-in attempt.
        BeginSignIn => "session.v1.SessionService/BeginSignIn",
        /// Abandons a sign-in attempt.
        AbandonSignIn => "session.v1.SessionService/AbandonSignIn",
        /// Creates a session.
        CreateSession => "session.v1.SessionService/CreateSession",
        /// Reads a session.
        GetSession => "session.v1.SessionService/GetSession",
        /// Reads several sessions.
        BatchGetSessions => "session.v1.SessionService/BatchGetSessions",
        /// Reads and extends a session.
        RollSession => "session.v1.SessionService/RollSession",
        /// Replaces claims or attributes.
        UpdateSession => "session.v1.SessionService/UpdateSession",
        /// Binds a session to a key.
        BindSession => "session.v1.SessionService/BindSession",
        /// Judges a generation of a session's cookie.
        RotateCookie => "session.v1.SessionService/RotateCookie",
        /// Returns an access token.
        GetAccessToken => "session.v1.SessionService/GetAccessToken",
        /// Ends a session.
        EndSession => "session.v1.SessionService/EndSession",
        /// Ends all sessions of a user.
        EndSessions => "session.v1.SessionService/EndSessions",
        /// Receives a security event.
        ReceiveSecurityEvent => "session.v1.SessionService/ReceiveSecurityEvent",
        /// Lists the sessions of a user.
        ListSessions => "session.v1.SessionService/ListSessions",
        /// Reports events of sessions.
        WatchSessions => "session.v1.SessionService/WatchSessions",
        /// Reports events of sessions, and answers how far the stream has come.
        FollowSessions => "session.v1.SessionService/FollowSessions",
        /// Lists the providers.
        ListProviders => "session.v1.OperatorSessionService/ListProviders",
        /// Finds sessions.
        SearchSessions => "session.v1.OperatorSessionService/SearchSessions",
        /// Ends the sessions of a filter.
        EndFoundSessions => "session.v1.OperatorSessionService/EndFoundSessions",
        /// Lists why a user's sessions ended.
        ListEndings => "session.v1.OperatorSessionService/ListEndings",
        /// Reports what happens to a provider's sessions.
        WatchActivity => "session.v1.OperatorSessionService/WatchActivity",
    }
}

impl Rpc {
    /// The method whose right also allows this one: a method with the same effect needs no right of its own.
    #[must_use]
    pub const fn right(self) -> Self {
        match self {
            Self::BatchGetSessions => Self::GetSession,
            Self::FollowSessions => Self::WatchSessions,
            Self::ListProviders => Self::SearchSessions,
            other => other,
        }
    }

    /// Whether it is a method for operators: it reaches the sessions of all people, so `"*"` does not include it.
    #[must_use]
    pub fn is_for_operators(self) -> bool {
        self.name().starts_with("session.v1.OperatorSessionService/")
    }

    /// The name within the service.
    #[must_use]
    pub fn method_name(self) -> &'static str {
        self.name().rsplit('/').next().unwrap_or_default()
    }

    /// The method of this name within the service.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rpc| rpc.method_name() == name)
    }

    /// The method that a request's path names.
    #[must_use]
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = path.strip_prefix('/')?;
        Self::ALL.iter().copied().find(|rpc| rpc.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn every_method_of_the_service_is_here() {
        let descriptors = FileDescriptorSet::decode(session_proto::DESCRIPTORS).unwrap();
        let services = || descriptors.file.iter().flat_map(|file| &file.service);
        let methods = ["SessionService", "OperatorSessionService"]
            .into_iter()
            .flat_map(|name| &services().find(|service| service.name() == name).unwrap().method);
        let defined: Vec<&str> = methods.map(|method| method.name()).collect();
        let known: Vec<&str> = Rpc::ALL.iter().map(|rpc| rpc.method_name()).collect();
        assert_eq!(known, defined);
    }

    #[test]
    fn a_method_is_found_by_its_exact_path_alone() {
        assert_eq!(
            Rpc::of_path("/session.v1.SessionService/GetSession"),
            Some(Rpc::GetSession)
        );
        for other in [
            "/session.v1.SessionService/getsession",
            "/session.v1.SessionService/GetSession/",
            "session.v1.SessionService/GetSession",
            "/session.v1.BrowserSessionService/GetSession",
            "/session.v1.SessionService/",
        ] {
            assert_eq!(Rpc::of_path(other), None, "{other}");
        }
    }
}
