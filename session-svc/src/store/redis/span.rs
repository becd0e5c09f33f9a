//! The span of a command, if traces are recorded (OpenTelemetry semantic conventions, Redis client).
//!
//! Invariants: it names the command and the script, never a key or a value. Commands outside of a trace, such
//! as health checks, begin no span.

use redis::{Arg, Cmd, RedisResult};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use chassis::traces::TARGET;

/// Waits for a command's answer in its own span; `script` is the script that the command runs.
pub(super) async fn traced<T>(
    command: &Cmd,
    script: Option<&'static str>,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    if !chassis::traces::are_recorded() || Span::current().is_none() {
        return answer.await;
    }
    let operation = match command.args_iter().next() {
        Some(Arg::Simple(word)) => String::from_utf8_lossy(word).to_ascii_uppercase(),
        _ => String::new(),
    };
    let span = tracing::trace_span!(
        target: TARGET,
        "redis",
        otel.name = operation,
        otel.kind = "client",
        otel.status_code = Empty,
        db.system.name = "redis",
        db.operation.name = operation,
        db.stored_procedure.name = script,
        error.type = Empty,
    );
    let answer = answer.instrument(span.clone()).await;
    if let Err(error) = &answer {
        let reason = error.code().unwrap_or(error.category());
        tracing::record_all!(span, error.type = reason, otel.status_code = "ERROR");
    }
    answer
}
