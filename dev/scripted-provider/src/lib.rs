//! An OpenID provider for tests. It behaves well until a script makes it misbehave in one respect, and
//! counts every call.
//!
//! ```no_run
//! # async fn example() {
//! use scripted_provider::{Answer, Endpoint, IdTokenShape, ScriptedProvider};
//! use serde_json::json;
//! use std::time::Duration;
//!
//! let provider = ScriptedProvider::start();              // own thread, http://127.0.0.1:<port>
//! provider.issuer();                                     // OIDC_ISSUER_URL
//! scripted_provider::CLIENT_ID;                          // OIDC_CLIENT_ID
//! scripted_provider::CLIENT_SECRET;                      // OIDC_CLIENT_SECRET, basic or post
//!
//! // Everything the provider says can be changed at run time; `reset()` goes back to good behaviour.
//! provider.script(|script| {
//!     script.now = Some(1_700_000_000);                  // its clock, in seconds; None is the real one
//!     script.sub = "bob".into();                         // who signs in next
//!     script.sid = Some("sid-7".into());                 // None: a fresh one per login (`sid-1`, `sid-2`, …)
//!     script.claims.insert("iss".into(), json!("https://evil.example"));  // patches the ID token, null removes
//!     script.token.insert("expires_in".into(), json!(null));             // patches code token responses
//!     script.refresh.insert("access_token".into(), json!(null));         // patches refresh responses
//!     script.userinfo.insert("sub".into(), json!("mallory"));            // patches userinfo
//!     script.metadata.insert("end_session_endpoint".into(), json!(null)); // patches the discovery document
//!     script.id_token = IdTokenShape::BadSignature;      // AlgNone, UnknownKid, NoKid, Hs256WithPublicKey, …
//!     script.refresh_error = Some("invalid_grant".into());
//!     script.authorize_error = Some("access_denied".into());
//!     script.callback_iss = Some("https://evil.example".into());          // default: the issuer
//!     script.answers.insert(Endpoint::Token, Answer::status(500));        // replaces the whole answer
//!     script.answers.insert(Endpoint::Token, Answer::Hang);               // never answers
//!     script.delays.insert(Endpoint::Token, Duration::from_secs(8));      // answers late
//! });
//! provider.rotate_keys();                                // new key, new kid; the old one is gone from the JWKS
//! provider.remake_keys();                                // new key, old kid
//! provider.publish_key();                                // the JWKS carries the next key before it is used
//! let gate = provider.hold(Endpoint::Token);             // answers wait until `gate` is released or dropped
//! provider.wait_for_calls(Endpoint::Token, 1).await;     // until a call has arrived (held or not)
//! gate.release();
//! let gate = provider.hold_answers(Endpoint::Token);     // done, rotated, and the answer waits
//! provider.wait_for_held(Endpoint::Token, 0).await;      // until no caller waits for an answer
//! drop(gate);
//! let tokens = provider.sign_in("openid email");     // tokens without a browser
//! (provider.rotations(), provider.reuses());             // refresh tokens exchanged, and used again
//! provider.calls(Endpoint::Token);                       // how many calls came
//! provider.grants("refresh_token");                      // token calls of that grant type
//! provider.requests(Endpoint::Token);                    // the last 100: method, query, form, headers
//! provider.stop();                                       // connection refused; `start_again()` keeps the port
//! let token = provider.logout_token(json!({ "sub": "bob", "sid": "sid-7" })); // further claims patch it
//! let token = provider.access_token(json!({ "aud": "https://api.example" })); // as an API client presents it
//! provider.sign(json!({ "any": "claims" }));             // a JWS by the current key
//! # }
//! ```
//!
//! Good behaviour: discovery (endpoints at unconventional paths), JWKS, `authorize` (302 at once with `code`,
//! `state`, `iss`; a self-submitting form for `response_mode=form_post`), `token` (client authentication, PKCE
//! S256, single-use codes, refresh tokens rotated with reuse detection), `userinfo`, `end_session`, revocation,
//! PAR (not advertised by default: `script.offer_par`). It signs RS256 by default; `script.algorithm` accepts
//! all of RS, PS, ES and HS, and EdDSA. `script.dpop` binds tokens to a key (RFC 9449).
//!
//! The provider runs on its own thread and runtime, so that a test may pause tokio's clock. Not supported: a user
//! interface, sessions, registration, any security. The keys in its folder are public.

#![expect(
    clippy::expect_used,
    reason = "only tests run this, and a panic is how a test fails"
)]

mod authorize;
mod dpop;
mod provider;
mod recorded;
mod request_log;
mod script;
mod server;
mod signing;
mod state;
mod token;
mod userinfo;

pub use provider::{Gate, ScriptedProvider};
pub use recorded::{Endpoint, Recorded};
pub use script::{Answer, Claims, IdTokenShape, Script};

/// The client that every scripted provider knows.
pub const CLIENT_ID: &str = "vestibule";
/// Its secret.
pub const CLIENT_SECRET: &str =
    "scripted-client-secret: with+odd/characters %41 ü, and as long as HS512 wants it";
