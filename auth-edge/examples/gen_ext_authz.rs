//! Writes `auth-edge/src/gateway/ext_authz/gen` from `auth-edge/proto`. `make gen` runs it; `make lint` compares.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::Compiler::new([root.join("proto")])?
        .include_imports(true)
        .include_source_info(true)
        .open_files(["envoy/service/auth/v3/external_auth.proto"])?
        .file_descriptor_set();
    tonic_prost_build::configure()
        .out_dir(root.join("src/gateway/ext_authz/gen"))
        .include_file("mod.rs")
        .compile_fds(descriptors)?;
    Ok(())
}
