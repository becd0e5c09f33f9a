//! One call: who makes it, how long it may take, and what its record will say about sessions.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::Request;
use chassis::serve::{ByteBudget, PeerAddress};
use chassis::tls::PeerCertificate;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::deadline;
use crate::callers::Caller;
use crate::session::{Cause, Handle};

/// One call; clones are of the same one.
#[derive(Clone, Default)]
pub(super) struct Call {
    pub(super) caller: Arc<Caller>,
    pub(super) peer: Option<SocketAddr>,
    /// The timeout of the caller (gRPC over HTTP/2, `grpc-timeout`).
    pub(super) timeout: Option<Duration>,
    /// When that is over.
    pub(super) deadline: Option<Instant>,
    /// Cancelled once the caller's certificate, if it showed one, is not believed any more.
    pub(super) disbelieved: Option<CancellationToken>,
    /// What the service keeps for the caller's connection.
    pub(super) waiting: ByteBudget,
    notes: Arc<Notes>,
}

#[derive(Default)]
struct Notes {
    session: OnceLock<Handle>,
    batch: OnceLock<Vec<Handle>>,
    ended: OnceLock<(Cause, u32)>,
}

impl Call {
    /// The call a request makes.
    pub(super) fn of(request: &Request) -> Self {
        let certificate = request.extensions().get::<PeerCertificate>();
        let timeout = deadline::timeout(request.headers());
        Self {
            caller: Arc::new(certificate.map_or_else(Caller::anonymous, Caller::of)),
            peer: request.extensions().get::<PeerAddress>().map(|peer| peer.0),
            timeout,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            disbelieved: certificate.map(|certificate| certificate.disbelieved.clone()),
            waiting: request
                .extensions()
                .get::<ByteBudget>()
                .cloned()
                .unwrap_or_default(),
            notes: Arc::default(),
        }
    }

    /// The call a method was called with, and its message.
    pub(super) fn with_message<T>(request: tonic::Request<T>) -> (Self, T) {
        let (_, mut extensions, message) = request.into_parts();
        (extensions.remove::<Self>().unwrap_or_default(), message)
    }

    /// The session the call is about.
    pub(super) fn is_about(&self, session: Handle) {
        let _ = self.notes.session.set(session);
    }

    /// The sessions a call for several is about.
    pub(super) fn is_about_all(&self, sessions: Vec<Handle>) {
        let _ = self.notes.batch.set(sessions);
    }

    /// The call ended so many sessions.
    pub(super) fn ended(&self, cause: Cause, count: u32) {
        let _ = self.notes.ended.set((cause, count));
    }

    /// The session the call is about, once it has been read from the request.
    pub(super) fn session(&self) -> Option<Handle> {
        self.notes.session.get().copied()
    }

    /// The sessions a call for several is about, separated by spaces.
    pub(super) fn batch(&self) -> Option<String> {
        let handles = self.notes.batch.get()?;
        let texts: Vec<String> = handles.iter().map(ToString::to_string).collect();
        Some(texts.join(" "))
    }

    /// Why and how many sessions ended, if the call ended any.
    pub(super) fn endings(&self) -> Option<(Cause, u32)> {
        self.notes.ended.get().copied()
    }
}
