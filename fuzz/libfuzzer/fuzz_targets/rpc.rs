//! The first byte chooses the method, the rest is sent to it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::fuzz::<fuzz::rpc::Rpc>(data));
