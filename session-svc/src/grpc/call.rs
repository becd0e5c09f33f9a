//! One call: its caller, its deadline, and the sessions for its record.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName};
use chassis::audit::{Operator, Origin, RequestId};
use chassis::random;
use chassis::serve::{ByteBudget, PeerAddress};
use chassis::tls::PeerCertificate;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{arguments, deadline};
use crate::callers::Caller;
use crate::session::{Cause, Handle};
use crate::sessions::SessionsError;

/// The metadata that names the request a call belongs to; a batch names one for each of its reads.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// One call; clones refer to the same one.
#[derive(Clone, Default)]
pub(super) struct Call {
    pub(super) caller: Arc<Caller>,
    pub(super) peer: Option<SocketAddr>,
    /// The request it belongs to.
    pub(super) request: RequestId,
    /// Whether the caller named the request, and not this service.
    pub(super) names_request: bool,
    /// The timeout of the caller (gRPC over HTTP/2, `grpc-timeout`).
    pub(super) timeout: Option<Duration>,
    /// The deadline that follows from it.
    pub(super) deadline: Option<Instant>,
    /// Cancelled once the caller's certificate, if any, is no longer trusted.
    pub(super) disbelieved: Option<CancellationToken>,
    /// The memory that the service uses for the caller's connection.
    pub(super) waiting: ByteBudget,
    pub(super) notes: Arc<CallNotes>,
}

/// Facts about a call that are found while it is answered.
#[derive(Default)]
pub(super) struct CallNotes {
    /// The session it is about.
    pub(super) session: OnceLock<Handle>,
    /// The sessions a call for several is about.
    pub(super) batch: OnceLock<Vec<Handle>>,
    /// The cause and number of the sessions that it ended.
    pub(super) ended: OnceLock<(Cause, u32)>,
    /// Issuer and subject of the user it is about.
    pub(super) person: OnceLock<(String, String)>,
    /// The operator of a call for operators.
    pub(super) operator: OnceLock<Arc<Operator>>,
    /// The kind and value of an operator's filter.
    pub(super) filter: OnceLock<(&'static str, String)>,
    /// How many entries an operator's answer has.
    pub(super) found: OnceLock<u32>,
    /// It reads a user's data without the session's secret: by a handle or the user's name.
    pub(super) is_administrative: OnceLock<()>,
    /// The request IDs of a batch's reads, if there are several.
    requests: Option<String>,
}

impl Call {
    /// The call a request makes.
    pub(super) fn of(request: &Request) -> Self {
        let certificate = request.extensions().get::<PeerCertificate>();
        let timeout = deadline::timeout(request.headers());
        let named = request.headers().get(X_REQUEST_ID);
        let named = named.and_then(|id| RequestId::parse(id.as_bytes()));
        Self {
            caller: Arc::new(certificate.map_or_else(Caller::anonymous, Caller::of)),
            peer: request.extensions().get::<PeerAddress>().map(|peer| peer.0),
            // Without randomness other steps fail too, and report it.
            request: named.unwrap_or_else(|| RequestId::of(random::bytes().unwrap_or_default())),
            names_request: named.is_some(),
            timeout,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            disbelieved: certificate.map(|certificate| certificate.disbelieved.clone()),
            waiting: request
                .extensions()
                .get::<ByteBudget>()
                .cloned()
                .unwrap_or_default(),
            notes: Arc::new(CallNotes {
                requests: requests_of_batch(request.headers()),
                ..CallNotes::default()
            }),
        }
    }

    /// The origin for the records that are written while it is answered.
    pub(super) fn origin(&self) -> Origin {
        Origin {
            request_id: self.request,
            caller: self.caller.log_name().map(Arc::from),
            operator: self.notes.operator.get().cloned(),
        }
    }

    /// The call of a method, and its message.
    pub(super) fn with_message<T>(request: tonic::Request<T>) -> (Self, T) {
        let (_, mut extensions, message) = request.into_parts();
        (extensions.remove::<Self>().unwrap_or_default(), message)
    }

    /// The session the call is about.
    pub(super) fn is_about(&self, session: Handle) {
        let _ = self.notes.session.set(session);
    }

    /// The session of a well-formed request, noted for the record of the call.
    pub(super) fn note_session(
        &self,
        handle: Result<Handle, SessionsError>,
    ) -> Result<Handle, SessionsError> {
        handle.inspect(|handle| self.is_about(*handle))
    }

    /// The session of this ID, noted as well.
    pub(super) fn by_id(&self, session_id: &str) -> Result<Handle, SessionsError> {
        self.note_session(arguments::session_id("session_id", session_id).map(|id| id.handle()))
    }

    /// The user the call is about.
    pub(super) fn is_about_person(&self, issuer: &str, subject: &str) {
        let _ = self.notes.person.set((issuer.to_owned(), subject.to_owned()));
    }

    /// The request it belongs to, or those of the reads of a batch, separated by spaces.
    pub(super) fn requests(&self) -> &str {
        let several = self.notes.requests.as_deref();
        several.unwrap_or(self.request.as_str())
    }

    /// The sessions a call for several is about, separated by spaces.
    pub(super) fn batch(&self) -> Option<String> {
        let handles = self.notes.batch.get()?;
        let texts: Vec<String> = handles.iter().map(ToString::to_string).collect();
        Some(texts.join(" "))
    }
}

fn requests_of_batch(headers: &HeaderMap) -> Option<String> {
    let ids = headers.get_all(X_REQUEST_ID);
    ids.iter().nth(1)?;
    let ids = ids.iter().filter_map(|id| RequestId::parse(id.as_bytes()));
    let texts: Vec<String> = ids.map(|id| id.to_string()).collect();
    Some(texts.join(" "))
}
