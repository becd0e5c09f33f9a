//! The first byte chooses what of the edge the rest is sent to.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::fuzz::<fuzz::edge::Entry>(data));
