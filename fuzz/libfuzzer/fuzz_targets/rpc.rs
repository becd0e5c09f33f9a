//! The first byte chooses the method that receives the rest.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::fuzz::<fuzz::rpc::Rpc>(data));
