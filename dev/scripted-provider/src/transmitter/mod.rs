//! A transmitter of security events (Shared Signals Framework 1.0) for tests: it keeps streams, and hands out events by poll.
//!
//! It takes the token [`ScriptedTransmitter::TOKEN`], and those of its token endpoint, which knows the provider's client. It pushes
//! nothing: what would be pushed, a test sends itself.

mod endpoints;
mod memory;
mod script;

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Recorded;
use crate::provider::{Running, run};
use crate::request_log::DEADLINE;
use crate::script::{Claims, patch};

use memory::{Refused, State};
pub use script::{TransmitterEndpoint, TransmitterScript};

/// A transmitter on a thread of its own; it ends when dropped.
pub struct ScriptedTransmitter {
    state: Arc<State>,
    port: u16,
    running: Mutex<Option<Running>>,
}

impl ScriptedTransmitter {
    /// A token it takes for all of its streams.
    pub const TOKEN: &str = "token-of-the-receiver";

    /// Starts on a free loopback port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        let port = listener.local_addr().expect("a bound address").port();
        let state = Arc::new(State::new(format!("http://127.0.0.1:{port}")));
        let running = run(listener, endpoints::router(state.clone()));
        let running = Mutex::new(Some(running));
        Self { state, port, running }
    }

    /// The issuer identifier, `http://127.0.0.1:<port>`.
    pub fn issuer(&self) -> &str {
        &self.state.issuer
    }

    /// The full address of an endpoint.
    pub fn url(&self, endpoint: TransmitterEndpoint) -> String {
        format!("{}{}", self.state.issuer, endpoint.path())
    }

    /// Changes the script.
    pub fn script(&self, change: impl FnOnce(&mut TransmitterScript)) {
        change(&mut self.state.lock().script);
    }

    /// The last requests an endpoint got, oldest first, at most 100.
    pub fn requests(&self, endpoint: TransmitterEndpoint) -> Vec<Recorded> {
        self.state.requests.last(endpoint)
    }

    /// The last request an endpoint got. Panics when there was none.
    pub fn last_request(&self, endpoint: TransmitterEndpoint) -> Recorded {
        self.requests(endpoint).pop().expect("a request was made")
    }

    /// How many calls an endpoint got.
    pub fn calls(&self, endpoint: TransmitterEndpoint) -> usize {
        self.state.requests.count(endpoint)
    }

    /// Waits until an endpoint got that many calls in all. Panics after 20 seconds.
    pub async fn wait_for_calls(&self, endpoint: TransmitterEndpoint, calls: usize) {
        self.state.requests.wait_for(endpoint, calls).await;
    }

    /// Holds requests to an endpoint back until the answer is dropped; calls are counted when they arrive.
    pub fn hold(&self, endpoint: TransmitterEndpoint) -> HeldRequests {
        self.state.held.send_replace(Some(endpoint));
        HeldRequests(Arc::clone(&self.state))
    }

    /// The streams there are, as it says them.
    pub fn streams(&self) -> Vec<Value> {
        self.state
            .lock()
            .streams
            .values()
            .map(|stream| stream.document.clone())
            .collect()
    }

    /// What has to come with each push of a stream.
    pub fn authorization_header(&self, stream_id: &str) -> Option<String> {
        self.state
            .lock()
            .streams
            .get(stream_id)?
            .authorization_header
            .clone()
    }

    /// The status of a stream.
    pub fn status(&self, stream_id: &str) -> Option<String> {
        Some(self.state.lock().streams.get(stream_id)?.status.clone())
    }

    /// Forgets all streams, as when they were deleted there.
    pub fn forget_streams(&self) {
        self.state.lock().streams.clear();
    }

    /// Takes no token any more that its token endpoint has handed out.
    pub fn forget_tokens(&self) {
        self.state.lock().tokens.clear();
    }

    /// A security event for the first audience about somebody, patched with these claims.
    pub fn event(&self, claims: &Value) -> String {
        self.event_with_header(&json!({}), claims)
    }

    /// The same with header members of one's own; `null` removes one.
    pub fn event_with_header(&self, header: &Value, claims: &Value) -> String {
        let mut memory = self.state.lock();
        let mut own = memory.event_claims(&self.state.issuer);
        patch(&mut own, claims.as_object().unwrap_or(&Claims::new()));
        memory.sign(header.as_object().unwrap_or(&Claims::new()), own)
    }

    /// Has an event fetched by whoever polls next, of whatever stream.
    pub fn offer(&self, jti: &str, raw: impl Into<Value>) {
        self.state.offer(jti, raw.into());
    }

    /// The events that were neither acknowledged nor refused.
    pub fn offered(&self) -> Vec<String> {
        self.state.lock().offered.keys().cloned().collect()
    }

    /// The events that were acknowledged, each as often as it was.
    pub fn acknowledged(&self) -> Vec<String> {
        self.state.lock().acknowledged.clone()
    }

    /// The events that were refused: identifier, code, description.
    pub fn refused(&self) -> Vec<(String, String, String)> {
        let memory = self.state.lock();
        let told = |refused: &Refused| {
            (
                refused.jti.clone(),
                refused.err.clone(),
                refused.description.clone(),
            )
        };
        memory.refused.iter().map(told).collect()
    }

    /// Waits until every event was acknowledged or refused. Panics after 20 seconds.
    pub async fn wait_until_fetched(&self) {
        let mut changes = self.state.changes.subscribe();
        let all = async {
            while !self.state.lock().offered.is_empty() {
                // The sender lives as long as this.
                let _ = changes.changed().await;
            }
        };
        let fetched = tokio::time::timeout(DEADLINE, all).await;
        assert!(fetched.is_ok(), "left: {:?}", self.offered());
    }

    /// Closes the port and every connection.
    pub fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            running.stop();
        }
    }

    /// Opens the same port again.
    pub fn start_again(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            let listener = TcpListener::bind(("127.0.0.1", self.port)).expect("the same port again");
            *running = Some(run(listener, endpoints::router(self.state.clone())));
        }
    }
}

/// Requests that are held; they go on when this is dropped.
pub struct HeldRequests(Arc<State>);

impl Drop for HeldRequests {
    fn drop(&mut self) {
        self.0.held.send_replace(None);
    }
}

impl Drop for ScriptedTransmitter {
    fn drop(&mut self) {
        self.stop();
    }
}
