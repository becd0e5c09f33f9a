//! The settings of the audit stream.

use std::path::PathBuf;
use std::time::Duration;

use super::chain::{ChainKey, KEY_BYTES_MIN};
use crate::audit::SubjectForm;
use crate::settings::Reader;

/// Least bytes of a key that hashes subjects.
const SUBJECT_KEY_BYTES_MIN: usize = 16;

/// How often the chain of a process to which nothing happens goes on: what is cut off at its end is noticed by the missing of these.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(300);

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

/// What the stream is made with.
#[derive(Clone, Debug)]
pub(crate) struct AuditSettings {
    /// Where records go.
    pub(crate) destination: Destination,
    /// What chains them.
    pub(crate) key: ChainKey,
    /// How subjects stand in them.
    pub(crate) subjects: SubjectForm,
    /// The time from one checkpoint to the next.
    pub(crate) checkpoint_interval: Duration,
}

impl AuditSettings {
    /// Reads `AUDIT_LOG`, `AUDIT_KEY`, `AUDIT_SUBJECT` and `AUDIT_SUBJECT_KEY`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let destination = match reader.text("AUDIT_LOG").as_str() {
            "off" => Destination::Off,
            "stdout" => Destination::Stdout,
            path => Destination::File(PathBuf::from(path)),
        };
        Self {
            destination,
            key: chain_keys(reader).into_iter().next().unwrap_or_default(),
            subjects: subject_form(reader),
            checkpoint_interval: CHECKPOINT_INTERVAL,
        }
    }
}

/// The keys of `AUDIT_KEY`, the first of which chains; none without it.
pub fn chain_keys(reader: &mut Reader<'_>) -> Vec<ChainKey> {
    let keys = reader.secrets("AUDIT_KEY");
    if keys.iter().any(|key| key.expose().len() < KEY_BYTES_MIN) {
        reader.wrong(
            "AUDIT_KEY",
            format!("needs keys of at least {KEY_BYTES_MIN} characters"),
        );
    }
    keys.iter()
        .map(|key| ChainKey::of(key.expose().as_bytes()))
        .collect()
}

/// How subjects stand in records, by `AUDIT_SUBJECT` and `AUDIT_SUBJECT_KEY`.
pub fn subject_form(reader: &mut Reader<'_>) -> SubjectForm {
    let key = reader.secret("AUDIT_SUBJECT_KEY");
    if key
        .as_ref()
        .is_some_and(|key| key.expose().len() < SUBJECT_KEY_BYTES_MIN)
    {
        reader.wrong(
            "AUDIT_SUBJECT_KEY",
            format!("needs at least {SUBJECT_KEY_BYTES_MIN} characters"),
        );
    }
    match (reader.text("AUDIT_SUBJECT").as_str(), key) {
        ("plain", None) => SubjectForm::Plain,
        ("plain", Some(_)) => {
            reader.wrong("AUDIT_SUBJECT_KEY", "has no meaning with AUDIT_SUBJECT=plain");
            SubjectForm::Plain
        }
        ("hashed", None) => SubjectForm::Hashed,
        ("hashed", Some(key)) => SubjectForm::keyed(key.expose().as_bytes()),
        (_, _) => {
            reader.wrong("AUDIT_SUBJECT", "must be hashed or plain");
            SubjectForm::Hashed
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
    fn nothing_said_is_standard_output_with_hashed_subjects_and_no_key() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.destination, Destination::Stdout);
        assert_eq!(settings.key.algorithm(), "sha256");
        assert!(matches!(settings.subjects, SubjectForm::Hashed));
    }

    #[test]
    fn a_key_that_is_too_short_or_has_no_meaning_is_a_mistake_and_never_shown() {
        let long = "k".repeat(KEY_BYTES_MIN);
        let two = format!("{long},{long}");
        let settings = read(&[
            ("AUDIT_KEY", two.as_str()),
            ("AUDIT_SUBJECT_KEY", "a-key-of-subjects"),
        ])
        .unwrap();
        assert_eq!(settings.key.algorithm(), "hmac-sha256");
        assert!(matches!(settings.subjects, SubjectForm::Keyed(_)));
        let cut = format!("{long},short-secret");
        for (pairs, setting) in [
            (&[("AUDIT_KEY", cut.as_str())][..], "AUDIT_KEY"),
            (&[("AUDIT_SUBJECT_KEY", "short-secret")], "AUDIT_SUBJECT_KEY"),
            (
                &[
                    ("AUDIT_SUBJECT", "plain"),
                    ("AUDIT_SUBJECT_KEY", "a-long-short-secret"),
                ],
                "AUDIT_SUBJECT_KEY",
            ),
            (&[("AUDIT_SUBJECT", "none")], "AUDIT_SUBJECT"),
        ] {
            let wrong = read(pairs).unwrap_err();
            assert!(
                wrong.contains(setting) && !wrong.contains("short-secret"),
                "{wrong}"
            );
        }
    }
}
