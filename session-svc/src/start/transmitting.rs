//! The transmitter of signals beside the session API: a listener of its own, and the tasks that tell receivers.

use std::sync::Arc;
use std::time::Duration;

use chassis::memory;
use chassis::runtime::Runtime;
use chassis::serve::{self, ListenerRole, Stopping};
use chassis::tls::{CertificateMetrics, ServerTls};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::StartError;
use crate::keeper::Keeper;
use crate::sessions::ports::SignalOutbox;
use crate::transmitter::{Receivers, SignalTransmitter, SignalTransmitterSettings};

/// Who is told of endings, and where they come to us.
pub struct TransmitterParts {
    /// Where receivers manage their streams and fetch events.
    pub listener: TcpListener,
    /// TLS on it.
    pub tls: Option<ServerTls>,
    /// Whom we tell.
    pub receivers: Receivers,
}

impl TransmitterParts {
    /// Listens where the settings say.
    ///
    /// # Errors
    /// The address is taken, or the certificates cannot be used.
    pub(super) async fn open(
        settings: SignalTransmitterSettings,
        certificates: &CertificateMetrics,
    ) -> Result<Self, StartError> {
        let tls = match settings.tls {
            Some(files) => {
                let tls = ServerTls::load(&files)?.measured(certificates);
                tls.follow(files);
                Some(tls)
            }
            None => None,
        };
        Ok(Self {
            listener: serve::bind(settings.listen, "SESSION_SIGNALS_LISTEN").await?,
            tls,
            receivers: settings.receivers,
        })
    }
}

/// The transmitter at work.
pub(super) struct Transmitting {
    transmitter: SignalTransmitter,
    serving: JoinHandle<()>,
    delivering: TaskTracker,
}

impl Transmitting {
    /// Begins to answer receivers and to tell them.
    ///
    /// # Errors
    /// It measures already.
    pub(super) fn begin(
        parts: TransmitterParts,
        keeper: &Keeper,
        runtime: &Runtime,
    ) -> Result<Self, prometheus::Error> {
        let TransmitterParts {
            listener,
            tls,
            receivers,
        } = parts;
        let shutdown = runtime.shutdown.clone();
        let transmitter =
            SignalTransmitter::new(receivers, keeper.clone(), &runtime.metrics, shutdown.clone())?;
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "answering receivers of signals");
        }
        let memory = memory::available().map(|memory| memory.bytes);
        let router = transmitter.router();
        let serving = serve::serve_each(
            runtime.workers.clone(),
            listener,
            move || router.clone(),
            tls,
            serve::Limits::beside(ListenerRole::Side, memory),
            Stopping::on(shutdown),
        );
        Ok(Self {
            serving: tokio::spawn(serving),
            delivering: transmitter.deliver(&runtime.readiness),
            transmitter,
        })
    }

    /// Where use cases note what receivers are to be told.
    pub(super) fn outbox(&self) -> Arc<dyn SignalOutbox> {
        self.transmitter.outbox()
    }

    /// Waits until what was begun is finished, at most `limit`; what was not told stays noted.
    pub(super) async fn finish(self, limit: Duration) {
        let finished = async {
            let _served = self.serving.await;
            self.delivering.wait().await;
        };
        if tokio::time::timeout(limit, finished).await.is_err() {
            tracing::warn!("receivers of signals did not answer in time and are left to another replica");
        }
    }
}
