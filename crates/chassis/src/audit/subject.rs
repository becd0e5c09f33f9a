//! How a person's subject stands in records.
//!
//! A keyed hash lets whoever has the key find a person's records, and nobody else guess whose they are. Without a key the hash
//! still keeps the subject itself out of records, but whoever knows or guesses a subject can confirm it.

use std::sync::OnceLock;

use ring::{digest, hmac};

/// Keeps the hashes of subjects apart from every other use of the same key.
const CONTEXT: &[u8] = b"vestibule audit subject v1\0";

/// How the subject stands in records.
#[derive(Clone, Debug, Default)]
pub enum SubjectForm {
    /// As the provider gives it.
    Plain,
    /// As a hash of issuer and subject.
    #[default]
    Hashed,
    /// As a hash of issuer and subject that needs a key. What is printed of a key is its algorithm.
    Keyed(hmac::Key),
}

impl SubjectForm {
    /// With the key of these bytes.
    #[must_use]
    pub(crate) fn keyed(key: &[u8]) -> Self {
        Self::Keyed(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// What stands in records for a subject of an issuer.
    #[must_use]
    pub fn shown(&self, issuer: &str, subject: &str) -> String {
        // No issuer identifier holds a zero byte, so two pairs never make the same text.
        let parts = [CONTEXT, issuer.as_bytes(), b"\0", subject.as_bytes()];
        match self {
            Self::Plain => subject.to_owned(),
            Self::Hashed => {
                let mut context = digest::Context::new(&digest::SHA256);
                parts.iter().for_each(|part| context.update(part));
                format!(
                    "sha256:{}",
                    base16ct::lower::encode_string(context.finish().as_ref())
                )
            }
            Self::Keyed(key) => {
                let mut context = hmac::Context::with_key(key);
                parts.iter().for_each(|part| context.update(part));
                format!(
                    "hmac-sha256:{}",
                    base16ct::lower::encode_string(context.sign().as_ref())
                )
            }
        }
    }
}

/// The form of this process: as where log records go, a property of the process and of nothing in it.
static FORM: OnceLock<SubjectForm> = OnceLock::new();

/// Says how subjects stand in the records of this process; a later call changes nothing.
pub(crate) fn show_as(form: SubjectForm) {
    let _ = FORM.set(form);
}

/// What stands in records of this process for a subject of an issuer.
pub(super) fn shown(issuer: &str, subject: &str) -> String {
    match FORM.get() {
        Some(form) => form.shown(issuer, subject),
        None => SubjectForm::default().shown(issuer, subject),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_belongs_to_one_person_at_one_issuer_and_to_one_key() {
        let shown = |form: &SubjectForm| {
            [
                ("https://a.example", "alice"),
                ("https://b.example", "alice"),
                ("https://a.example", "bob"),
            ]
            .map(|(issuer, subject)| form.shown(issuer, subject))
        };
        let (one, two) = (SubjectForm::keyed(b"one"), SubjectForm::keyed(b"two"));
        let mut all: Vec<String> = [&SubjectForm::Hashed, &one, &two]
            .into_iter()
            .flat_map(shown)
            .collect();
        assert!(
            all.iter()
                .all(|hash| !hash.contains("alice") && hash.contains(':'))
        );
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 9);
        assert_eq!(shown(&one), shown(&SubjectForm::keyed(b"one")));
        assert_eq!(SubjectForm::Plain.shown("https://a.example", "alice"), "alice");
    }
}
