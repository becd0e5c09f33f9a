//! Records as JSON: one object a line, with time, level, fields and target.
//!
//! Invariants
//! - An error value (`error = &error as &dyn Error`) becomes two fields: `error` has its message, and
//!   `error.sources` lists its causes, outermost first. The plain format has the same fields.
//! - A record is always one line.
//! - A record written during a request has the request's ID, even if a library writes the record.
//!
//! This format omits spans on purpose: a record does not repeat the fields of its spans.

use std::error::Error;
use std::fmt;
use std::iter;

use serde::ser::{SerializeMap, Serializer as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::queue::LogQueue;
use crate::audit::{self, Origin, schema};
use crate::clock::timestamp;

/// Most causes written for one error. Usual chains have four or five; a faulty chain may be endless.
const MAX_SOURCES: usize = 16;

/// Initial size of a record's buffer in bytes. Most records fit.
const USUAL_BYTES: usize = 512;

/// The field with the request's ID.
const REQUEST_ID: &str = "request_id";

/// Writes records as JSON.
pub(super) struct Json {
    /// The service name in audit records.
    pub(super) service: &'static str,
    /// The records that this layer writes. It skips all others before it formats them.
    pub(super) records: Records,
    /// The queue that receives the records.
    pub(super) queue: LogQueue,
}

/// The records that a layer selects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Records {
    /// All of them.
    All,
    /// Only audit records.
    Audit,
    /// All but audit records.
    Logs,
}

impl<S: Subscriber> Layer<S> for Json {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = match (event.metadata().target(), self.records) {
            (audit::TARGET, Records::Logs) => return,
            (audit::TARGET, _) => audit_line(self.service, &timestamp(), event),
            (_, Records::Audit) => return,
            _ => line(&timestamp(), event),
        };
        if let Ok(mut line) = line {
            line.push(b'\n');
            self.queue.add(&line, event.metadata());
        }
    }
}

/// Formats an audit record. It has no message: the message would repeat the event's name.
fn audit_line(service: &str, time: &str, event: &Event<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = Vec::with_capacity(USUAL_BYTES);
    let mut serializer = serde_json::Serializer::new(&mut line);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("target", "audit")?;
    map.serialize_entry("schema", schema::VERSION)?;
    map.serialize_entry("service", service)?;
    map.serialize_entry("timestamp", time)?;
    recorded(map, event, false)?.end()?;
    Ok(line)
}

fn line(time: &str, event: &Event<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = Vec::with_capacity(USUAL_BYTES);
    let mut serializer = serde_json::Serializer::new(&mut line);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("timestamp", time)?;
    map.serialize_entry("level", event.metadata().level().as_str())?;
    let mut map = recorded(map, event, true)?;
    if event.metadata().fields().field(REQUEST_ID).is_none()
        && let Some(origin) = Origin::current()
    {
        map.serialize_entry(REQUEST_ID, origin.request_id.as_str())?;
    }
    map.serialize_entry("target", event.metadata().target())?;
    map.end()?;
    Ok(line)
}

/// Adds the event's fields to the object, and the event's message only if `has_message`.
fn recorded<M: SerializeMap>(map: M, event: &Event<'_>, has_message: bool) -> Result<M, M::Error> {
    let mut fields = FieldWriter {
        map,
        has_message,
        failed: None,
    };
    event.record(&mut fields);
    match fields.failed {
        Some(error) => Err(error),
        None => Ok(fields.map),
    }
}

/// Writes the fields of a record in the event's order.
struct FieldWriter<M: SerializeMap> {
    map: M,
    has_message: bool,
    /// The first error, kept here because the methods of `Visit` cannot return errors.
    failed: Option<M::Error>,
}

impl<M: SerializeMap> FieldWriter<M> {
    fn add(&mut self, name: &str, value: &(impl serde::Serialize + ?Sized)) {
        if self.failed.is_none() {
            self.failed = self.map.serialize_entry(name, value).err();
        }
    }
}

