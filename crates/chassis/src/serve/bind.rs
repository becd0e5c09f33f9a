//! Listens on an address.
//!
//! `[::]` means all addresses of both families, independent of the system default (`IPV6_V6ONLY`, RFC 3493,
//! section 5.3). Without IPv6 this fails, with advice, instead of falling back to IPv4.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rustix::io::Errno;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket};

/// A client must read some of its waiting data at least this often; most servers use the same limit.
const STALLED_TIMEOUT: Duration = Duration::from_secs(60);

/// Connections the kernel queues until they are accepted; `net.core.somaxconn` is the upper limit.
const BACKLOG: u32 = 1_024;

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", remedy(source, *address, setting))]
pub struct BindError {
    address: SocketAddr,
    setting: &'static str,
    #[source]
    source: io::Error,
}

/// Listens on an address; `setting` is the variable that sets it. Connections of clients that read nothing
/// end after a minute ([`give_up_stalled`]).
///
/// # Errors
/// The address is in use, is not ours, or the system does not support its family.
pub async fn bind(address: SocketAddr, setting: &'static str) -> Result<TcpListener, BindError> {
    let listener = listen(address).map_err(|source| BindError {
        address,
        setting,
        source,
    })?;
    give_up_stalled(&listener, STALLED_TIMEOUT);
    Ok(listener)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(address) => {
            let socket = TcpSocket::new_v6()?;
            SockRef::from(&socket).set_only_v6(!address.ip().is_unspecified())?;
            socket
        }
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Advice for the operator.
fn remedy(error: &io::Error, address: SocketAddr, setting: &str) -> String {
    let no_family = error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error());
    if no_family && address.is_ipv6() {
        let instead = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
        return format!("this system has no IPv6; {setting}={instead} listens on every address of IPv4");
    }
    format!("choose another address with {setting}")
}

/// Ends connections whose client accepts no data for `longest`, because it reads nothing or has vanished. The
/// kernel closes the connection (`TCP_USER_TIMEOUT`, RFC 5482), and its resources are released. A connection
/// without data to send stays. No effect on systems without the option.
pub fn give_up_stalled(listener: &TcpListener, longest: Duration) {
    #[cfg(target_os = "linux")]
    // Accepted connections inherit the option.
    if let Err(error) = SockRef::from(listener).set_tcp_user_timeout(Some(longest)) {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "connections of clients that read nothing cannot be closed"
        );
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (listener, longest);
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn every_address_of_ipv6_is_every_address_of_ipv4_too() {
        let listener = bind("[::]:0".parse().unwrap(), "T_LISTEN").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for address in ["127.0.0.1", "::1"] {
            let connecting = TcpStream::connect((address, port));
            let (accepted, connected) = tokio::join!(listener.accept(), connecting);
            assert!(connected.is_ok() && accepted.is_ok(), "{address}");
        }
    }

    #[test]
    fn a_system_without_ipv6_is_told_what_to_set() {
        let told = |errno: Errno, address: &str| {
            BindError {
                address: address.parse().unwrap(),
                setting: "T_LISTEN",
                source: io::Error::from_raw_os_error(errno.raw_os_error()),
            }
            .to_string()
        };
        let without = told(Errno::AFNOSUPPORT, "[::]:3000");
        assert!(
            without.contains("no IPv6") && without.contains("T_LISTEN=0.0.0.0:3000"),
            "{without}"
        );
        for (errno, address) in [
            (Errno::ADDRINUSE, "[::]:3000"),
            (Errno::AFNOSUPPORT, "127.0.0.1:3000"),
        ] {
            assert!(told(errno, address).ends_with("choose another address with T_LISTEN"));
        }
    }
}
