//! The methods of `session.v1.SessionService` as values.

use std::fmt;

/// What the path of every method begins with.
const SERVICE_PATH: &str = "/session.v1.SessionService/";

macro_rules! rpcs {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// A method.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rpc { $($(#[$doc])* $name),+ }

        impl Rpc {
            /// All of them, in the order of the service's definition.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name within the service.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// The fully qualified name (OpenTelemetry semantic conventions for RPC, `rpc.method`).
            #[must_use]
            pub const fn full_name(self) -> &'static str {
                match self { $(Self::$name => concat!("session.v1.SessionService/", stringify!($name))),+ }
            }
        }
    };
}

rpcs! {
    /// Claims a sign-in.
    BeginSignIn,
    /// Gives a sign-in up.
    AbandonSignIn,
    /// Begins a session.
    CreateSession,
    /// Reads a session.
    GetSession,
    /// Reads several sessions.
    BatchGetSessions,
    /// Reads and extends a session.
    RollSession,
    /// Replaces claims or attributes.
    UpdateSession,
    /// Binds a session to a key.
    BindSession,
    /// Judges a generation of a session's cookie.
    RotateCookie,
    /// Hands out an access token.
    GetAccessToken,
    /// Ends a session.
    EndSession,
    /// Ends all sessions of a person.
    EndSessions,
    /// Takes a security event.
    ReceiveSecurityEvent,
    /// Lists the sessions of a person.
    ListSessions,
    /// Tells what happens to sessions.
    WatchSessions,
    /// The same, with answers to how far it has come.
    FollowSessions,
}

impl Rpc {
    /// The method whose right a call of this one needs: what gives the same needs no right of its own.
    #[must_use]
    pub const fn right(self) -> Self {
        match self {
            Self::BatchGetSessions => Self::GetSession,
            Self::FollowSessions => Self::WatchSessions,
            other => other,
        }
    }

    /// The method of this name within the service.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rpc| rpc.name() == name)
    }

    /// The method a request's path names.
    #[must_use]
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        Self::named(path.strip_prefix(SERVICE_PATH)?)
    }
}

impl fmt::Display for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
        let known: Vec<&str> = Rpc::ALL.iter().map(|rpc| rpc.name()).collect();
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
