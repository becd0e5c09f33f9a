//! Stored records that were cut, changed, swapped, restored or written by another release, and invalid
//! arguments: a defined error, no panic, and no access or damage to other sessions.

mod arguments;
mod payloads;
mod server;
mod support;
