//! Whatever bytes a client can send, to a real edge; checked are the bytes that leave it towards an upstream.
//!
//! What has to hold, whatever is sent
//! - Each connection to the upstream carries messages that a strict reader sees the one end of, and nothing behind them.
//! - No header of the client's frames a message, says who somebody is, or makes another method of it, in whatever spelling.
//! - Through a guard, without a session, comes nothing but preflights, which have no body.

mod message;
mod world;

use std::sync::OnceLock;

use crate::{Mutator, Target};
use world::World;

/// When the upstream answers, and what it stands behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// It answers when it has the whole body.
    Late,
    /// It answers as soon as it has the head.
    Early,
    /// It stands behind a guard; the client has no session.
    Guarded,
}

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// At least one whole message reached the upstream.
    PassedOn,
    /// None did; the edge answered with this status, 0 for none.
    Refused(u16),
}

/// What requests are made of, and what their readers stumble over.
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
