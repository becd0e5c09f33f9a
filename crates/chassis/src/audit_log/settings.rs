//! The setting of the audit log.

use std::path::PathBuf;

use crate::settings::Reader;

/// The destination of audit records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Nowhere.
    Off,
    /// Standard output, among the log records.
    Stdout,
    /// A file of their own.
    File(PathBuf),
}

impl Destination {
    /// Reads `AUDIT_LOG`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        match reader.text("AUDIT_LOG").as_str() {
            "off" => Self::Off,
            "stdout" => Self::Stdout,
            path => Self::File(PathBuf::from(path)),
        }
    }
}
