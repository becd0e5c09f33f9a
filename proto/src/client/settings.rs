//! The settings of a client.

use std::error::Error;
use std::fmt::{Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::DuplexStream;
use tonic::metadata::MetadataMap;

use super::resolve::{Resolve, SystemResolver};
use super::tls::ClientTls;

/// Adds metadata to every call, such as the trace context (`traceparent`, `tracestate`; W3C Trace Context).
pub type Annotate = Arc<dyn Fn(&mut MetadataMap) + Send + Sync>;

/// Called when changed certificate files were loaded or rejected.
pub type OnRenewal = Arc<dyn Fn(Result<(), &(dyn Error + 'static)>) + Send + Sync>;

/// Opens connections to a session service in the same process, each on the current runtime.
#[derive(Clone)]
pub struct ConnectInMemory(Arc<dyn Fn() -> DuplexStream + Send + Sync>);

impl ConnectInMemory {
    /// Connects by calling `connect`.
    pub fn new(connect: impl Fn() -> DuplexStream + Send + Sync + 'static) -> Self {
        Self(Arc::new(connect))
    }

    pub(super) fn connect(&self) -> DuplexStream {
        (self.0)()
    }
}

impl Debug for ConnectInMemory {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConnectInMemory")
    }
}

/// Where the session service is and how to connect.
#[derive(Clone)]
pub struct ClientSettings {
    /// `http://host:port` or `https://host:port`, one or more. Every host is resolved regularly.
    pub addresses: Vec<String>,
    /// How long a call may take, retries included. A token request may take four times as long.
    pub deadline: Duration,
    /// How often names are resolved and certificate files read.
    pub resolve_interval: Duration,
    /// Certificates, for `https` addresses.
    pub tls: Option<ClientTls>,
    /// Called after certificate files changed. The client also logs it.
    pub on_renewal: Option<OnRenewal>,
    /// Adds metadata to every call.
    pub annotate: Option<Annotate>,
    /// The age of a watch's state at which the watch is lost. The client requests three heartbeats in that time.
    pub watch_silence: Duration,
    /// Turns names into addresses.
    pub resolver: Arc<dyn Resolve>,
    /// Replaces TCP connections to `addresses`, which then only name the service.
    pub in_memory: Option<ConnectInMemory>,
}

impl ClientSettings {
    /// Settings for a service at `addresses` with the defaults: 5 s a call, names resolved every 5 s by the
    /// operating system, a watch lost when its state is 1 s old, no TLS material.
    #[must_use]
    pub fn new(addresses: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            addresses: addresses.into_iter().map(Into::into).collect(),
            deadline: Duration::from_secs(5),
            resolve_interval: Duration::from_secs(5),
            tls: None,
            on_renewal: None,
            annotate: None,
            watch_silence: Duration::from_secs(1),
            resolver: Arc::new(SystemResolver),
            in_memory: None,
        }
    }
}

impl Debug for ClientSettings {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSettings")
            .field("addresses", &self.addresses)
            .field("deadline", &self.deadline)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Why no client can be built.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSettings {
    /// There is no address.
    #[error("no address of the session service is given")]
    NoAddress,
    /// An address is not a URL of the right form.
    #[error("{0:?} is not an address of the form http://host:port or https://host:port")]
    Address(String),
    /// An `https` address without certificates to trust.
    #[error("{0:?} needs the certificates of an authority to trust")]
    NobodyToTrust(String),
    /// The certificates cannot be used.
    #[error("the certificates for the session service cannot be used")]
    Tls(#[source] tonic::transport::Error),
}
