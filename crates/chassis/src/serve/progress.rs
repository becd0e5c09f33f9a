//! The state of a connection: its protocol, whether bytes move, whether it has had a request.
//!
//! A client must send a request soon after it connects, and then regularly: without a request in flight a
//! connection is idle. hyper closes idle connections at a graceful shutdown, even if a request is in transit.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The start of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// The end of a request head (RFC 9112, section 2.1).
const HEAD_END: &[u8] = b"\r\n\r\n";

/// With this many bytes the protocol is certain: the length of the HTTP/2 preface (RFC 9113, section 3.4).
const PREFACE_BYTES: u64 = 24;

/// The state of a connection; clones share it.
#[derive(Clone)]
pub(super) struct ConnectionProgress {
    opened: Instant,
    state: Arc<ConnectionState>,
}

/// The flags of a connection, and the bytes it has moved.
#[derive(Default)]
pub(super) struct ConnectionState {
    /// Each answer is the connection's last.
    pub(super) is_last: Flag,
    /// A request was answered before its body was read; the body may still arrive.
    pub(super) leaves_body: Flag,
    had_request: Flag,
    begins_http2: Flag,
    speaks_http2: Flag,
    /// Whether the latest bytes end like a request head.
    at_head_end: AtomicBool,
    received: AtomicU64,
    sent: AtomicU64,
    /// Requests whose answer has not ended, and WebSockets.
    busy: AtomicUsize,
    /// Bytes of their headers.
    header_bytes: AtomicUsize,
    /// Milliseconds from `opened` to the end of the last request.
    idle_since_ms: AtomicU64,
    /// Cancelled to evict the connection in favour of another one.
    pub(super) evicted: CancellationToken,
}

/// A flag that is set once and never reset.
#[derive(Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for ConnectionProgress {
    fn default() -> Self {
        let (opened, state) = (Instant::now(), Arc::default());
        Self { opened, state }
    }
}

impl Deref for ConnectionProgress {
    type Target = ConnectionState;

    fn deref(&self) -> &ConnectionState {
        &self.state
    }
}

impl ConnectionProgress {
    /// A request was parsed: the protocol is known, even after a few bytes.
    pub(super) fn request_received(&self, version: hyper::Version) {
        self.had_request.set();
        if version == hyper::Version::HTTP_2 {
            self.speaks_http2.set();
        }
    }

    /// Records bytes from the client.
    pub(super) fn record_received(&self, bytes: &[u8]) {
        if self.received.load(Ordering::Relaxed) == 0 && bytes.starts_with(PREFACE) {
            self.begins_http2.set();
        }
        self.at_head_end
            .store(bytes.ends_with(HEAD_END), Ordering::Relaxed);
        add(&self.received, bytes.len());
    }

    /// Whether an idle HTTP/1.1 connection certainly received no part of a next request. The end of a head is the
    /// end of a whole request, which would be in flight. A later call returns false until bytes arrive.
    pub(super) fn take_head_end(&self) -> bool {
        let may_be_reused = self.had_request.is_set() && !self.is_last.is_set() && !self.begins_http2();
        may_be_reused && self.at_head_end.swap(false, Ordering::Relaxed)
    }

    /// Records this many bytes to the client.
    pub(super) fn record_sent(&self, bytes: usize) {
        add(&self.sent, bytes);
    }

    /// Whether the client speaks HTTP/2 or may be starting to.
    pub(super) fn begins_http2(&self) -> bool {
        self.begins_http2.is_set() || self.speaks_http2.is_set()
    }

    /// Counts a request with this many header bytes as in flight until the result is dropped.
    pub(super) fn begin(&self, header_bytes: usize) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.header_bytes.fetch_add(header_bytes, Ordering::Relaxed);
        Busy {
            progress: self.clone(),
            header_bytes,
        }
    }

    /// Header bytes of all requests in flight.
    pub(super) fn header_bytes(&self) -> usize {
        self.header_bytes.load(Ordering::Relaxed)
    }

    /// The connection is upgraded to another protocol, and ends with its socket.
    pub(super) fn switch(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// The start of the idle time; `None` while a request is in flight.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let since = Duration::from_millis(self.idle_since_ms.load(Ordering::Relaxed));
        (self.busy.load(Ordering::Relaxed) == 0).then(|| self.opened + since)
    }

    /// Whether the whole HTTP/2 preface has arrived.
    fn is_http2(&self) -> bool {
        self.begins_http2.is_set() && self.received.load(Ordering::Relaxed) >= PREFACE_BYTES
    }

    /// Bytes in both directions so far.
    fn moved(&self) -> u64 {
        self.received.load(Ordering::Relaxed) + self.sent.load(Ordering::Relaxed)
    }
}

/// A request in flight.
pub(super) struct Busy {
    progress: ConnectionProgress,
    header_bytes: usize,
}

