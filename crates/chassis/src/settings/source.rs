//! The sources of values: flags override the environment; secrets may come from files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use super::nearest::nearest;
use super::{CommandLine, Service, Setting, SettingNotice};
use crate::files;

/// The raw values of a service's settings, with the mistakes found while gathering them.
#[derive(Clone)]
pub struct Source {
    pub(super) service: &'static Service,
    values: BTreeMap<&'static str, String>,
    files: BTreeMap<&'static str, PathBuf>,
    pub(super) mistakes: Vec<SettingNotice>,
    pub(super) warnings: Vec<SettingNotice>,
}

impl Source {
    /// Takes the values from these pairs as if they were the environment.
    pub fn from_pairs(service: &'static Service, pairs: &[(&str, &str)]) -> Self {
        Self::gather(
            service,
            &CommandLine::default(),
            pairs.iter().map(|(name, value)| (name.into(), value.into())),
        )
    }

    /// From the command line's flags and the environment.
    pub(crate) fn gather(
        service: &'static Service,
        command_line: &CommandLine,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Self {
        let mut source = Self {
            service,
            values: BTreeMap::new(),
            files: BTreeMap::new(),
            mistakes: Vec::new(),
            warnings: Vec::new(),
        };
        let environment = source.decode(environment);
        let given = |name: &str| environment.get(name).filter(|value| !value.trim().is_empty());
        for setting in service.settings() {
            let variables = setting.variables();
            let from_environment = || variables.iter().find_map(|name| given(name));
            if let Some(value) = command_line.values.get(setting.name).or_else(from_environment) {
                source.values.insert(setting.name, value.clone());
            }
            let variable = setting.file_variable();
            let path = command_line.values.get(&variable).or_else(|| given(&variable));
            if let Some(path) = path.filter(|_| setting.secret) {
                source.read_secret(setting, PathBuf::from(path.trim()));
            }
        }
        source.warn_of_unknown(&environment);
        source
    }

    /// Gives a value to a setting that has none: a program derives it from others.
    pub fn provide(&mut self, name: &str, value: &str) {
        if let Some(setting) = self.service.setting(name).filter(|_| !self.is_given(name)) {
            self.values.insert(setting.name, value.to_owned());
        }
    }

    /// Reads a secret that is not given from this file.
    pub fn provide_file(&mut self, name: &str, path: PathBuf) {
        if let Some(setting) = self.service.setting(name).filter(|_| !self.is_given(name)) {
            self.read_secret(setting, path);
        }
    }

    /// Records a mistake of a setting: what is wrong and what to do.
    pub fn wrong(&mut self, name: &str, text: String) {
        if let Some(setting) = self.service.setting(name) {
            self.mistake(setting, text);
        }
    }

    fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name) || self.files.contains_key(name)
    }

    /// The value of a setting, its default included.
    pub fn value(&self, name: &str) -> &str {
        let default = self.service.setting(name).map_or("", |setting| setting.default);
        self.text(name).unwrap_or(default).trim()
    }

    /// The value given for a variable, if any.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The file a secret was read from, if it was.
    pub(crate) fn file(&self, name: &str) -> Option<&PathBuf> {
        self.files.get(name)
    }

    fn read_secret(&mut self, setting: &'static Setting, path: PathBuf) {
        let variable = setting.file_variable();
        if self.values.contains_key(setting.name) {
            self.mistake(
                setting,
                format!("is given directly and by {variable}: keep one of the two"),
            );
            return;
        }
        let file = format!("the file {} of {variable}", path.display());
        match files::read_bounded(&path).map(String::from_utf8) {
            Ok(Ok(text)) if text.trim().is_empty() => self.mistake(setting, format!("{file} is empty")),
            Ok(Ok(text)) => {
                let text = text.trim_end_matches(['\r', '\n']).to_owned();
                self.values.insert(setting.name, text);
            }
            Ok(Err(_)) => self.mistake(setting, format!("{file} is not UTF-8 text")),
            Err(error) => self.mistake(setting, format!("{file} cannot be read: {error}")),
        }
        self.files.insert(setting.name, path);
    }

    fn decode(&mut self, pairs: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
        let mut decoded = BTreeMap::new();
        for (name, value) in pairs {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => {
                    decoded.insert(name, value);
                }
                Err(_) => {
                    if let Some(setting) = self.service.setting(&name) {
                        self.mistake(setting, "is not UTF-8 text".to_owned());
                    }
                }
            }
        }
        decoded
    }

    fn mistake(&mut self, setting: &Setting, text: String) {
        self.mistakes.push(SettingNotice {
            name: setting.name.to_owned(),
            flag: setting.shown_flag(self.service.prefixes),
            text,
        });
    }

    fn warn_of_unknown(&mut self, environment: &BTreeMap<String, String>) {
        let settings = self.service.settings();
        let known: BTreeSet<String> = settings
            .flat_map(|setting| {
                let file = setting.secret.then(|| setting.file_variable());
                std::iter::once(setting.name.to_owned()).chain(file)
            })
            .collect();
        let (own, shared) = (self.service.prefixes, self.service.shared_prefix);
        for (name, value) in environment {
            let ours = own.iter().chain(&shared).any(|prefix| name.starts_with(prefix));
            if !ours || known.contains(name) || is_kubernetes_service_link(name, value) {
                continue;
            }
            let near = nearest(name, known.iter().map(String::as_str));
            let near = near.map(|near| format!("; did you mean {near}?"));
            let text = format!(
                "is not a setting of {}{}",
                self.service.name,
                near.unwrap_or_default()
            );
            self.warnings.push(SettingNotice {
                name: name.clone(),
                flag: String::new(),
                text,
            });
        }
    }
}

/// Whether Kubernetes set the variable for a Service of the namespace (a Service `edge` adds `EDGE_PORT`).
fn is_kubernetes_service_link(name: &str, value: &str) -> bool {
    const PARTS: [&str; 3] = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"];
    PARTS.iter().any(|part| name.contains(part)) || name.ends_with("_PORT") && value.contains("://")
}
