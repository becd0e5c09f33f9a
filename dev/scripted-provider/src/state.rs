//! The provider's state: script, keys, codes, tokens and calls.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::request_log::RequestLog;
use crate::script::{Claims, IdTokenShape, Script, patch};
use crate::signing::{Keys, encode, half_hash, hmac};
use crate::{CLIENT_ID, Endpoint};

/// A login that waits for its code, or a grant that came from it.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) redirect_uri: String,
    pub(crate) nonce: Option<String>,
    pub(crate) challenge: Option<String>,
    pub(crate) scope: String,
    pub(crate) sub: String,
    pub(crate) sid: String,
    pub(crate) user: Claims,
    pub(crate) auth_time: u64,
}

pub(crate) struct Memory {
    pub(crate) script: Script,
    pub(crate) keys: Keys,
    pub(crate) upcoming: Option<Keys>,
    pub(crate) generation: usize,
    /// How often the provider made new keys under their old names.
    pub(crate) remade: usize,
    pub(crate) counter: u64,
    pub(crate) codes: HashMap<String, Login>,
    pub(crate) access_tokens: HashMap<String, Login>,
    pub(crate) refresh_tokens: HashMap<String, Login>,
    pub(crate) used_refresh_tokens: HashMap<String, Login>,
    pub(crate) pushed: HashMap<String, Vec<(String, String)>>,
    pub(crate) grants: HashMap<String, usize>,
    pub(crate) proofs: HashSet<String>,
    pub(crate) rotations: usize,
    pub(crate) reuses: usize,
}

/// The point at which an endpoint holds requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Held {
    /// No point.
    #[default]
    No,
    /// Before any effect.
    Requests,
    /// After every effect.
    Answers,
}

pub(crate) struct State {
    pub(crate) issuer: String,
    memory: Mutex<Memory>,
    pub(crate) requests: RequestLog<Endpoint>,
    pub(crate) held: HashMap<Endpoint, watch::Sender<Held>>,
    pub(crate) holding: HashMap<Endpoint, watch::Sender<usize>>,
}

impl State {
    pub(crate) fn new(issuer: String) -> Self {
        let memory = Memory {
            script: Script::default(),
            keys: Keys::new(0),
            upcoming: None,
            generation: 0,
            remade: 0,
            counter: 0,
            codes: HashMap::new(),
            access_tokens: HashMap::new(),
            refresh_tokens: HashMap::new(),
            used_refresh_tokens: HashMap::new(),
            pushed: HashMap::new(),
            grants: HashMap::new(),
            proofs: HashSet::new(),
            rotations: 0,
            reuses: 0,
        };
        Self {
            issuer,
            memory: Mutex::new(memory),
            requests: RequestLog::of(Endpoint::ALL),
            held: Endpoint::ALL
                .into_iter()
                .map(|endpoint| (endpoint, watch::Sender::new(Held::No)))
                .collect(),
            holding: Endpoint::ALL
                .into_iter()
                .map(|endpoint| (endpoint, watch::Sender::new(0)))
                .collect(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the endpoint holds calls at that point. Counts the call while the caller stays connected.
    pub(crate) async fn pass(&self, endpoint: Endpoint, point: Held) {
        let mut held = self.held[&endpoint].subscribe();
        if *held.borrow() != point {
            return;
        }
        let _holding = Holding::begin(&self.holding[&endpoint]);
        // `self` owns the sender, so waiting cannot fail.
        let _ = held.wait_for(|held| *held != point).await;
    }
}

/// One request that is held.
struct Holding<'a>(&'a watch::Sender<usize>);

impl<'a> Holding<'a> {
    fn begin(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Memory {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test that owns the clock sets script.now"
    )]
    pub(crate) fn now(&self) -> u64 {
        self.script.now.unwrap_or_else(|| {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map(|since| since.as_secs())
                .unwrap_or_default()
        })
    }

    pub(crate) fn fresh(&mut self, kind: &str) -> String {
        self.counter += 1;
        format!("{kind}-{}", self.counter)
    }

    /// The header a token of this script gets, with `typ`.
    pub(crate) fn header(&self, typ: &str) -> Value {
        let algorithm = self.script.algorithm;
        json!({ "alg": algorithm, "kid": self.keys.kid(algorithm), "typ": typ })
    }

    pub(crate) fn id_token(
        &self,
        issuer: &str,
        login: &Login,
        nonce: Option<&str>,
        access_token: &str,
    ) -> String {
        let now = self.now();
        let mut claims = login.user.clone();
        let own = json!({
            "iss": issuer, "sub": login.sub, "aud": CLIENT_ID, "iat": now, "exp": now + 3600, "sid": login.sid,
            "auth_time": login.auth_time, "at_hash": half_hash(self.script.algorithm, access_token),
        });
        patch(&mut claims, own.as_object().unwrap_or(&Claims::new()));
        if let Some(nonce) = nonce {
            claims.insert("nonce".to_owned(), json!(nonce));
        }
        patch(&mut claims, &self.script.claims);
        self.shape(&Value::Object(claims))
    }

    fn shape(&self, claims: &Value) -> String {
        let mut header = self.header("JWT");
        if let Value::Object(members) = &mut header {
            patch(members, &self.script.header);
        }
        let foreign = || Keys::new(self.generation + 1);
        match &self.script.id_token {
            IdTokenShape::Right => self.keys.sign(&header, claims),
            IdTokenShape::BadSignature => {
                let token = self.keys.sign(&header, claims);
                let (signed, _) = token.rsplit_once('.').unwrap_or_default();
                format!("{signed}.{}", encode(&[7; 256]))
            }
            IdTokenShape::AlgNone => {
                header["alg"] = json!("none");
                format!(
                    "{}.{}.",
                    encode(header.to_string().as_bytes()),
                    encode(claims.to_string().as_bytes())
                )
            }
            IdTokenShape::Hs256WithPublicKey => {
                header["alg"] = json!("HS256");
                let (head, body) = (header.to_string(), claims.to_string());
                let signed = format!("{}.{}", encode(head.as_bytes()), encode(body.as_bytes()));
                let key = self.keys.rsa_public()["n"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                format!("{signed}.{}", encode(&hmac(key.as_bytes(), signed.as_bytes())))
            }
            IdTokenShape::UnknownKid => {
                header["kid"] = json!("nobody-knows-me");
                foreign().sign(&header, claims)
            }
            IdTokenShape::NoKid => {
                if let Value::Object(members) = &mut header {
                    members.remove("kid");
                }
                self.keys.sign(&header, claims)
            }
            IdTokenShape::EmbeddedJwk => {
                let foreign = foreign();
                header["jwk"] = foreign.rsa_public();
                foreign.sign(&header, claims)
            }
            IdTokenShape::Critical => {
                header["crit"] = json!(["exp"]);
                self.keys.sign(&header, claims)
            }
            IdTokenShape::Raw(text) => text.clone(),
        }
    }
}