impl<M: SerializeMap> Visit for FieldWriter<M> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field.name(), &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field.name(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field.name(), &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field.name(), &value.to_string());
        let sources = iter::successors(value.source(), |source| (*source).source());
        let sources: Vec<String> = sources.take(MAX_SOURCES).map(ToString::to_string).collect();
        if !sources.is_empty() {
            self.add(&format!("{}.sources", field.name()), &sources);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !self.has_message && field.name() == "message" {
            return;
        }
        self.add(field.name().trim_start_matches("r#"), &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use prometheus::Registry;
    use serde_json::{Value, json};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::logs::UnwrittenRecords;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct ChainedError(&'static str, #[source] Option<Box<ChainedError>>);

    #[derive(Clone, Default)]
    struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for CapturedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(log: impl FnOnce()) -> Value {
        let written = CapturedOutput::default();
        let unwritten = UnwrittenRecords::new(&Registry::new()).unwrap();
        let queue = LogQueue::start("logs", written.clone(), unwritten).unwrap();
        let layer = Json {
            service: "probe",
            records: Records::All,
            queue: queue.clone(),
        };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        assert!(queue.flush(Duration::from_secs(60)));
        let bytes = written.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_error_is_logged_with_every_cause() {
        let algorithm = ChainedError("the token is signed with another algorithm", None);
        let error = ChainedError("the ID token was refused", Some(Box::new(algorithm)));
        let record = logged(|| {
            tracing::warn!(
                error = &error as &dyn Error,
                reason = "id_token",
                "callback refused"
            )
        });
        assert_eq!(record["error"], "the ID token was refused");
        assert_eq!(
            record["error.sources"],
            json!(["the token is signed with another algorithm"])
        );
        assert_eq!(
            (&record["level"], &record["message"], &record["reason"]),
            (&json!("WARN"), &json!("callback refused"), &json!("id_token"))
        );
        let lone = ChainedError("alone", None);
        let record = logged(|| tracing::error!(error = &lone as &dyn Error, "failed"));
        assert_eq!(record.get("error.sources"), None);
    }

    #[test]
    fn an_audit_record_names_its_schema_and_service_and_has_no_message() {
        let record = logged(|| {
            audit::AuditRecord::new(audit::Event::SignOut, audit::Outcome::Success).write();
        });
        for (field, value) in [
            ("target", "audit"),
            ("schema", schema::VERSION),
            ("service", "probe"),
            ("event", "sign_out"),
        ] {
            assert_eq!(record[field], value, "{record}");
        }
        assert_eq!((record.get("message"), record.get("level")), (None, None));
    }

    #[tokio::test]
    async fn what_is_recorded_while_a_request_is_answered_names_it_once() {
        let request_id = crate::audit::RequestId::of([7; 16]);
        let origin = Origin {
            request_id,
            caller: None,
            operator: None,
        };
        let (unnamed, named) = origin
            .scope(async {
                (
                    logged(|| tracing::warn!("an upstream cannot be reached")),
                    logged(|| tracing::info!(request_id = "another", "request")),
                )
            })
            .await;
        assert_eq!(unnamed["request_id"], request_id.as_str());
        assert_eq!(named["request_id"], "another");
        assert_eq!(logged(|| tracing::warn!("alone")).get("request_id"), None);
    }

    #[test]
    fn values_keep_their_types_and_stay_within_their_record() {
        let record = logged(|| {
            tracing::info!(
                count = 3_u64,
                less = -3_i64,
                share = 0.5,
                on = true,
                text = "a\"\n{\"level\":\"ERROR\"}",
                shown = %"x\ny",
                "done"
            );
        });
        assert_eq!(
            (&record["count"], &record["less"], &record["share"], &record["on"]),
            (&json!(3), &json!(-3), &json!(0.5), &json!(true))
        );
        assert_eq!(record["text"], "a\"\n{\"level\":\"ERROR\"}");
        assert_eq!(
            (&record["shown"], &record["level"]),
            (&json!("x\ny"), &json!("INFO"))
        );
        assert!(record["timestamp"].as_str().unwrap().ends_with('Z'));
        assert!(record["target"].as_str().unwrap().starts_with("chassis::"));
    }
}
