//! The first byte chooses the part of the edge that receives the rest.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::fuzz::<fuzz::edge::Entry>(data));
