//! Stored records that were cut, changed, swapped, put back or written by another release, and arguments no sane caller gives:
//! a defined error, never a panic, never another session, and nobody else's session touched.

mod arguments;
mod payloads;
mod server;
mod support;
