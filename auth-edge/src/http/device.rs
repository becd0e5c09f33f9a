//! Describes the browser of a request, for session records.

use axum::http::HeaderMap;
use chassis::audit::{AuditRecord, Event, Outcome};
use session_proto::timestamp;
use session_proto::v1::Device;

use crate::http::shared::Shared;
use crate::values::forwarded::UNKNOWN;

/// Longest stored `User-Agent`, in bytes, as the session API defines it.
const MAX_USER_AGENT_BYTES: usize = 512;

impl Shared {
    /// Describes the browser of a request, for a session record.
    #[must_use]
    pub(crate) fn device(&self, headers: &HeaderMap, peer: std::net::IpAddr) -> Device {
        let agent = headers
            .get(axum::http::header::USER_AGENT)
            .map(|value| value.as_bytes())
            .unwrap_or_default();
        let address = self.trusted_proxies.client_address(peer, headers);
        Device {
            user_agent: clean_user_agent(&agent[..agent.len().min(MAX_USER_AGENT_BYTES)]),
            address: if address == UNKNOWN {
                String::new()
            } else {
                address.to_string()
            },
            at: Some(timestamp::from_ms(self.clock.now_ms())),
        }
    }
}

/// Starts an audit record with the event, its outcome and the browser.
#[must_use]
pub(crate) fn record_from(device: &Device, event: Event, outcome: Outcome) -> AuditRecord<'_> {
    let known = |text: &str| !text.is_empty();
    AuditRecord {
        client_address: Some(device.address.as_str()).filter(|text| known(text)),
        user_agent: Some(device.user_agent.as_str()).filter(|text| known(text)),
        ..AuditRecord::new(event, outcome)
    }
}

/// The browser's `User-Agent` without control characters.
fn clean_user_agent(agent: &[u8]) -> String {
    let text = String::from_utf8_lossy(agent);
    // Cutting can leave half a character, which decodes to a replacement character.
    let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    whole.chars().filter(|c| !c.is_control()).collect()
}
