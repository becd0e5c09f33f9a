//! One `[[provider]]` table: what picks the provider, and its settings, judged as the plain variables are.

use std::borrow::Cow;
use std::ops::Range;

use chassis::settings::{Reader, Service, Setting, Source, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Reading, Value};
use crate::one::one;
use crate::providers::Provider;
use crate::table::{PREFIX, TOPIC, is_of_one_provider};
use crate::{CredentialFiles, words};

/// The longest id: it stands in addresses and in every log line about the provider.
const MAX_ID_BYTES: usize = 32;
/// Keys of a table that are no settings of the plain variables.
const OWN_KEYS: [&str; 4] = ["id", "hosts", "paths", "callback_path"];

/// One table is read as if its fields were the variables of a service that has nothing else.
static TABLE: Service = Service {
    name: "a provider",
    prefix: PREFIX,
    shared_prefix: None,
    audit_target: None,
    about: "One table of OIDC_PROVIDERS.",
    topics: &[&TOPIC],
};

impl Reading<'_> {
    pub(super) fn provider(&mut self, span: &Range<usize>, fields: &DeTable<'_>) -> Option<Provider> {
        let before = self.said.mistakes.len();
        let (mut id, mut hosts, mut paths, mut callback_path) = (None, Vec::new(), Vec::new(), None);
        let mut given: Vec<(String, String)> = Vec::new();
        let mut places: Vec<(String, Range<usize>)> = Vec::new();
        for (key, value) in fields {
            let name = key.get_ref().as_ref();
            match name {
                "id" => id = self.id(value),
                "hosts" => hosts = self.hosts(value),
                "paths" => paths = self.paths(value),
                "callback_path" => {
                    callback_path = self.string(value);
                    if let Some(path) = &callback_path {
                        self.name("callback_path", path, value.span());
                    }
                }
                _ => {
                    places.push((name.to_owned(), value.span()));
                    given.extend(self.setting(key, value));
                }
            }
        }
        for missing in ["id", "issuer_url", "client_id"] {
            if !fields.keys().any(|key| key.get_ref() == missing) {
                self.wrong(span, format!("the provider has no {missing}"));
            }
        }
        let (settings, credential_files) = self.judged(span, &given, &places)?;
        if self.said.mistakes.len() > before {
            return None;
        }
        Some(Provider {
            id: id?,
            settings,
            credential_files,
            hosts,
            paths,
            callback_path,
        })
    }

    /// Reads the table's settings as the plain variables are read, and tells what is wrong in the words of the file.
    fn judged(
        &mut self,
        span: &Range<usize>,
        given: &[(String, String)],
        places: &[(String, Range<usize>)],
    ) -> Option<(oidc::ProviderSettings, CredentialFiles)> {
        let pairs: Vec<(&str, &str)> = given
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let source = Source::from_pairs(&TABLE, &pairs);
        let mut reader = Reader::new(&source);
        let files = CredentialFiles::read(&mut reader);
        let read = (one(&mut reader), files);
        let (read, mistakes, warnings) = match reader.finish(read) {
            Ok((read, warnings)) => (Some(read), Vec::new(), warnings),
            Err(wrong) => (None, wrong.mistakes, wrong.warnings),
        };
        let place = |key: &str| {
            let found = places.iter().find(|(known, _)| known == key);
            found.map_or(span, |(_, span)| span).clone()
        };
        for mistake in mistakes {
            let key = words::file_key(&mistake.name);
            // That they are missing was told, or what stands there was no text at all.
            if matches!(key.as_str(), "issuer_url" | "client_id")
                && !pairs.iter().any(|(name, _)| *name == mistake.name)
            {
                continue;
            }
            self.wrong(
                &place(&key),
                format!("{key}: {}", words::in_the_file(&mistake.text)),
            );
        }
        for warning in warnings {
            let key = words::file_key(&warning.name);
            let line = self.line(&place(&key));
            let text = format!("{key}: {}", words::in_the_file(&warning.text));
            self.said.warnings.push((line, text));
        }
        read
    }

    /// A field as the variable of the same meaning.
    fn setting(&mut self, key: &Spanned<Cow<'_, str>>, value: &Value<'_>) -> Option<(String, String)> {
        let name = key.get_ref().as_ref();
        let known = TOPIC
            .settings
            .iter()
            .filter(|setting| is_of_one_provider(setting));
        for setting in known.clone() {
            if setting.secret && name == words::key(setting.name) {
                self.wrong(
                    &key.span(),
                    format!("a secret is given by its file: write {name}_file"),
                );
                return None;
            }
            if name == words::file_key(setting.name) {
                let variable = if setting.secret {
                    setting.file_variable()
                } else {
                    setting.name.to_owned()
                };
                let text = self.field(setting, value)?;
                if name == "issuer_url" {
                    self.name("issuer_url", &text, value.span());
                }
                return Some((variable, text));
            }
        }
        let names: Vec<String> = known.map(|setting| words::file_key(setting.name)).collect();
        let names = names.iter().map(String::as_str).chain(OWN_KEYS);
        let text = match nearest(name, names) {
            Some(near) => format!("unknown key {name:?}; did you mean {near}?"),
            None => format!("unknown key {name:?}"),
        };
        self.wrong(&key.span(), text);
        None
    }

    /// The text a variable would have.
    fn field(&mut self, setting: &Setting, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(flag.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
            DeValue::Array(_) if setting.value == "LIST" => {
                let between = if setting.name == "OIDC_SCOPE" { ' ' } else { ',' };
                let members = self.strings(value)?;
                if members.iter().any(|member| member.contains(between)) {
                    self.wrong(&value.span(), format!("a member may not contain {between:?}"));
                }
                Some(members.join(&between.to_string()))
            }
            _ => self.string(value),
        }
    }

    fn id(&mut self, value: &Value<'_>) -> Option<String> {
        let id = self.string(value)?;
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if id.len() > MAX_ID_BYTES || !id.bytes().all(plain) {
            self.wrong(
                &value.span(),
                format!("id {id:?} has to be a-z, 0-9, - or _, at most {MAX_ID_BYTES} of them: it stands in addresses"),
            );
            return None;
        }
        self.name("id", &id, value.span());
        Some(id)
    }

    fn hosts(&mut self, value: &Value<'_>) -> Vec<String> {
        let hosts = self.strings(value).unwrap_or_default();
        for host in &hosts {
            let (name, port) = host.rsplit_once(':').unwrap_or((host, "1"));
            let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
            if name.is_empty() || !name.bytes().all(plain) || port.parse::<u16>().is_err() {
                self.wrong(
                    &value.span(),
                    format!("host {host:?} has to be a name in lower case, with a port at most: \"partner.example.com\""),
                );
            }
            self.name("host", host, value.span());
        }
        hosts
    }

    fn paths(&mut self, value: &Value<'_>) -> Vec<String> {
        let paths = self.strings(value).unwrap_or_default();
        for path in &paths {
            if !path.starts_with('/') {
                self.wrong(
                    &value.span(),
                    format!("path {path:?} has to begin with /: \"/partner/*\""),
                );
            }
            self.name("path", path, value.span());
        }
        paths
    }

    fn strings(&mut self, value: &Value<'_>) -> Option<Vec<String>> {
        match value.get_ref() {
            DeValue::Array(values) if !values.is_empty() => {
                Some(values.iter().filter_map(|value| self.string(value)).collect())
            }
            _ => {
                self.wrong(&value.span(), "expected a list of texts: [\"…\"]");
                None
            }
        }
    }

    pub(super) fn string(&mut self, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Some(text.clone().into_owned()),
            _ => {
                self.wrong(&value.span(), "expected a text in quotes that is not empty");
                None
            }
        }
    }
}
