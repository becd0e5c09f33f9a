//! Reads raw values into the types the services want, collecting mistakes on the way.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use url::Url;

use super::mistakes::scrubbed;
use super::toml_file::{self, FileMistakes};
use super::{Setting, SettingNotice, SettingsError, Source, listen_address};
use crate::secret::{Secret, split_list};

/// Whether 0 has a meaning for a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// 0 is documented to mean something.
    Allowed,
    /// 0 is a mistake.
    Refused,
}

/// A hundred years. Longer durations are typing mistakes, and would overflow later sums.
const MAX_SECS: u64 = 3_155_760_000;

/// Messages show this much of a value.
const MAX_SHOWN_CHARS: usize = 80;

/// Reads settings. After a mistake it records it and returns a harmless value, so that reading continues.
pub struct Reader<'a> {
    source: &'a Source,
    mistakes: Vec<SettingNotice>,
    warnings: Vec<SettingNotice>,
}

impl<'a> Reader<'a> {
    /// Reads from `source`, whose own mistakes and warnings count too.
    pub fn new(source: &'a Source) -> Self {
        Self {
            source,
            mistakes: source.mistakes.clone(),
            warnings: source.warnings.clone(),
        }
    }

    /// The text given, or the default, or the empty text.
    pub fn text(&mut self, name: &str) -> String {
        self.raw(name).unwrap_or_default().to_owned()
    }

    /// The given text or the default, if any.
    pub fn optional_text(&mut self, name: &str) -> Option<String> {
        self.raw(name).map(str::to_owned)
    }

    /// The given text or the default. If there is neither, records a mistake.
    pub fn required_text(&mut self, name: &str) -> String {
        if self.raw(name).is_none() {
            self.missing(name);
        }
        self.text(name)
    }

