//! The first byte chooses the upstream; a client sends the rest towards it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::fuzz::<fuzz::upstream::Upstream>(data));
