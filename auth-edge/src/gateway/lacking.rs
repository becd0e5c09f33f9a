//! What a session still lacks after a sign-in that was asked for it: who asks once more goes round in circles.
//!
//! A sign-in that leads to a route is asked for all the route asks of one (`sign_in::wishes`). What its session lacks all the
//! same the browser remembers for a while, under a name that holds for this session and these demands alone; a guard that
//! meets it says no instead of sending the visitor to sign in. Deliberately absent: any way it could open a door.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use session_proto::v1::Session;

use super::guard::{check, check_connection};
use crate::route_table::Asks;
use crate::sessions::cookies::SessionId;
use crate::app::Edge;
use crate::values::return_to::ReturnTo;

/// Separates these hashes from all others of a session ID.
const LABEL: &[u8] = b"vestibule lacking v1";
/// Bytes of the name: no two demands meet.
const NAME_BYTES: usize = 16;

/// What the session of a sign-in that leads here lacks although it was asked for; `None` if nothing, or nothing a sign-in brings.
#[must_use]
pub fn lacking(edge: &Edge, id: &SessionId, session: &Session, to: &ReturnTo) -> Option<String> {
    let route = edge.gateway.route_of(to)?;
    let checked = check(session, &route.asks, edge.clock.now_ms());
    let missing = checked
        .and_then(|()| check_connection(edge, session, &route.asks))
        .err()?;
    missing.is_of_sign_in().then(|| name(id, &route.asks))
}

/// What the browser's session lacks after a sign-in that leads here and was refused, since the provider does not tell when
/// people signed in.
#[must_use]
pub fn undated(edge: &Edge, id: &SessionId, to: &ReturnTo) -> Option<String> {
    let route = edge.gateway.route_of(to)?;
    route.asks.max_age_secs.map(|_| name(id, &route.asks))
}

/// Whether the browser of these headers remembers that it signed in for these demands in vain.
pub(super) fn is_remembered(edge: &Edge, headers: &HeaderMap, id: &SessionId, asks: &Asks) -> bool {
    edge.pending.is_lacking(headers, &name(id, asks))
}

fn name(id: &SessionId, asks: &Asks) -> String {
    let demands = format!(
        "{:?}",
        (
            &asks.max_age_secs,
            &asks.acr,
            &asks.organization,
            &asks.connection
        )
    );
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in [LABEL, &id.to_bytes(), demands.as_bytes()] {
        hash.update(part);
    }
    let hash = hash.finish();
    let short = hash.as_ref().split_at(NAME_BYTES).0;
    URL_SAFE_NO_PAD.encode(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_for_one_session_and_one_set_of_demands() {
        let id = |byte| SessionId::from_bytes([byte; 16]);
        let asks = |max_age_secs, acr: &[&str]| Asks {
            max_age_secs,
            acr: acr.iter().map(|class| (*class).to_owned()).collect(),
            ..Asks::default()
        };
        let of = |byte, asks: Asks| name(&id(byte), &asks);
        let first = of(1, asks(Some(60), &["gold"]));
        assert_eq!(first, of(1, asks(Some(60), &["gold"])));
        for other in [
            of(2, asks(Some(60), &["gold"])),
            of(1, asks(Some(61), &["gold"])),
            of(1, asks(None, &["gold"])),
            of(1, asks(Some(60), &["silver"])),
            of(1, asks(Some(60), &["gold", "silver"])),
        ] {
            assert_ne!(first, other);
        }
    }
}
