//! The script: what the provider says and how it misbehaves.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::Endpoint;

/// Members to set, or to remove with `null`.
pub type Claims = Map<String, Value>;

/// The shape of issued ID tokens.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum IdTokenShape {
    /// A correct token.
    #[default]
    Right,
    /// One bit of the signature is wrong.
    BadSignature,
    /// `alg` none and no signature.
    AlgNone,
    /// HS256 with the text of the public key as the secret.
    Hs256WithPublicKey,
    /// Signed by a key that is not in the JWKS, under an unknown `kid`.
    UnknownKid,
    /// No `kid` in the header.
    NoKid,
    /// Signed by a foreign key, with its public half in the header (`jwk`), under the right `kid`.
    EmbeddedJwk,
    /// A header with `crit`.
    Critical,
    /// Exactly this text.
    Raw(String),
}

/// A whole answer that replaces the usual one.
#[derive(Clone, Debug)]
pub enum Answer {
    /// This answer.
    Http {
        /// Status code.
        status: u16,
        /// Header fields.
        headers: Vec<(String, String)>,
        /// Body.
        body: Vec<u8>,
    },
    /// Never answers; the connection stays open.
    Hang,
}

impl Answer {
    /// An empty answer of that status.
    pub fn status(status: u16) -> Self {
        Self::Http {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A JSON answer.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    /// Any text of any content type.
    pub fn text(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::Http {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.into(),
        }
    }

    /// A redirect.
    pub fn redirect(location: &str) -> Self {
        Self::Http {
            status: 302,
            headers: vec![("location".to_owned(), location.to_owned())],
            body: Vec::new(),
        }
    }
}

/// The provider's behaviour. The default is good behaviour.
#[derive(Clone, Debug)]
pub struct Script {
    /// The provider's clock in seconds since the Unix epoch; `None` is the real one.
    pub now: Option<u64>,
    /// Subject that signs in next.
    pub sub: String,
    /// Claims about that person, in the ID token and in userinfo.
    pub user: Claims,
    /// `sid` of the next login; `None` makes a fresh one per login, and a patch can remove it.
    pub sid: Option<String>,
    /// JWS algorithm: RS, PS, ES or HS with 256, 384 or 512, or EdDSA.
    pub algorithm: &'static str,
    /// Patches the discovery document.
    pub metadata: Claims,
    /// Whether pushed authorization requests are offered.
    pub offer_par: bool,
    /// Replaces the keys of the JWKS.
    pub jwks: Option<Value>,
    /// OAuth error of the authorization endpoint instead of a code.
    pub authorize_error: Option<String>,
    /// `iss` of the authorization response; `None` is the issuer.
    pub callback_iss: Option<String>,
    /// Leaves `iss` out of the authorization response.
    pub no_callback_iss: bool,
    /// Further fields of a posted authorization response, such as Apple's `user`.
    pub posted: Vec<(&'static str, String)>,
    /// Patches the ID token's claims.
    pub claims: Claims,
    /// Patches the ID token's header before signing.
    pub header: Claims,
    /// Shape of ID tokens.
    pub id_token: IdTokenShape,
    /// Patches responses to the code grant.
    pub token: Claims,
    /// Patches responses to the refresh grant.
    pub refresh: Claims,
    /// OAuth error of the refresh grant (status 400).
    pub refresh_error: Option<String>,
    /// Patches responses to token exchanges.
    pub exchange: Claims,
    /// OAuth error of token exchanges (status 400).
    pub exchange_error: Option<String>,
    /// Patches the claims of assertions for other servers (ID-JAG).
    pub id_jag: Claims,
    /// Patches the header of such assertions.
    pub id_jag_header: Claims,
    /// Patches responses to assertions of another provider (RFC 7523).
    pub jwt_bearer: Claims,
    /// OAuth error of such grants (status 400).
    pub jwt_bearer_error: Option<String>,
    /// Header and claims that a client's assertion must have; the answer to any other is `invalid_client`.
    pub assertion: Claims,
    /// Resources for which a refresh returns no token (RFC 8707).
    pub unknown_resources: Vec<String>,
    /// Whether a refresh returns a new ID token.
    pub refresh_id_token: bool,
    /// Whether a refresh token is used once; a second use revokes its successors.
    pub rotate_refresh_tokens: bool,
    /// Patches userinfo.
    pub userinfo: Claims,
    /// Whether userinfo is a signed JWT.
    pub userinfo_jwt: bool,
    /// Patches the introspection answer for a known token.
    pub introspection: Claims,
    /// Whether introspection answers with a signed JWT (RFC 9701).
    pub introspection_jwt: bool,
    /// Whether tokens are bound to a key (RFC 9449): token requests and userinfo need a proof.
    pub dpop: bool,
    /// The nonce that proofs must repeat; `None` requires none.
    pub dpop_nonce: Option<String>,
    /// The person's groups, which the provider lists in pages of 100.
    pub groups: Vec<String>,
    /// Whole answers by endpoint.
    pub answers: HashMap<Endpoint, Answer>,
    /// How long an endpoint waits before any effect.
    pub delays: HashMap<Endpoint, Duration>,
}

impl Default for Script {
    fn default() -> Self {
        let mut user = Claims::new();
        user.insert("name".to_owned(), json!("Alice Example"));
        user.insert("email".to_owned(), json!("alice@example.com"));
        user.insert("email_verified".to_owned(), json!(true));
        Self {
            now: None,
            sub: "alice".to_owned(),
            user,
            sid: None,
            algorithm: "RS256",
            metadata: Claims::new(),
            offer_par: false,
            jwks: None,
            authorize_error: None,
            callback_iss: None,
            no_callback_iss: false,
            posted: Vec::new(),
            claims: Claims::new(),
            header: Claims::new(),
            id_token: IdTokenShape::Right,
            token: Claims::new(),
            refresh: Claims::new(),
            refresh_error: None,
            exchange: Claims::new(),
            exchange_error: None,
            id_jag: Claims::new(),
            id_jag_header: Claims::new(),
            jwt_bearer: Claims::new(),
            jwt_bearer_error: None,
            assertion: Claims::new(),
            unknown_resources: Vec::new(),
            refresh_id_token: true,
            rotate_refresh_tokens: true,
            userinfo: Claims::new(),
            userinfo_jwt: false,
            introspection: Claims::new(),
            introspection_jwt: false,
            dpop: false,
            dpop_nonce: None,
            groups: Vec::new(),
            answers: HashMap::new(),
            delays: HashMap::new(),
        }
    }
}

/// Applies a patch: sets members, and removes those that are `null`.
pub(crate) fn patch(target: &mut Claims, patch: &Claims) {
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            target.insert(name.clone(), value.clone());
        }
    }
}
