//! Writes `proto/src/gen` from the `.proto` files. `make gen` runs it; `make lint` fails on a difference.
//!
//! protox compiles descriptors in Rust: no protoc is needed. Service builds run no code generator.

use std::path::Path;

use prost::Message as _;

const FILES: [&str; 5] = [
    "session/v1/error_reason.proto",
    "session/v1/session.proto",
    "session/v1/session_service.proto",
    "session/v1/browser_session_service.proto",
    "session/v1/operator_session_service.proto",
];

/// Messages (and oneofs) with a secret or personal claims: `redacted.rs` implements their `Debug`.
const SECRET_BEARING: [&str; 15] = [
    "Session",
    "TokenSet",
    "BeginSignInResponse",
    "CreateSessionRequest",
    "CreateSessionResponse",
    "GetSessionRequest",
    "RollSessionRequest",
    "UpdateSessionRequest",
    "GetAccessTokenRequest",
    "GetAccessTokenResponse",
    "ReceiveSecurityEventRequest",
    "EndSessionRequest",
    "EndSessionResponse",
    "GetSessionRequest.by",
    "EndSessionRequest.by",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = root.join("src/gen");
    let descriptors = protox::Compiler::new([root])?
        .include_imports(true)
        .include_source_info(true)
        .open_files(FILES)?
        .file_descriptor_set();
    tonic_prost_build::configure()
        .out_dir(&out)
        // Boxed, because code moves an answer many times before it is stored.
        .boxed(".session.v1.GetSessionResponse.session")
        .boxed(".session.v1.RollSessionResponse.session")
        .skip_debug(SECRET_BEARING.map(|name| format!(".session.v1.{name}")))
        .compile_fds(descriptors.clone())?;
    // For server reflection: the same descriptors without the source positions.
    let mut reflected = descriptors;
    for file in &mut reflected.file {
        file.source_code_info = None;
    }
    // Write only changed bytes: Cargo would compile every crate that depends on this one again.
    let (file, bytes) = (out.join("descriptors.bin"), reflected.encode_to_vec());
    if std::fs::read(&file).ok().as_deref() != Some(&bytes[..]) {
        std::fs::write(file, bytes)?;
    }
    Ok(())
}
