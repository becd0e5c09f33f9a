//! Server reflection: the services and all their messages, including those in failures.

use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic_reflection::server::{Builder, Error};

/// The reflected services. The descriptors' other services belong to the edge.
const SERVED: [&str; 5] = [
    "session.v1.OperatorSessionService",
    "session.v1.SessionService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// The usual folder of the messages in failures: a client that already knows them rejects the same messages
/// in a file with another name.
const GOOGLE_RPC: &str = "google/rpc/";

/// Reflection in either version.
pub(super) fn builder() -> Result<Builder<'static>, Error> {
    let described = [
        session_proto::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let builder = Builder::configure().register_file_descriptor_set(of_failures()?);
    let builder = SERVED
        .into_iter()
        .fold(builder, |builder, name| builder.with_service_name(name));
    Ok(described.into_iter().fold(builder, |builder, set| {
        builder.register_encoded_file_descriptor_set(set)
    }))
}

/// `google.rpc.Status` and its details, in files with their usual names; `tonic_types` omits the folder.
fn of_failures() -> Result<FileDescriptorSet, Error> {
    let mut set = FileDescriptorSet::decode(tonic_types::pb::FILE_DESCRIPTOR_SET)?;
    for file in &mut set.file {
        if file.package() == "google.rpc" && !file.name().contains('/') {
            file.name = Some(format!("{GOOGLE_RPC}{}", file.name()));
        }
    }
    Ok(set)
}