impl Busy {
    /// Bytes sent to the client over this connection.
    pub(super) fn bytes_sent(&self) -> u64 {
        self.progress.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let progress = &self.progress;
        progress
            .header_bytes
            .fetch_sub(self.header_bytes, Ordering::Relaxed);
        let since = u64::try_from(progress.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        progress.idle_since_ms.store(since, Ordering::Relaxed);
        progress.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Resolves when no request arrived within `first`, or none was in flight for `idle`. With `keeps_http2`, HTTP/2
/// connections may stay idle forever. Returns whether there was a request.
pub(super) async fn unused(
    progress: &ConnectionProgress,
    first: Duration,
    idle: Duration,
    keeps_http2: bool,
) -> bool {
    tokio::time::sleep(first).await;
    if keeps_http2 && progress.is_http2() {
        return std::future::pending().await;
    }
    if !progress.had_request.is_set() {
        return false;
    }
    loop {
        let now = Instant::now();
        let until = progress.idle_since().unwrap_or(now) + idle;
        if until <= now {
            return true;
        }
        tokio::time::sleep_until(until).await;
    }
}

/// Resolves when the connection can end without losing a request. Over HTTP/2 that is at once, because GOAWAY
/// names the last served request. Otherwise after `quiet` without bytes, or `first` if no request came yet.
pub(super) async fn may_stop(progress: &ConnectionProgress, first: Duration, quiet: Duration) {
    while !progress.speaks_http2.is_set() && !progress.is_http2() {
        let moved = progress.moved();
        let had_request = progress.had_request.is_set();
        tokio::time::sleep(if had_request { quiet } else { first }).await;
        if progress.moved() == moved {
            return;
        }
    }
}

/// Adds without a locked instruction: only the connection's own task writes.
fn add(count: &AtomicU64, bytes: usize) {
    count.store(count.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use hyper::Version;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::super::byte_budget::ByteBudget;
    use super::super::connection_io::ConnectionIo;
    use super::*;

    const FIRST: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(75);

    /// When a connection that received `sent` is closed, if ever.
    async fn unused_after(sent: &[u8], version: Option<Version>, keeps_http2: bool) -> Option<Duration> {
        let (mut client, server) = tokio::io::duplex(64);
        let progress = ConnectionProgress::default();
        let mut server = ConnectionIo::over(server, progress.clone(), ByteBudget::default(), None);
        client.write_all(sent).await.unwrap();
        server.read_exact(&mut vec![0; sent.len()]).await.unwrap();
        if let Some(version) = version {
            progress.request_received(version);
            drop(progress.begin(0));
        }
        let began = Instant::now();
        let unused = unused(&progress, FIRST, IDLE, keeps_http2);
        let ended = tokio::time::timeout(Duration::from_secs(3_600), unused).await;
        ended.ok().map(|had_request| {
            assert_eq!(had_request, version.is_some());
            began.elapsed()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_given_up_without_a_first_request_and_without_another_one() {
        const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let incomplete: [&[u8]; 4] = [
            b"",
            b"PRI * HT",
            b"GET / HTTP/1.1\r\nhost: here\r\nx-slow: ",
            HTTP2,
        ];
        for sent in incomplete {
            assert_eq!(unused_after(sent, None, false).await, Some(FIRST));
            let kept = (sent != HTTP2).then_some(FIRST);
            assert_eq!(unused_after(sent, None, true).await, kept);
        }
        assert_eq!(
            unused_after(b"GET /", Some(Version::HTTP_11), false).await,
            Some(IDLE)
        );
        assert_eq!(
            unused_after(b"GET /", Some(Version::HTTP_11), true).await,
            Some(IDLE)
        );
        assert_eq!(
            unused_after(HTTP2, Some(Version::HTTP_2), false).await,
            Some(IDLE)
        );
        assert_eq!(unused_after(HTTP2, Some(Version::HTTP_2), true).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_request_in_flight_is_not_idle() {
        let progress = ConnectionProgress::default();
        progress.request_received(Version::HTTP_2);
        let (one, other) = (progress.begin(10), progress.begin(20));
        assert_eq!(progress.header_bytes(), 30);
        drop(one);
        let waiting = unused(&progress, FIRST, IDLE, false);
        assert!(tokio::time::timeout(10 * IDLE, waiting).await.is_err());
        drop(other);
        let began = Instant::now();
        unused(&progress, FIRST, IDLE, false).await;
        assert_eq!((began.elapsed(), progress.header_bytes()), (IDLE, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_stop_once_it_is_quiet_and_at_once_over_http2() {
        let (first, quiet) = (Duration::from_secs(5), Duration::from_secs(1));
        let stopped_after = async |progress: &ConnectionProgress| {
            let began = Instant::now();
            may_stop(progress, first, quiet).await;
            began.elapsed()
        };
        let (mut client, server) = tokio::io::duplex(64);
        let progress = ConnectionProgress::default();
        let mut server = ConnectionIo::over(server, progress.clone(), ByteBudget::default(), None);
        assert_eq!(stopped_after(&progress).await, first);

        progress.request_received(Version::HTTP_11);
        assert_eq!(stopped_after(&progress).await, quiet);
        let moving = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(900)).await;
                server.write_all(b"x").await.unwrap();
                client.read_u8().await.unwrap();
            }
        };
        let ((), took) = tokio::join!(moving, stopped_after(&progress));
        assert!(took > Duration::from_secs(9), "not while bytes move: {took:?}");

        progress.request_received(Version::HTTP_2);
        assert_eq!(stopped_after(&progress).await, Duration::ZERO);

        // A client that sent the preface understands GOAWAY, even without a request.
        let (mut client, server) = tokio::io::duplex(64);
        let progress = ConnectionProgress::default();
        let mut server = ConnectionIo::over(server, progress.clone(), ByteBudget::default(), None);
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        client.write_all(preface).await.unwrap();
        server.read_exact(&mut [0; 24]).await.unwrap();
        assert_eq!(stopped_after(&progress).await, Duration::ZERO);
    }
}
