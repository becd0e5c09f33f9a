//! The request of a call: its metadata and the time left for it.

use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request};

/// A request with this metadata, and the time left as its gRPC deadline.
pub(super) fn timed<Q>(metadata: MetadataMap, message: Q, until: Instant) -> Request<Q> {
    let mut request = Request::from_parts(metadata, Extensions::default(), message);
    request.set_timeout(in_whole_ms(until.saturating_duration_since(Instant::now())));
    request
}

/// The rest of a deadline, rounded up to a millisecond. Equal deadlines give equal `grpc-timeout` headers,
/// which the connection's header table can hold (RFC 7541, section 2.3.2). The client's own deadline stays exact.
fn in_whole_ms(left: Duration) -> Duration {
    Duration::from_millis(u64::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}
