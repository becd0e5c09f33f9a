//! The browser of a request, as sessions remember it.

use axum::http::HeaderMap;
use chassis::audit::{AuditRecord, Event, Outcome};
use session_proto::timestamp;
use session_proto::v1::Device;

use crate::http::shared::Shared;
use crate::values::forwarded::UNKNOWN;

/// Longest `User-Agent` kept, in bytes, as the session API says.
const MAX_USER_AGENT_BYTES: usize = 512;

impl Shared {
    /// The browser of a request, as sessions remember it.
    #[must_use]
    pub(crate) fn device(&self, headers: &HeaderMap, peer: std::net::IpAddr) -> Device {
        let agent = headers
            .get(axum::http::header::USER_AGENT)
            .map(|value| value.as_bytes())
            .unwrap_or_default();
        let address = self.trusted_proxies.client_address(peer, headers);
        Device {
            user_agent: shown(&agent[..agent.len().min(MAX_USER_AGENT_BYTES)]),
            address: if address == UNKNOWN {
                String::new()
            } else {
                address.to_string()
            },
            at: Some(timestamp::from_ms(self.clock.now_ms())),
        }
    }
}

/// The beginning of an audit record: what happened, and from where.
#[must_use]
pub(crate) fn record_from(device: &Device, event: Event, outcome: Outcome) -> AuditRecord<'_> {
    let known = |text: &str| !text.is_empty();
    AuditRecord {
        client_address: Some(device.address.as_str()).filter(|text| known(text)),
        user_agent: Some(device.user_agent.as_str()).filter(|text| known(text)),
        ..AuditRecord::new(event, outcome)
    }
}

/// What a browser calls itself, without control characters.
fn shown(agent: &[u8]) -> String {
    let text = String::from_utf8_lossy(agent);
    // Cutting may have made a replacement character of a half one.
    let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    whole.chars().filter(|c| !c.is_control()).collect()
}
