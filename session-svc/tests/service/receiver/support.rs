//! A transmitter, and two replicas that accept its events.

use std::sync::Arc;

use chassis::clock::Clock as _;
use scripted_provider::ScriptedProvider;
use serde_json::{Value, json};
use session_proto::timestamp;
use session_proto::v1;
use tonic::Status;

use crate::failing_store::FailingStore;
use crate::support::*;

pub(super) const OURS: &str = "https://edge.example/signals";
const CAEP: &str = "https://schemas.openid.net/secevent/caep/event-type/";
const SSF: &str = "https://schemas.openid.net/secevent/ssf/event-type/";
const RISC: &str = "https://schemas.openid.net/secevent/risc/event-type/";

/// A world in which two replicas accept a transmitter's events.
pub(super) struct Listening {
    pub(super) world: World,
    pub(super) transmitter: ScriptedProvider,
    pub(super) one: Client,
    pub(super) two: Client,
}

/// The answer to a transmitter: empty if its event was accepted, or an error code.
pub(super) type Answer = Result<String, Status>;

/// The table's line that makes the provider itself the transmitter.
pub(super) const IS_PROVIDER: &str = "# the transmitter is the provider";

/// The table of a transmitter with these further lines.
pub(super) fn table(transmitter: &ScriptedProvider, lines: &str) -> String {
    let issuer = transmitter.issuer();
    let provider = if lines == IS_PROVIDER { issuer } else { ISSUER };
    format!(
        "[[transmitter]]\nid = \"idp\"\nissuer = \"{issuer}\"\nprovider = \"{provider}\"\naudience = \"{OURS}\"\n\
         configuration_url = \"{issuer}/.well-known/openid-configuration\"\n{lines}\n"
    )
}

pub(super) async fn listening() -> Listening {
    listening_with("").await
}

/// With further lines in the table of the transmitter, or below it.
pub(super) async fn listening_with(lines: &str) -> Listening {
    let world = world().await;
    let transmitter = ScriptedProvider::start();
    transmitter.script(|script| script.now = Some(world.clock.now_secs()));
    let file = table(&transmitter, lines);
    let store = || Arc::new(world.store.clone());
    let (one, two) = (
        world.listening(store(), &file).await,
        world.listening(store(), &file).await,
    );
    Listening {
        world,
        transmitter,
        one,
        two,
    }
}

/// Alice, who signed in this many seconds ago by the provider's clock.
pub(super) fn alice_since(world: &World, secs: u64) -> v1::CreateSessionRequest {
    v1::CreateSessionRequest {
        authenticated_at: Some(timestamp::from_ms(world.clock.now_ms() - secs * 1_000)),
        ..alice()
    }
}

/// A person at our provider.
pub(super) fn person(subject: &str) -> Value {
    json!({ "format": "iss_sub", "iss": ISSUER, "sub": subject })
}

/// The URI of an event of CAEP or RISC.
pub(super) fn event_type(name: &str) -> String {
    let of_risc = [
        "account",
        "identifier",
        "credential-compromise",
        "sessions",
        "recovery",
        "opt",
    ];
    let is_risc = of_risc.iter().any(|begin| name.starts_with(begin));
    format!("{}{name}", if is_risc { RISC } else { CAEP })
}

impl Listening {
    pub(super) async fn create(&mut self, request: v1::CreateSessionRequest) -> String {
        let created = self.one.create_session(request).await.unwrap();
        created.into_inner().session_id
    }

    /// Alice with one session, signed in a minute ago.
    pub(super) async fn alice(&mut self) -> String {
        let alice = alice_since(&self.world, 60);
        self.create(alice).await
    }

    /// Another replica, on a store with scripted failures.
    pub(super) async fn failing(&self) -> (FailingStore, Client) {
        let store = FailingStore::over(&self.world);
        let file = table(&self.transmitter, "");
        let replica = self.world.listening(Arc::new(store.clone()), &file).await;
        (store, replica)
    }

    /// A token about this subject.
    pub(super) fn token(&self, name: &str, sub_id: &Value, said: &Value) -> String {
        self.patched(name, sub_id, said, &json!({}))
    }

    /// The same, with claims of its own.
    pub(super) fn patched(&self, name: &str, sub_id: &Value, said: &Value, patch: &Value) -> String {
        let now = self.world.clock.now_secs();
        self.transmitter.script(|script| script.now = Some(now));
        let mut claims = json!({ "aud": OURS, "sub_id": sub_id, "events": { (event_type(name)): said } });
        for (name, value) in patch.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.transmitter.security_event(claims)
    }

    /// A token about a stream.
    pub(super) fn about_stream(&self, name: &str, said: &Value) -> String {
        let sub_id = json!({ "format": "opaque", "id": "stream-1" });
        let events = json!({ "events": { (format!("{SSF}{name}")): said } });
        self.patched("session-revoked", &sub_id, &json!({}), &events)
    }

    /// Sends an event about Alice, which is accepted.
    pub(super) async fn happens(&mut self, name: &str, said: &Value) {
        let token = self.token(name, &person("alice"), said);
        assert_eq!(self.push(&token).await.unwrap(), "", "{name}");
    }

    pub(super) async fn push(&mut self, token: &str) -> Answer {
        pushed(&mut self.one, token, "").await
    }

    /// The session, if it exists.
    pub(super) async fn session(&mut self, id: &str) -> Option<v1::Session> {
        let read = self.two.get_session(by_id(id)).await;
        match read {
            Ok(read) => read.into_inner().session.map(|session| *session),
            Err(status) => {
                assert_eq!(why(&status), v1::ErrorReason::ErrMissingSession, "{status}");
                None
            }
        }
    }

    pub(super) async fn is_there(&mut self, id: &str) -> bool {
        self.session(id).await.is_some()
    }

    /// Whether the session requires a new sign-in.
    pub(super) async fn owes(&mut self, id: &str) -> bool {
        self.session(id).await.unwrap().sign_in_demand.is_some()
    }
}

pub(super) async fn pushed(replica: &mut Client, token: &str, authorization: &str) -> Answer {
    let request = v1::ReceiveSecurityEventRequest {
        token: token.to_owned(),
        authorization: authorization.to_owned(),
        revocation: None,
    };
    let answer = within(replica.receive_security_event(request)).await?;
    Ok(answer.into_inner().error_code)
}

/// The reason of a failure.
pub(super) fn why(status: &Status) -> v1::ErrorReason {
    session_proto::error::reason_of(status).unwrap()
}
