//! Settings of what lies behind the edge, and of how much of it is let through at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chassis::memory;
use chassis::serve::{ListenerRole, MemoryShare};
use chassis::settings::{Reader, Zero};
use chassis::tls;

use super::read::file;
use crate::gateway::UpstreamSettings;
use crate::gateway::assertion::{AssertionKeys, OWN_CLAIMS};
use crate::route_table::RouteTable;
use crate::route_table::file::{self, RouteFileContext};

/// What requests are held to, before anybody looks at them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProtectionSettings {
    /// Connections at once; none follows the memory there is.
    pub(crate) connections: Option<usize>,
    /// Requests worked on at once, and as many whose body is waited for; 0 is no limit.
    pub(crate) max_concurrent_requests: usize,
    /// Whether that is what somebody has set.
    pub(crate) requests_are_given: bool,
    /// The longest silence within a request's body.
    pub(crate) body_silence: Duration,
}

/// Streams of a browser's HTTP/2 connection at once (RFC 9113, section 6.5.2, recommends no fewer).
pub(crate) const STREAMS_MAX: u32 = 100;

const CONNECTIONS: &str = "EDGE_MAX_CONNECTIONS";
const REQUESTS: &str = "EDGE_MAX_CONCURRENT_REQUESTS";

/// What a request that is worked on takes with its upstream at most, in bytes.
const REQUEST_BYTES: u64 = 128 * 1024;

/// Where nobody says otherwise there is one request for so much memory: those that take most take half of it.
const MEMORY_OF_REQUEST: u64 = 2 * REQUEST_BYTES;

/// Fewer serve nobody, and more want somebody to say so.
const REQUESTS_MIN: usize = 64;
const REQUESTS_MAX: usize = 4_096;

/// Keys and claims of assertions.
#[derive(Clone, Debug)]
pub(crate) struct AssertionSettings {
    /// The file of keys, to follow its changes.
    pub(crate) file: PathBuf,
    /// The keys as they were at the start.
    pub(crate) keys: Arc<AssertionKeys>,
    /// Claims of the person that are passed on.
    pub(crate) claims: Vec<String>,
}

pub(super) fn upstreams(reader: &mut Reader<'_>) -> UpstreamSettings {
    let ca = tls::read_authorities(reader, "EDGE_UPSTREAM_CA_FILE");
    UpstreamSettings {
        ca,
        head_timeout: Duration::from_secs(reader.secs("EDGE_UPSTREAM_TIMEOUT", Zero::Refused)),
        max_body_bytes: u64::try_from(reader.count("EDGE_MAX_BODY_BYTES")).unwrap_or(u64::MAX),
    }
}

pub(super) fn protection(reader: &mut Reader<'_>) -> ProtectionSettings {
    let memory = memory::available().map(|memory| memory.bytes);
    let given = reader.is_given(REQUESTS).then(|| reader.count(REQUESTS));
    let max_concurrent_requests = given.unwrap_or_else(|| requests_within(memory));
    let connections = reader.count(CONNECTIONS);
    for (name, text) in too_much_for(memory, connections, given.unwrap_or_default()) {
        reader.warn(name, text);
    }
    ProtectionSettings {
        connections: (connections > 0).then_some(connections),
        max_concurrent_requests,
        requests_are_given: given.is_some(),
        body_silence: Duration::from_secs(reader.secs("EDGE_BODY_TIMEOUT", Zero::Refused)),
    }
}

/// How many requests may be worked on in a process that may have `memory` bytes.
fn requests_within(memory: Option<u64>) -> usize {
    let fit = memory.unwrap_or(u64::MAX) / MEMORY_OF_REQUEST;
    usize::try_from(fit)
        .unwrap_or(REQUESTS_MAX)
        .clamp(REQUESTS_MIN, REQUESTS_MAX)
}

/// What does not fit into the memory there is, of what somebody has set; 0 is nothing set.
fn too_much_for(memory: Option<u64>, connections: usize, requests: usize) -> Vec<(&'static str, String)> {
    let Some(memory) = memory else {
        return Vec::new();
    };
    let mebibytes = |bytes: u64| bytes >> 20;
    let fits = [
        (
            CONNECTIONS,
            connections,
            MemoryShare::taken_by(connections, STREAMS_MAX),
            MemoryShare::of(ListenerRole::Main, STREAMS_MAX, Some(memory)).connections,
        ),
        (
            REQUESTS,
            requests,
            (requests as u64).saturating_mul(REQUEST_BYTES),
            requests_within(Some(memory)),
        ),
    ];
    let too_much = fits.into_iter().filter(|(.., taken, _)| *taken > memory);
    too_much
        .map(|(name, count, taken, fit)| {
            let (taken, memory) = (mebibytes(taken), mebibytes(memory));
            (
                name,
                format!(
                    "is {count}, which may take {taken} MiB of the {memory} MiB there are: {fit} would fit"
                ),
            )
        })
        .collect()
}

pub(super) fn assertions(reader: &mut Reader<'_>) -> Option<AssertionSettings> {
    const FILE: &str = "EDGE_UPSTREAM_JWT_KEY_FILE";
    const CLAIMS: &str = "EDGE_UPSTREAM_JWT_CLAIMS";
    let claims = reader.list(CLAIMS);
    if let Some(own) = claims.iter().find(|name| OWN_CLAIMS.contains(&name.as_str())) {
        reader.wrong(CLAIMS, format!("must not hold {own}: the edge sets it itself"));
    }
    let file = file(reader, FILE)?;
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            reader.wrong(FILE, format!("cannot be read: {error}"));
            return None;
        }
    };
    match AssertionKeys::from_pem(&text) {
        Ok(keys) => Some(AssertionSettings {
            file,
            keys: Arc::new(keys),
            claims,
        }),
        Err(error) => {
            reader.wrong(FILE, error.to_string());
            None
        }
    }
}

/// The route table; its mistakes are mistakes of the setting.
/// Whether there are keys to sign with is read here, whatever `around` says.
pub(crate) fn routes(reader: &mut Reader<'_>, around: RouteFileContext<'_>) -> RouteTable {
    let Some(path) = reader.path("EDGE_ROUTES") else {
        return RouteTable::default();
    };
    let around = RouteFileContext {
        signs: reader.path("EDGE_UPSTREAM_JWT_KEY_FILE").is_some(),
        ..around
    };
    reader
        .toml_file("EDGE_ROUTES", &path, |text| file::parse(text, around))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: Option<u64> = Some(128 << 20);

    #[test]
    fn requests_follow_the_memory_there_is() {
        assert_eq!(requests_within(POD), 512);
        assert_eq!(requests_within(Some(64 << 20)), 256);
        assert_eq!(requests_within(Some(1 << 20)), REQUESTS_MIN);
        assert_eq!(requests_within(Some(24 << 30)), REQUESTS_MAX);
        assert_eq!(requests_within(None), REQUESTS_MAX);
    }

    #[test]
    fn what_cannot_fit_into_the_memory_is_told_with_what_would() {
        assert!(too_much_for(POD, 0, 0).is_empty(), "nothing is set");
        assert!(too_much_for(POD, 1_000, 1_000).is_empty());
        assert!(too_much_for(None, 100_000, 100_000).is_empty(), "nobody knows");
        let told = too_much_for(POD, 16_384, 4_096);
        let names: Vec<_> = told.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [CONNECTIONS, REQUESTS]);
        for (told, parts) in told
            .iter()
            .zip([["16384", "128 MiB", "700"], ["4096", "128 MiB", "512"]])
        {
            assert!(parts.iter().all(|part| told.1.contains(part)), "{}", told.1);
        }
    }
}
