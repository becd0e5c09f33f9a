//! Mistakes in the settings, collected so that all are reported at once.

use std::fmt;

use super::{Service, Source};

/// A remark on one setting: a mistake, or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingNotice {
    /// The environment variable.
    pub name: String,
    /// The flag of a mistake, with its dashes; empty without a flag.
    pub(crate) flag: String,
    /// The mistake and its fix, or the warning.
    pub text: String,
}

impl fmt::Display for SettingNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.flag.is_empty() {
            return write!(f, "{}: {}", self.name, self.text);
        }
        write!(f, "{} ({}): {}", self.name, self.flag, self.text)
    }
}

/// Every mistake in the settings; there is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// The mistakes, in the order they were found.
    pub mistakes: Vec<SettingNotice>,
    /// The warnings found on the way.
    pub warnings: Vec<SettingNotice>,
}

impl std::error::Error for SettingsError {}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.mistakes.len();
        writeln!(
            f,
            "{count} setting{} wrong:",
            if count == 1 { " is" } else { "s are" }
        )?;
        for mistake in &self.mistakes {
            writeln!(f, "  {mistake}")?;
        }
        Ok(())
    }
}

/// `text` on one line, with the values of secrets removed.
pub(super) fn scrubbed(service: &Service, source: &Source, text: &str) -> String {
    // Shorter values are replaced only when they stand alone: "a" is part of many words.
    const SHORTEST_REPLACED_ANYWHERE: usize = 4;
    let mut text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    for setting in service.settings().filter(|setting| setting.secret) {
        let raw = source.text(setting.name).unwrap_or_default();
        for member in std::iter::once(raw).chain(raw.split([',', '\n'])).map(str::trim) {
            if member.len() >= SHORTEST_REPLACED_ANYWHERE {
                text = text.replace(member, "…");
            }
        }
    }
    text
}
