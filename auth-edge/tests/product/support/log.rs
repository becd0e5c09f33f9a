//! The log of an edge on this thread, for tests on a single-threaded runtime.

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// A changed file is read within ten seconds; only a failing test waits longer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The records written from its creation until it is dropped.
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

/// Warnings of all threads without their own log. It exists as soon as any log does. With a single
/// subscriber, `tracing` lets the first thread decide whether a record matters. A thread of another test,
/// without a log, would disable the record for all.
static WARNINGS: LazyLock<Written> = LazyLock::new(|| {
    let written = Written::default();
    tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_ansi(false)
        .with_writer(written.clone())
        .init();
    written
});

/// Later warnings of threads without a log, including those of other tests.
pub(crate) struct Warnings(&'static Written);

impl Warnings {
    pub(crate) fn listen() -> Self {
        Self(&WARNINGS)
    }

    /// Whether one of them contains all of these words.
    pub(crate) fn have(&self, words: &[&str]) -> bool {
        self.0.has(words)
    }
}

impl Written {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    fn has(&self, words: &[&str]) -> bool {
        let text = self.text();
        text.lines()
            .any(|record| words.iter().all(|word| record.contains(word)))
    }
}

impl Log {
    pub(crate) fn begin() -> Self {
        LazyLock::force(&WARNINGS);
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
        self.written.text()
    }

    /// Waits for a record that contains all of these.
    pub(crate) async fn wait_for(&self, texts: &[&str]) {
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            if self.written.has(texts) {
                return;
            }
            let written = self.text();
            assert!(Instant::now() < deadline, "no record holds {texts:?}:\n{written}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
