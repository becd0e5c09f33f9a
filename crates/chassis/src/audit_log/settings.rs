//! The settings of the audit log.

use std::path::PathBuf;

use crate::settings::Reader;

/// Where audit records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Nowhere.
    Off,
    /// Standard output, among the log records.
    Stdout,
    /// A file of their own.
    File(PathBuf),
}

/// The settings of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditSettings {
    /// Where records go.
    pub(crate) destination: Destination,
    /// Whether records contain the subjects of people.
    pub(crate) has_subjects: bool,
}

impl AuditSettings {
    /// Reads `AUDIT_LOG` and `AUDIT_SUBJECT`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let destination = match reader.text("AUDIT_LOG").as_str() {
            "off" => Destination::Off,
            "stdout" => Destination::Stdout,
            path => Destination::File(PathBuf::from(path)),
        };
        let has_subjects = match reader.text("AUDIT_SUBJECT").as_str() {
            "plain" => true,
            "none" => false,
            _ => {
                reader.wrong("AUDIT_SUBJECT", "must be plain or none");
                false
            }
        };
        Self {
            destination,
            has_subjects,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Service, Source};

    static SERVICE: Service = Service {
        name: "chassis-probe",
        prefix: "PROBE_",
        shared_prefix: None,
        about: "A probe.",
        topics: &[],
    };

    fn read(pairs: &[(&str, &str)]) -> Result<AuditSettings, String> {
        let source = Source::from_pairs(&SERVICE, pairs);
        let mut reader = Reader::new(&source);
        let settings = AuditSettings::read(&mut reader);
        let read = reader.finish(settings).map(|(settings, _)| settings);
        read.map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn the_default_is_standard_output_with_subjects() {
        let settings = AuditSettings {
            destination: Destination::Stdout,
            has_subjects: true,
        };
        assert_eq!(read(&[]), Ok(settings));
    }

    #[test]
    fn subjects_are_plain_or_left_out() {
        assert!(!read(&[("AUDIT_SUBJECT", "none")]).unwrap().has_subjects);
        let wrong = read(&[("AUDIT_SUBJECT", "hashed")]).unwrap_err();
        assert!(wrong.contains("AUDIT_SUBJECT"), "{wrong}");
    }
}
