//! The methods of `session.v1.SessionService` as values.

named! {
    all;
    /// A method, by its fully qualified name (OpenTelemetry semantic conventions for RPC, `rpc.method`), in
    /// the order of the service's definition.
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
    }
}

impl Rpc {
    /// The method whose right also allows this one: a method with the same effect needs no right of its own.
    #[must_use]
    pub const fn right(self) -> Self {
        match self {
            Self::BatchGetSessions => Self::GetSession,
            Self::FollowSessions => Self::WatchSessions,
            other => other,
        }
    }

    /// The name within the service.
    #[must_use]
    pub fn method_name(self) -> &'static str {
        self.name().trim_start_matches("session.v1.SessionService/")
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
        let services = descriptors.file.iter().flat_map(|file| &file.service);
        let service = services
            .into_iter()
            .find(|service| service.name() == "SessionService")
            .unwrap();
        let defined: Vec<&str> = service.method.iter().map(|method| method.name()).collect();
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
