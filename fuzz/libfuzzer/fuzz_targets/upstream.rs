//! The first byte chooses the upstream, the rest is what a client sends towards it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::fuzz::<fuzz::upstream::Upstream>(data));
