//! Closes a connection whose client may still be sending (RFC 9112, section 9.6).
//!
//! Closing a socket with unread bytes resets the connection: the client's next write fails, and some systems
//! lose the unread answer. So the server first ends its own direction, then discards input until the client ends.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// A client that sends nothing for this long has read the answer, or never will.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// A client that keeps sending is reset after this time, less than the drain timeout of a listener.
const LINGERING_MAX: Duration = Duration::from_secs(10);

/// Bytes read at once.
const PIECE: usize = 16 * 1024;

/// Ends the server's direction, and discards input until the client ends, for a bounded time.
pub(super) async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let ending = async {
        // An error ends the connection too. The protocol may have ended it already.
        let _ = stream.shutdown().await;
        let mut piece = vec![0; PIECE];
        while let Ok(Ok(1..)) = timeout(SILENCE_MAX, stream.read(&mut piece)).await {}
    };
    let _ = timeout(LINGERING_MAX, ending).await;
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::super::connection::tests::connected;
    use super::{Duration, LINGERING_MAX, SILENCE_MAX};

    const UPLOAD: &str = "POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 1000000000\r\n\r\n";
    const UNREADABLE: &str = "POST / HTTP/1.1\r\nno colon\r\n\r\n";

    /// Answers before it has read any of the request.
    fn router() -> Router {
        Router::new().route("/", post(|| async { "answered" }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_all_before_it_reads_gets_its_answer() {
        for (head, status) in [(UPLOAD, "HTTP/1.1 200"), (UNREADABLE, "HTTP/1.1 400")] {
            let (mut client, _draining) = connected(router());
            client.write_all(head.as_bytes()).await.unwrap();
            client.write_all(&[b'x'; 1_000_000]).await.expect("it is taken");
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(status), "{answer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_end_is_waited_for_no_longer_than_a_while() {
        for (pause, longest) in [
            (SILENCE_MAX + Duration::from_secs(1), SILENCE_MAX),
            (SILENCE_MAX / 2, LINGERING_MAX),
        ] {
            let (mut client, _draining) = connected(router());
            let began = Instant::now();
            client.write_all(UPLOAD.as_bytes()).await.unwrap();
            client.read_to_string(&mut String::new()).await.unwrap();
            assert_eq!(began.elapsed(), Duration::ZERO, "the end is said at once");
            let mut kept = Duration::ZERO;
            while began.elapsed() < Duration::from_secs(60) {
                if client.write_all(b"x").await.is_err() {
                    break;
                }
                kept = began.elapsed();
                tokio::time::sleep(pause).await;
            }
            assert!(kept <= longest && kept + pause >= longest, "{kept:?} {longest:?}");
        }
    }
}
