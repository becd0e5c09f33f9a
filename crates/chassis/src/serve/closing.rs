//! How a listener ends without losing anybody.
//!
//! A listener that is closed resets the connections that wait in its queue, and those whose handshake ends a moment later.
//! So new handshakes are dropped first; those under way complete, and their connections are served. A client whose SYN is dropped
//! sends it again a second later and is refused by then: nothing was sent, so it may go elsewhere.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};

/// Handshakes under way end within a round trip: this is one across a continent, and many from a balancer.
const HANDSHAKES: Duration = Duration::from_millis(100);

/// The last connections of a listener, each given to `serve`; then the listener is no more.
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
    // What the kernel has queued and the runtime has not been notified of.
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

/// Makes the kernel drop what begins a handshake (SYN without ACK, RFC 9293, section 3.5) and nothing else.
#[cfg(target_os = "linux")]
fn drop_new_handshakes(listener: &TcpListener) -> io::Result<()> {
    use socket2::{SockFilter, SockRef};

    // Classic BPF over the TCP header: load the byte of flags, keep SYN and ACK, drop if SYN alone is left.
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

/// Elsewhere there is no such filter: what comes between the last connection and the end is reset.
#[cfg(not(target_os = "linux"))]
fn drop_new_handshakes(_: &TcpListener) -> io::Result<()> {
    Ok(())
}
