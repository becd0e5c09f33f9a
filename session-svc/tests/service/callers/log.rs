//! What the services of a test write to their log: they run on its thread.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Every record since the first call of `log`, one JSON object a line.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, record: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(record)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The log of this thread, kept from the first call on.
pub(crate) fn log() -> Log {
    thread_local! {
        static LOG: (Log, DefaultGuard) = begun();
    }
    LOG.with(|(log, _)| log.clone())
}

fn begun() -> (Log, DefaultGuard) {
    let log = Log::default();
    let records = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_writer(log.clone());
    let subscriber = tracing_subscriber::registry()
        .with(EnvFilter::new(format!("info,{}=trace", chassis::traces::TARGET)))
        .with(records)
        .with(super::traces::layer());
    (log, subscriber.set_default())
}

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The records that match, in their order.
    pub(crate) fn records(&self, matches: impl Fn(&Value) -> bool) -> Vec<Value> {
        let text = self.text();
        let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
        records.filter(|record| matches(record)).collect()
    }

    /// Waits for this number of matching records.
    pub(crate) async fn wait_for(&self, count: usize, matches: impl Fn(&Value) -> bool) -> Vec<Value> {
        super::support::within(async {
            loop {
                let records = self.records(&matches);
                if records.len() >= count {
                    return records;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }
}
