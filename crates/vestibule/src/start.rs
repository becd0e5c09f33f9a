//! Runs both services in one process.

use std::pin::pin;

use chassis::metrics::nested;
use chassis::runtime::Runtime;
use session_svc::start::StartError as SessionStartError;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::settings::Settings;

/// Why the program cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The edge.
    #[error(transparent)]
    Edge(#[from] auth_edge::start::StartError),
    /// The session service.
    #[error(transparent)]
    Sessions(#[from] SessionStartError),
    /// The metrics.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
}

/// Runs until shutdown is requested. The session service stops after the edge, which needs it until its last answer.
pub(crate) async fn run(settings: Settings, runtime: Runtime) -> Result<(), StartError> {
    let edge_stopped = CancellationToken::new();
    let inner = Runtime {
        shutdown: edge_stopped.clone(),
        // Both services have metrics of the same name.
        metrics: nested(&runtime.metrics, "service", "session-svc")?,
        ..runtime.clone()
    };
    let (sender, connect) = oneshot::channel();
    let mut sessions = pin!(session_svc::start::run_in_memory(
        settings.sessions,
        inner,
        sender
    ));
    let connect = tokio::select! {
        Ok(connect) = connect => connect,
        ended = &mut sessions => return Ok(ended?),
        // The session service may still wait for Vault.
        () = runtime.shutdown.cancelled() => return Ok(()),
    };
    let mut edge = settings.edge;
    edge.session_service.in_memory = Some(connect);
    let edge = async {
        let ended = auth_edge::start::run(edge, runtime).await;
        edge_stopped.cancel();
        ended
    };
    let (edge, sessions) = tokio::join!(edge, sessions);
    edge?;
    Ok(sessions?)
}
