//! The first byte chooses the method, the rest is sent to it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some((method, input)) = session_fuzz::chosen(data) {
        session_fuzz::rpc(method, input);
    }
});
