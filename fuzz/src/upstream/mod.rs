//! Sends any client bytes to a real edge, and checks the bytes that it sends to an upstream.
//!
//! Invariants for every input
//! - Connections to the upstream carry messages with one possible end for a strict reader, and no more.
//! - No client header frames a message, sets an identity or overrides the method, in any spelling.
//! - Without a session, only preflights pass a guard, and they have no body.

mod message;
mod world;

use std::sync::OnceLock;

use crate::{Mutator, Target};
use world::World;

/// When the upstream answers, and its guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// It answers after the whole body.
    Late,
    /// It answers after the head.
    Early,
    /// It has a guard; the client has no session.
    Guarded,
}

/// The outcome of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// At least one whole message reached the upstream.
    PassedOn,
    /// No message did; the edge answered with this status, 0 for none.
    Refused(u16),
}

/// Parts of requests, and text that confuses readers.
const WORDS: [&str; 52] = [
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "\t",
    ":",
    ",",
    ";",
    "é",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    "get",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    " HTTP/2.0\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 5, 5\r\n",
    "Content_Length: 5\r\n",
    "content.length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer_Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Connection: close\r\n",
    "Connection: upgrade\r\n",
    "Connection: content-length, x-auth-subject\r\n",
    "Upgrade: websocket\r\n",
    "Upgrade: h2c\r\n",
    "HTTP2-Settings: AAMAAABk\r\n",
    "Expect: 100-continue\r\n",
    "TE: trailers\r\n",
    "Trailer: x-auth-subject\r\n",
    "Keep-Alive: 5\r\n",
    "Proxy-Connection: keep-alive\r\n",
    "X-Auth-Subject: admin\r\n",
    "x_auth_subject: admin\r\n",
    "X-HTTP-Method-Override: DELETE\r\n",
    "Origin: https://evil.example\r\n",
    "Access-Control-Request-Method: PUT\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "0\r\nX-Auth-Subject: admin\r\n\r\n",
    "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    "Host: b\r\n",
];

impl Target for Upstream {
    type Outcome = Outcome;

    const ALL: &'static [Self] = &[Self::Late, Self::Early, Self::Guarded];

    const SEEDS: &'static str = "upstream";

    fn check(self, input: &[u8]) -> Outcome {
        static WORLD: OnceLock<World> = OnceLock::new();
        WORLD.get_or_init(World::start).check(self, input)
    }

    fn derived(self, mutator: &mut Mutator, input: &[u8], other: &[u8]) -> Vec<u8> {
        mutator.text(input, other, &WORDS)
    }
}
