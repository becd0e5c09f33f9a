//! The method that a request's path names, its deadline, and how its calls are recorded.

use std::time::Duration;

use crate::callers::Rpc;

/// Reads and single writes: a few round trips to the store.
const SHORT: Duration = Duration::from_secs(5);

/// Calls that may wait for the provider or touch many sessions.
const LONG: Duration = Duration::from_secs(30);

/// Bytes of a call: its stream, its task and a request of the usual size. An estimate.
const CALL_BYTES: usize = 8 * 1024;

/// Bytes of a call that reads many sessions: a page of the usual size. Few are in memory at once; the others
/// wait for their turn.
const LIST_BYTES: usize = 64 * 1024;

/// How calls of a method are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuditLevel {
    /// Always.
    Always,
    /// As a read, which an operator may leave out of the log.
    AsRead,
    /// For debugging: it says nothing about sessions.
    ForDebugging,
}

/// The method of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    /// Fully qualified, or `_OTHER`: clients can send any path, but labels must stay few.
    pub(super) name: &'static str,
    /// The method of our service; `None` for the framework's services and unknown paths.
    pub(super) rpc: Option<Rpc>,
    /// The deadline of a call if the caller sets none.
    pub(super) deadline: Duration,
    pub(super) audit_level: AuditLevel,
    /// Bytes of a running call, without its answer.
    pub(super) bytes: usize,
}

/// The services next to our own, open to every verified client.
const OPEN: [&str; 4] = [
    "grpc.health.v1.Health/Check",
    "grpc.health.v1.Health/Watch",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// The name of every other method (OpenTelemetry semantic conventions for RPC).
const OTHER: &str = "_OTHER";

impl Method {
    /// The method that a path names.
    pub(super) fn of(path: &str) -> Self {
        if let Some(rpc) = Rpc::of_path(path) {
            return Self::of_rpc(rpc);
        }
        let open = path
            .strip_prefix('/')
            .and_then(|path| OPEN.into_iter().find(|name| *name == path));
        Self {
            name: open.unwrap_or(OTHER),
            rpc: None,
            deadline: SHORT,
            audit_level: match open {
                Some(_) => AuditLevel::ForDebugging,
                None => AuditLevel::Always,
            },
            bytes: CALL_BYTES,
        }
    }

    /// The name of a call's span (OpenTelemetry semantic conventions for RPC, "Span name").
    pub(super) fn span_name(&self) -> &'static str {
        if self.name == OTHER { "grpc" } else { self.name }
    }

    /// Whether it is open to every verified client, even one that is not on the list of callers.
    pub(super) fn is_open(&self) -> bool {
        self.rpc.is_none() && self.name != OTHER
    }

    fn of_rpc(rpc: Rpc) -> Self {
        let (deadline, audit_level, bytes) = match rpc {
            Rpc::GetSession | Rpc::RollSession => (SHORT, AuditLevel::AsRead, CALL_BYTES),
            Rpc::BatchGetSessions | Rpc::ListSessions => (SHORT, AuditLevel::AsRead, LIST_BYTES),
            Rpc::SearchSessions | Rpc::ListEndings => (SHORT, AuditLevel::Always, LIST_BYTES),
            Rpc::BeginSignIn
            | Rpc::AbandonSignIn
            | Rpc::CreateSession
            | Rpc::UpdateSession
            | Rpc::BindSession
            | Rpc::RotateCookie
            | Rpc::EndSession
            | Rpc::ListProviders
            | Rpc::WatchActivity
            | Rpc::WatchSessions
            | Rpc::FollowSessions => (SHORT, AuditLevel::Always, CALL_BYTES),
            Rpc::GetAccessToken => (LONG, AuditLevel::Always, CALL_BYTES),
            Rpc::ReceiveSecurityEvent => (LONG, AuditLevel::Always, LIST_BYTES),
            Rpc::EndSessions | Rpc::EndFoundSessions => (LONG, AuditLevel::Always, LIST_BYTES),
        };
        Self {
            name: rpc.name(),
            rpc: Some(rpc),
            deadline,
            audit_level,
            bytes,
        }
    }
}
