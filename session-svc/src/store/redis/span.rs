//! The span of a command, where traces are recorded (OpenTelemetry semantic conventions, Redis client).
//!
//! Invariants: it names the command and the script, never a key or a value. Commands outside of any trace, such as those that look
//! whether the server is there, begin none.

use redis::{Arg, Cmd, RedisResult};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use chassis::traces::TARGET;

/// Waits for a command's answer in a span of its own.
pub(super) async fn traced<T>(
    command: impl FnOnce() -> Named,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    if !chassis::traces::are_recorded() || Span::current().is_none() {
        return answer.await;
    }
    let Named {
        operation,
        script,
        batch,
    } = command();
    let span = tracing::trace_span!(
        target: TARGET,
        "redis",
        otel.name = operation,
        otel.kind = "client",
        otel.status_code = Empty,
        db.system.name = "redis",
        db.operation.name = operation,
        db.operation.batch.size = batch,
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

/// What a span is named by.
pub(super) struct Named {
    operation: String,
    script: Option<&'static str>,
    /// How many commands go in one round trip, if there are several.
    batch: Option<i64>,
}

impl Named {
    pub(super) fn by(command: &Cmd, script: Option<&'static str>) -> Self {
        let word = match command.args_iter().next() {
            Some(Arg::Simple(word)) => String::from_utf8_lossy(word).to_ascii_uppercase(),
            _ => String::new(),
        };
        Self {
            operation: word,
            script,
            batch: None,
        }
    }

    /// Several commands in one round trip.
    pub(super) fn batch(size: usize) -> Self {
        Self {
            operation: "PIPELINE".to_owned(),
            script: None,
            batch: i64::try_from(size).ok(),
        }
    }
}
