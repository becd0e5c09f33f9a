//! The end of a connection whose client may still be sending (RFC 9112, section 9.6).
//!
//! A socket that is closed with bytes to read resets the connection: the client's next write fails, and on some systems the answer that it
//! has not read yet is lost. So the end is said first, and what still comes is passed over until the client has ended too.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// A client that says nothing for so long has read the answer, or will not.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// One that sends on and on is reset: below what a listener grants its connections when it ends.
const LINGERING_MAX: Duration = Duration::from_secs(10);

/// Bytes read at once.
const PIECE: usize = 16 * 1024;

/// Ends our side, and passes over what comes until the other side ends, for a bounded time.
pub(super) async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let ending = async {
        // An error is an end as well, and the protocol may have said it already.
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

    /// Answers before it has read anything.
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
