//! What an edge on this very thread writes to its log: for tests on a runtime of one thread.

use std::io::Write;
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A changed file is looked at within ten seconds; only a failing test waits longer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The records written since it was made, until it is dropped.
pub(crate) struct Log {
    written: Written,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, record: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(record)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Who writes nowhere, on all threads: while a log is the only subscriber there is, `tracing` lets whichever thread comes first decide
/// whether a record is of interest, and a thread of another test, which has no log, decides that it never is.
static OF_OTHER_THREADS: Once = Once::new();

impl Log {
    pub(crate) fn begin() -> Self {
        OF_OTHER_THREADS.call_once(|| tracing_subscriber::registry().with(LevelFilter::INFO).init());
        let written = Written::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(written.clone())
            .finish();
        Self {
            written,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// Everything written so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.0.lock().unwrap()).into_owned()
    }

    /// Waits for a record that holds all of these.
    pub(crate) async fn wait_for(&self, texts: &[&str]) {
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            let written = self.text();
            if written
                .lines()
                .any(|record| texts.iter().all(|text| record.contains(text)))
            {
                return;
            }
            assert!(Instant::now() < deadline, "no record holds {texts:?}:\n{written}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