    /// The members of a comma-separated list, trimmed, empty ones dropped.
    pub fn list(&mut self, name: &str) -> Vec<String> {
        let members = self.raw(name).unwrap_or_default().split(',').map(str::trim);
        members
            .filter(|member| !member.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// A switch: `true` or `false` (also 1/0, yes/no, on/off).
    pub fn flag(&mut self, name: &str) -> bool {
        match self.raw(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "0" | "no" | "off") => false,
            Some("true" | "1" | "yes" | "on") => true,
            Some(_) => {
                self.not_a(name, "true or false");
                false
            }
        }
    }

    /// The value of one of these words, or `otherwise` for any other text.
    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)], otherwise: T) -> T {
        let text = self.text(name).to_ascii_lowercase();
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
            return *value;
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        self.wrong(
            name,
            format!("must be one of {}", words.join(", ").trim_end_matches(", ")),
        );
        otherwise
    }

    /// An absolute URL with a host.
    pub fn url(&mut self, name: &str) -> Option<Url> {
        let url = Url::parse(self.raw(name)?).ok().filter(Url::has_host);
        if url.is_none() {
            self.not_a(name, "an absolute URL such as https://example.com");
        }
        url
    }

    /// Whole seconds.
    pub fn secs(&mut self, name: &str, zero: Zero) -> u64 {
        self.number(name, zero, MAX_SECS, "whole seconds, without a unit")
    }

    /// Whole milliseconds.
    pub fn millis(&mut self, name: &str, zero: Zero) -> u64 {
        self.number(name, zero, MAX_SECS * 1000, "whole milliseconds, without a unit")
    }

    /// A number of things; 0 is allowed.
    pub fn count(&mut self, name: &str) -> usize {
        let number = self.number(name, Zero::Allowed, u64::from(u32::MAX), "a whole number");
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    /// A path. The caller checks whether it exists.
    pub fn path(&mut self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from)
    }

    /// Parses the file of tables that a setting names. Its mistakes are mistakes of the setting.
    pub fn toml_file<T>(
        &mut self,
        name: &str,
        path: &Path,
        parse: impl FnOnce(&str) -> Result<T, FileMistakes>,
    ) -> Option<T> {
        match toml_file::read(path, parse) {
            Ok(value) => Some(value),
            Err(mistakes) => {
                for mistake in mistakes {
                    self.wrong(name, mistake);
                }
                None
            }
        }
    }

    /// An IP address, optionally in brackets, with a port (`localhost` is understood too); `off` means none.
    pub fn socket_addr(&mut self, name: &str) -> Option<SocketAddr> {
        let raw = self.raw(name)?;
        if raw.eq_ignore_ascii_case("off") {
            return None;
        }
        let address = listen_address::parse(raw);
        if address.is_none() {
            self.not_a(name, listen_address::EXPECTED);
        }
        address
    }

    /// A secret, given directly or by its file.
    pub fn secret(&mut self, name: &str) -> Option<Secret<String>> {
        self.raw(name).map(|text| Secret::new(text.to_owned()))
    }

    /// A list of secrets, separated by commas, in a file also by line ends.
    pub fn secrets(&mut self, name: &str) -> Vec<Secret<String>> {
        split_list(self.raw(name).unwrap_or_default())
    }

    /// The file the secret was read from.
    pub fn secret_file(&mut self, name: &str) -> Option<PathBuf> {
        self.declared(name);
        self.source.file(name).cloned()
    }

    /// Whether a value was given, even a wrong one; the default does not count.
    pub fn is_given(&self, name: &str) -> bool {
        self.source.text(name).is_some() || self.source.file(name).is_some()
    }

    /// Whether a mistake of this setting was recorded.
    pub fn is_wrong(&self, name: &str) -> bool {
        self.mistakes.iter().any(|mistake| mistake.name == name)
    }

    /// Records a mistake: what is wrong and what to do.
    pub fn wrong(&mut self, name: &str, text: impl AsRef<str>) {
        let flag = self
            .declared(name)
            .map(|setting| setting.shown_flag(self.source.service.prefixes))
            .unwrap_or_default();
        let text = scrubbed(self.source.service, self.source, text.as_ref());
        let mistake = SettingNotice {
            name: name.to_owned(),
            flag,
            text,
        };
        // Two parts of a program may read the same setting.
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Records a warning.
    pub fn warn(&mut self, name: &str, text: impl AsRef<str>) {
        let text = scrubbed(self.source.service, self.source, text.as_ref());
        let warning = SettingNotice {
            name: name.to_owned(),
            flag: String::new(),
            text,
        };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Returns `value` with all warnings, or the mistakes if there are any.
    pub fn finish<T>(self, value: T) -> Result<(T, Vec<SettingNotice>), SettingsError> {
        if self.mistakes.is_empty() {
            Ok((value, self.warnings))
        } else {
            Err(SettingsError {
                mistakes: self.mistakes,
                warnings: self.warnings,
            })
        }
    }

    fn raw(&mut self, name: &str) -> Option<&'a str> {
        let default = self.declared(name)?.default;
        let raw = self.source.text(name).unwrap_or(default).trim();
        (!raw.is_empty()).then_some(raw)
    }

    fn declared(&mut self, name: &str) -> Option<&'static Setting> {
        let setting = self.source.service.setting(name);
        if setting.is_none() && !self.mistakes.iter().any(|mistake| mistake.name == name) {
            let text = format!("is read but not declared by {}", self.source.service.name);
            self.mistakes.push(SettingNotice {
                name: name.to_owned(),
                flag: String::new(),
                text,
            });
        }
        setting
    }

    fn number(&mut self, name: &str, zero: Zero, max: u64, expected: &str) -> u64 {
        let Some(raw) = self.raw(name) else { return 0 };
        match raw.parse::<u64>() {
            Ok(0) if zero == Zero::Refused => self.not_a(name, "more than 0"),
            Ok(number) if number <= max => return number,
            Ok(_) => self.not_a(name, &format!("at most {max}")),
            Err(_) => self.not_a(name, expected),
        }
        // The largest value, so that comparisons between settings do not add mistakes of their own.
        max
    }

    fn missing(&mut self, name: &str) {
        let secret = self.declared(name).is_some_and(|setting| setting.secret);
        let or_file = if secret {
            format!(", or {name}_FILE")
        } else {
            String::new()
        };
        self.wrong(
            name,
            format!("is required: set the variable{or_file} or the flag"),
        );
    }

    fn not_a(&mut self, name: &str, expected: &str) {
        let shown = self.value_for_message(name);
        self.wrong(name, format!("must be {expected}{shown}"));
    }

    /// The value for a message; empty if the value is, or may hold, a secret.
    fn value_for_message(&mut self, name: &str) -> String {
        let secret = self.declared(name).is_none_or(|setting| setting.secret);
        let Some(raw) = self.raw(name) else {
            return String::new();
        };
        if secret || raw.contains('@') || raw.contains("://") && raw.contains('?') {
            return String::new();
        }
        let cut: String = raw.chars().take(MAX_SHOWN_CHARS).collect();
        format!(", not {cut:?}")
    }
}
