//! Settings of the upstreams, and limits of the requests in progress.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chassis::memory;
use chassis::settings::{Reader, Zero};
use chassis::tls;
use oidc::ClientKeys;

use crate::gateway::UpstreamSettings;
use crate::gateway::assertion::read_keys;
use crate::route_table::RouteTable;
use crate::route_table::file::{self, RouteFileContext};

/// Streams of a browser's HTTP/2 connection at once (RFC 9113, section 6.5.2, recommends no fewer).
pub(crate) const STREAMS_MAX: u32 = 100;

/// The longest pause within a request's body. Uploads send something every few round trips despite packet loss.
pub(super) const BODY_SILENCE: Duration = Duration::from_secs(30);

/// The largest request body that the edge proxies, in bytes, unless the route sets `max_body`.
const BODY_BYTES_MAX: u64 = 1 << 30;

/// Memory per request in progress, in bytes. The most expensive requests use half of it, with their upstream.
const MEMORY_OF_REQUEST: u64 = 256 * 1024;

/// Limits of the requests in progress: fewer are of no use, and one process's upstreams cannot use more.
const REQUESTS: RangeInclusive<usize> = 64..=4_096;

/// The keys that sign assertions.
#[derive(Clone, Debug)]
pub(crate) struct AssertionSettings {
    /// The file with the keys, to follow its changes.
    pub(crate) file: PathBuf,
    /// The keys at start.
    pub(crate) keys: Arc<ClientKeys>,
}

pub(super) fn upstreams(reader: &mut Reader<'_>) -> UpstreamSettings {
    let ca = tls::read_authorities(reader, "EDGE_UPSTREAM_CA_FILE");
    UpstreamSettings {
        ca,
        head_timeout: Duration::from_secs(reader.secs("EDGE_UPSTREAM_TIMEOUT", Zero::Refused)),
        max_body_bytes: BODY_BYTES_MAX,
    }
}

/// Most requests in progress that fit into the available memory.
pub(super) fn requests() -> usize {
    requests_within(memory::available().map(|memory| memory.bytes))
}

fn requests_within(memory: Option<u64>) -> usize {
    let fit = memory.unwrap_or(u64::MAX) / MEMORY_OF_REQUEST;
    usize::try_from(fit)
        .unwrap_or(*REQUESTS.end())
        .clamp(*REQUESTS.start(), *REQUESTS.end())
}

pub(super) fn assertions(reader: &mut Reader<'_>) -> Option<AssertionSettings> {
    const FILE: &str = "EDGE_UPSTREAM_JWT_KEY_FILE";
    let file = reader.path(FILE)?;
    let text = std::fs::read_to_string(&file).map_err(|error| format!("cannot be read: {error}"));
    let keys = text.and_then(|text| read_keys(&text).map_err(|error| error.to_string()));
    let keys = keys.map_err(|wrong| reader.wrong(FILE, wrong)).ok()?;
    Some(AssertionSettings { file, keys })
}

/// Reads the route table. Its mistakes are mistakes of the setting.
pub(super) fn routes(reader: &mut Reader<'_>, around: &RouteFileContext) -> RouteTable {
    let Some(path) = reader.path("EDGE_ROUTES") else {
        return RouteTable::default();
    };
    reader
        .toml_file("EDGE_ROUTES", &path, |text| file::parse(text, around))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: u64 = 128 << 20;

    #[test]
    fn requests_follow_the_memory_there_is() {
        assert_eq!(requests_within(Some(POD)), 512);
        assert_eq!(requests_within(Some(64 << 20)), 256);
        assert_eq!(requests_within(Some(1 << 20)), 64);
        assert_eq!(requests_within(Some(24 << 30)), 4_096);
        assert_eq!(requests_within(None), 4_096);
    }
}
