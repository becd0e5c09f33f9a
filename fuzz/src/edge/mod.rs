//! Anything a browser, a provider or an impostor can send to a real edge with a real session service.
//!
//! Invariants for every input
//! - The edge answers with a redirect or its own error, never with a fault: no panic, no hang.
//! - Only the answer to the sign-in that this browser began creates a session.
//! - The edge never calls the provider's token endpoint for an incomplete message.
//! - Redirects lead only to our own origin or to the provider.

mod browser;
mod login;
mod party;
mod provider;
pub(crate) mod world;

use std::sync::OnceLock;

use crate::{Mutator, Target};
use world::World;

/// The part of the edge an input is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The query of the callback.
    CallbackQuery,
    /// The posted form of the callback; the first byte chooses the content type.
    CallbackForm,
    /// `Cookie` headers of a callback, one a line.
    TransactionCookie,
    /// `Cookie` headers of a request for the profile, one a line.
    SessionCookie,
    /// The query of the login route: `returnTo`, third-party parameters, and forwarded ones.
    LoginQuery,
    /// The query of the logout route.
    LogoutQuery,
    /// A back-channel logout: a form, or, by the first byte, the claims of a validly signed token.
    LogoutToken,
    /// The answer of the token endpoint; the first byte chooses status and content type.
    TokenResponse,
    /// The same for a refresh.
    RefreshResponse,
    /// An ID token as text, or, by the first byte, claims or header members of a validly signed one.
    IdToken,
    /// The answer of the userinfo endpoint; the first byte chooses status and content type.
    Userinfo,
    /// The discovery document.
    Metadata,
    /// The key set.
    Jwks,
}

/// The edge's reaction to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The edge accepted it.
    Accepted,
    /// The edge rejected it, with this HTTP status; 0 if none.
    Refused(u16),
}

/// Parts of queries, cookies, documents and tokens, and text that confuses readers.
const WORDS: [&str; 48] = [
    "&",
    "=",
    ";",
    "; ",
    "%",
    "%00",
    "%0d%0a",
    "%2f",
    "%5c",
    "+",
    "?",
    "#",
    "/",
    "//",
    "\\",
    "..",
    "@",
    ":",
    "\n",
    "\0",
    "é",
    "\u{feff}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ".",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "e30",
    "\"alg\":\"none\"",
    "\"crit\":[]",
    "https://evil.example",
    "http://127.0.0.1",
    "javascript:",
    "blob:",
    "state=",
    "code=",
    "iss=",
    "error=access_denied",
    "returnTo=",
];

impl Target for Entry {
    type Outcome = Outcome;

    const ALL: &'static [Self] = &[
        Self::CallbackQuery,
        Self::CallbackForm,
        Self::TransactionCookie,
        Self::SessionCookie,
        Self::LoginQuery,
        Self::LogoutQuery,
        Self::LogoutToken,
        Self::TokenResponse,
        Self::RefreshResponse,
        Self::IdToken,
        Self::Userinfo,
        Self::Metadata,
        Self::Jwks,
    ];

    const SEEDS: &'static str = "edge";

    fn check(self, input: &[u8]) -> Outcome {
        static WORLD: OnceLock<World> = OnceLock::new();
        let world = WORLD.get_or_init(World::start);
        match self {
            Self::CallbackQuery => browser::callback_query(world, input),
            Self::CallbackForm => browser::callback_form(world, input),
            Self::TransactionCookie => browser::transaction_cookie(world, input),
            Self::SessionCookie => browser::session_cookie(world, input),
            Self::LoginQuery => browser::login_query(world, input),
            Self::LogoutQuery => browser::logout_query(world, input),
            Self::LogoutToken => provider::logout_token(world, input),
            Self::TokenResponse => provider::token_response(world, input),
            Self::RefreshResponse => party::refresh_response(world, input),
            Self::IdToken => provider::id_token(world, input),
            Self::Userinfo => provider::userinfo(world, input),
            Self::Metadata => party::metadata(world, input),
            Self::Jwks => party::jwks(world, input),
        }
    }

    fn derived(self, mutator: &mut Mutator, input: &[u8], other: &[u8]) -> Vec<u8> {
        mutator.text(input, other, &WORDS)
    }
}
