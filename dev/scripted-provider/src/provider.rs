//! The test's handle to the provider.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::request_log::DEADLINE;
use crate::script::{Claims, Script, patch};
use crate::signing::Keys;
use crate::state::{Held, State};
use crate::{CLIENT_ID, Endpoint, Recorded, server, token};

/// A provider on its own thread; it ends when dropped.
pub struct ScriptedProvider {
    state: Arc<State>,
    port: u16,
    running: Mutex<Option<Running>>,
}

/// A server on its own thread.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Closes the port and every connection.
    pub(crate) fn stop(self) {
        drop(self.stop);
        self.thread.join().expect("the server's thread ends");
    }
}

/// Holds back an endpoint's answers until released or dropped.
pub struct Gate {
    state: Arc<State>,
    endpoint: Endpoint,
}

impl Gate {
    /// Releases the answers.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.state.held[&self.endpoint].send_replace(Held::No);
    }
}

impl ScriptedProvider {
    /// Starts on a free loopback port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        let port = listener.local_addr().expect("a bound address").port();
        let state = Arc::new(State::new(format!("http://127.0.0.1:{port}")));
        let running = Mutex::new(Some(run(listener, server::router(state.clone()))));
        Self { state, port, running }
    }

    /// The issuer identifier, `http://127.0.0.1:<port>`.
    pub fn issuer(&self) -> &str {
        &self.state.issuer
    }

    /// The full address of an endpoint.
    pub fn url(&self, endpoint: Endpoint) -> String {
        format!("{}{}", self.state.issuer, endpoint.path())
    }

    /// Changes the script.
    pub fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.state.lock().script);
    }

    /// Goes back to good behaviour; keys, tokens and counts stay, and so does the clock.
    pub fn reset(&self) {
        let mut memory = self.state.lock();
        memory.script = Script {
            now: memory.script.now,
            ..Script::default()
        };
    }

    /// How many calls an endpoint received.
    pub fn calls(&self, endpoint: Endpoint) -> usize {
        self.state.requests.count(endpoint)
    }

    /// How many calls of that grant type the token endpoint received, with any outcome.
    pub fn grants(&self, grant_type: &str) -> usize {
        self.state
            .lock()
            .grants
            .get(grant_type)
            .copied()
            .unwrap_or_default()
    }

    /// The last requests to an endpoint, oldest first, at most 100.
    pub fn requests(&self, endpoint: Endpoint) -> Vec<Recorded> {
        self.state.requests.last(endpoint)
    }

    /// The last request to an endpoint. Panics without one.
    pub fn last_request(&self, endpoint: Endpoint) -> Recorded {
        self.requests(endpoint).pop().expect("a request was made")
    }

    /// Waits until an endpoint has received that many calls in all. Panics after 20 seconds.
    pub async fn wait_for_calls(&self, endpoint: Endpoint, calls: usize) {
        self.state.requests.wait_for(endpoint, calls).await;
    }

    /// Holds back requests to an endpoint before any effect; calls count on arrival.
    pub fn hold(&self, endpoint: Endpoint) -> Gate {
        self.hold_at(endpoint, Held::Requests)
    }

    /// Holds back an endpoint's answers after every effect: codes are used up, tokens are rotated.
    pub fn hold_answers(&self, endpoint: Endpoint) -> Gate {
        self.hold_at(endpoint, Held::Answers)
    }

    fn hold_at(&self, endpoint: Endpoint, held: Held) -> Gate {
        self.state.held[&endpoint].send_replace(held);
        Gate {
            state: self.state.clone(),
            endpoint,
        }
    }

    /// Waits until an endpoint holds exactly that many calls, without those whose caller hung up. Panics after 20
    /// seconds.
    pub async fn wait_for_held(&self, endpoint: Endpoint, calls: usize) {
        let mut holding = self.state.holding[&endpoint].subscribe();
        let reached = tokio::time::timeout(DEADLINE, holding.wait_for(|count| *count == calls))
            .await
            .is_ok();
        assert!(
            reached,
            "{endpoint:?} holds {} calls, not {calls}",
            *holding.borrow()
        );
    }

    /// Signs a user in now, without a browser: the members of a token response, and `sid`.
    pub fn sign_in(&self, scope: &str) -> Claims {
        token::sign_in(&self.state, scope)
    }

    /// How many refresh tokens were exchanged for new ones.
    pub fn rotations(&self) -> usize {
        self.state.lock().rotations
    }

    /// How often an exchanged refresh token was used again; each reuse revokes the tokens of its sign-in.
    pub fn reuses(&self) -> usize {
        self.state.lock().reuses
    }

    /// Whether the provider accepts an access token.
    pub fn knows_access_token(&self, token: &str) -> bool {
        self.state.lock().access_tokens.contains_key(token)
    }

    /// Signs with a new key from now on; only it is in the JWKS.
    pub fn rotate_keys(&self) {
        let mut memory = self.state.lock();
        memory.generation += 1;
        let next = Keys::new(memory.generation);
        memory.keys = memory.upcoming.take().unwrap_or(next);
    }

    /// Signs with a new key under the name of the old one from now on; only it is in the JWKS.
    pub fn remake_keys(&self) {
        let mut memory = self.state.lock();
        memory.remade += 1;
        let (generation, next) = (memory.generation, memory.generation + memory.remade);
        memory.keys = Keys::new(next).named_as_of(generation);
    }

    /// Publishes the next key next to the current one; `rotate_keys` then starts to use it.
    pub fn publish_key(&self) {
        let mut memory = self.state.lock();
        memory.upcoming = Some(Keys::new(memory.generation + 1));
    }

    /// The current JWKS.
    pub fn published_keys(&self) -> Value {
        server::jwks(&self.state)
    }

    /// Signs with a new key from now on but publishes the earlier keys, until `script.jwks` is `None`.
    pub fn rotate_keys_unpublished(&self) {
        let before = self.published_keys();
        self.script(|script| script.jwks = Some(before));
        self.rotate_keys();
    }

    /// Whether the provider accepts a refresh token.
    pub fn knows_refresh_token(&self, token: &str) -> bool {
        self.state.lock().refresh_tokens.contains_key(token)
    }

    /// How many refresh tokens the provider accepts.
    pub fn refresh_tokens(&self) -> usize {
        self.state.lock().refresh_tokens.len()
    }

    /// Forgets all refresh tokens, as if the user's grants were withdrawn.
    pub fn forget_refresh_tokens(&self) {
        self.state.lock().refresh_tokens.clear();
    }

    /// Forgets all access tokens, as after a restart.
    pub fn forget_access_tokens(&self) {
        self.state.lock().access_tokens.clear();
    }

    /// A compact JWS of these claims by the current key, `typ` JWT.
    pub fn sign(&self, claims: Value) -> String {
        let memory = self.state.lock();
        memory.keys.sign(&memory.header("JWT"), &claims)
    }

    /// A compact JWS with these header members; `null` removes one.
    pub fn sign_with_header(&self, header: Value, claims: Value) -> String {
        let memory = self.state.lock();
        let mut own = memory.header("JWT");
        if let (Value::Object(own), Value::Object(header)) = (&mut own, &header) {
            patch(own, header);
        }
        memory.keys.sign(&own, &claims)
    }

    /// A good logout token, patched with these claims; give `sub` or `sid` or both.
    pub fn logout_token(&self, claims: Value) -> String {
        self.logout_token_with_header(json!({}), claims)
    }

    /// The same with these header members; `null` removes one.
    pub fn logout_token_with_header(&self, header: Value, claims: Value) -> String {
        let good = {
            let mut memory = self.state.lock();
            let now = memory.now();
            json!({
                "iss": self.state.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 120, "jti": memory.fresh("jti"),
                "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
            })
        };
        let mut own = good.as_object().cloned().unwrap_or_default();
        patch(&mut own, claims.as_object().unwrap_or(&Claims::new()));
        let mut head = json!({ "typ": "logout+jwt" });
        if let (Value::Object(head), Value::Object(header)) = (&mut head, header) {
            head.extend(header);
        }
        self.sign_with_header(head, Value::Object(own))
    }

    /// A good security event token (RFC 8417), patched with these claims; give `aud`, `sub_id` and `events`. The
    /// discovery document also serves as the transmitter's configuration.
    pub fn security_event(&self, claims: Value) -> String {
        let good = {
            let mut memory = self.state.lock();
            let (now, jti) = (memory.now(), memory.fresh("jti"));
            json!({ "iss": self.state.issuer, "iat": now, "jti": jti })
        };
        let mut own = good.as_object().cloned().unwrap_or_default();
        patch(&mut own, claims.as_object().unwrap_or(&Claims::new()));
        self.sign_with_header(json!({ "typ": "secevent+jwt" }), Value::Object(own))
    }

    /// A good JWT access token (RFC 9068) of the client `machine`, patched with these claims; give `aud`.
    pub fn access_token(&self, claims: Value) -> String {
        self.access_token_with_header(json!({}), claims)
    }

    /// The same with these header members; `null` removes one.
    pub fn access_token_with_header(&self, header: Value, claims: Value) -> String {
        let good = {
            let mut memory = self.state.lock();
            let now = memory.now();
            json!({
                "iss": self.state.issuer, "sub": "alice", "client_id": "machine", "iat": now, "exp": now + 300,
                "jti": memory.fresh("jti"),
            })
        };
        let mut own = good.as_object().cloned().unwrap_or_default();
        patch(&mut own, claims.as_object().unwrap_or(&Claims::new()));
        let mut head = json!({ "typ": "at+jwt" });
        if let (Value::Object(head), Value::Object(header)) = (&mut head, header) {
            head.extend(header);
        }
        self.sign_with_header(head, Value::Object(own))
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
            *running = Some(run(listener, server::router(self.state.clone())));
        }
    }
}

impl Drop for ScriptedProvider {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Serves on its own thread.
pub(crate) fn run(listener: TcpListener, router: axum::Router) -> Running {
    listener.set_nonblocking(true).expect("a non-blocking listener");
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime for the provider");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener on the runtime");
            let serving = axum::serve(listener, router);
            tokio::select! {
                _ = async { serving.await } => {}
                _ = stopped => {}
            }
        });
        // dropping the runtime closes every connection
    });
    Running { stop, thread }
}
