//! Ends a listener without losing clients.
//!
//! Closing a listener resets the connections in its queue, and those whose handshake ends a moment later. So
//! the kernel drops new handshakes first; those in progress complete and are served. A client whose SYN was
//! dropped retries a second later and is refused. It has sent no request, so it can try another address.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};

/// Handshakes end within a round trip. This time is one round trip across a continent.
const HANDSHAKES: Duration = Duration::from_millis(100);

/// Passes the last connections of a listener to `serve`, then closes the listener.
pub(super) async fn last(listener: TcpListener, mut serve: impl FnMut(io::Result<(TcpStream, SocketAddr)>)) {
    if let Err(error) = drop_new_handshakes(&listener) {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "new connections cannot be held back while the listener closes"
        );
    }
    let until = Instant::now() + HANDSHAKES;
    while let Ok(accepted) = timeout_at(until, listener.accept()).await {
        serve(accepted);
    }
    // The kernel may have queued connections the runtime does not know of.
    let Ok(listener) = listener.into_std() else {
        return;
    };
    while let Ok((stream, address)) = listener.accept() {
        let stream = stream
            .set_nonblocking(true)
            .and_then(|()| TcpStream::from_std(stream));
        serve(stream.map(|stream| (stream, address)));
    }
}

/// Makes the kernel drop only segments that start a handshake (SYN without ACK, RFC 9293, section 3.5).
#[cfg(target_os = "linux")]
fn drop_new_handshakes(listener: &TcpListener) -> io::Result<()> {
    use socket2::{SockFilter, SockRef};

    // Classic BPF on the TCP header: load the flags, keep SYN and ACK, drop if only SYN is set.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_OFFSET),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
}

/// Other systems have no such filter: they reset late connections.
#[cfg(not(target_os = "linux"))]
fn drop_new_handshakes(_: &TcpListener) -> io::Result<()> {
    Ok(())
}
