//! What the transmitter remembers: streams, events, tokens and calls.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::script::{TransmitterEndpoint, TransmitterScript};
use crate::request_log::RequestLog;
use crate::script::{Claims, patch};
use crate::signing::Keys;

const SESSION_REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";

pub(crate) struct Stream {
    pub(crate) document: Value,
    pub(crate) authorization_header: Option<String>,
    pub(crate) status: String,
    pub(crate) reason: Value,
}

/// An event that the receiver refused.
pub(crate) struct Refused {
    pub(crate) jti: String,
    pub(crate) err: String,
    pub(crate) description: String,
}

pub(crate) struct Memory {
    pub(crate) script: TransmitterScript,
    pub(crate) keys: Keys,
    pub(crate) counter: u64,
    pub(crate) streams: BTreeMap<String, Stream>,
    pub(crate) tokens: HashSet<String>,
    pub(crate) offered: BTreeMap<String, Value>,
    pub(crate) acknowledged: Vec<String>,
    pub(crate) refused: Vec<Refused>,
}

pub(crate) struct State {
    pub(crate) issuer: String,
    memory: Mutex<Memory>,
    pub(crate) requests: RequestLog<TransmitterEndpoint>,
    /// The endpoint whose requests are held.
    pub(crate) held: watch::Sender<Option<TransmitterEndpoint>>,
    /// Counts what happens to events.
    pub(crate) changes: watch::Sender<usize>,
}

impl State {
    pub(crate) fn new(issuer: String) -> Self {
        let memory = Memory {
            script: TransmitterScript::default(),
            keys: Keys::new(0),
            counter: 0,
            streams: BTreeMap::new(),
            tokens: HashSet::new(),
            offered: BTreeMap::new(),
            acknowledged: Vec::new(),
            refused: Vec::new(),
        };
        Self {
            issuer,
            memory: Mutex::new(memory),
            requests: RequestLog::of(TransmitterEndpoint::ALL),
            held: watch::Sender::new(None),
            changes: watch::Sender::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while requests to an endpoint are held.
    pub(crate) async fn pass(&self, endpoint: TransmitterEndpoint) {
        let mut held = self.held.subscribe();
        // The sender lives as long as this.
        let _ = held.wait_for(|held| *held != Some(endpoint)).await;
    }

    pub(crate) fn offer(&self, jti: &str, raw: Value) {
        self.lock().offered.insert(jti.to_owned(), raw);
        self.changed();
    }

    pub(crate) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl Memory {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test that owns the clock sets script.now"
    )]
    fn now(&self) -> u64 {
        let real = || SystemTime::now().duration_since(UNIX_EPOCH);
        self.script
            .now
            .unwrap_or_else(|| real().map(|since| since.as_secs()).unwrap_or_default())
    }

    pub(crate) fn fresh(&mut self, kind: &str) -> String {
        self.counter += 1;
        format!("{kind}-{}", self.counter)
    }

    /// The claims of an event as they should be.
    pub(crate) fn event_claims(&mut self, issuer: &str) -> Claims {
        let claims = json!({
            "iss": issuer, "jti": self.fresh("event"), "iat": self.now(), "aud": self.script.audience.first(),
            "sub_id": { "format": "iss_sub", "iss": issuer, "sub": "alice" },
            "events": { (SESSION_REVOKED): { "event_timestamp": self.now() } },
        });
        claims.as_object().cloned().unwrap_or_default()
    }

    pub(crate) fn sign(&self, header: &Claims, claims: Claims) -> String {
        let mut own = json!({ "typ": "secevent+jwt", "alg": "RS256", "kid": self.keys.kid("RS256") });
        if let Value::Object(members) = &mut own {
            patch(members, header);
        }
        self.keys.sign(&own, &Value::Object(claims))
    }
}
