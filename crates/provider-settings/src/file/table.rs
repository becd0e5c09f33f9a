//! One `[[provider]]` table: what selects the provider, and its settings, with the rules of the plain variables.

use chassis::settings::toml_file::{FileMistake, Table, Value};
use chassis::settings::{Reader, Setting, Source};

use super::ProviderSelectors;
use crate::one::one;
use crate::providers::ConfiguredProvider;
use crate::table::{ONE_PROVIDER, TOPIC, is_of_one_provider};
use crate::{CredentialFiles, keys};

/// The longest id, because addresses and every log line about the provider contain it.
const MAX_ID_BYTES: usize = 32;

/// A field that is a setting: its key and value in the file, and its variable and text.
struct Field<'a> {
    key: String,
    value: Value<'a>,
    variable: String,
    text: Option<String>,
}

pub(super) fn provider(
    table: &Table<'_>,
    selectors: &mut ProviderSelectors,
    warnings: &mut Vec<FileMistake>,
) -> Option<ConfiguredProvider> {
    let id = table.required("id").and_then(|value| id(value, selectors));
    let hosts = table.get("hosts").map(|value| hosts(value, selectors));
    let callback_path = table.get("callback_path").and_then(|value| {
        let path = value.string()?;
        selectors.add("callback_path", &path, value);
        Some(path)
    });
    for key in ["issuer_url", "client_id"] {
        table.required(key);
    }
    let fields = fields(table);
    for field in &fields {
        if let (Some(text), "issuer_url") = (&field.text, field.key.as_str()) {
            selectors.add("issuer_url", text, field.value);
        }
    }
    let (settings, credential_files) = validated(table, &fields, warnings)?;
    Some(ConfiguredProvider {
        id: id?,
        settings,
        credential_files,
        hosts: hosts.unwrap_or_default(),
        callback_path,
    })
}

/// The fields that are settings of one provider.
fn fields<'a>(table: &Table<'a>) -> Vec<Field<'a>> {
    let mut fields = Vec::new();
    for setting in TOPIC.settings {
        if !is_of_one_provider(setting) {
            continue;
        }
        let key = keys::file_key(setting.name);
        if setting.secret
            && let Some(value) = table.get(&keys::key(setting.name))
        {
            value.wrong(format!("this file cannot contain secrets: write {key}"));
        }
        if let Some(value) = table.get(&key) {
            let variable = if setting.secret {
                setting.file_variable()
            } else {
                setting.name.to_owned()
            };
            fields.push(Field {
                key,
                value,
                variable,
                text: text(setting, value),
            });
        }
    }
    fields
}

/// The value as the text of a variable.
fn text(setting: &Setting, value: Value<'_>) -> Option<String> {
    if setting.value != "LIST" || value.as_list().is_none() {
        return value.scalar();
    }
    let between = if setting.name == "OIDC_SCOPE" { ' ' } else { ',' };
    let members = value.strings()?;
    if members.iter().any(|member| member.contains(between)) {
        value.wrong(format!("a member may not contain {between:?}"));
    }
    Some(members.join(&between.to_string()))
}

/// Reads the table's settings like plain variables, and reports mistakes by the keys of the file.
fn validated(
    table: &Table<'_>,
    fields: &[Field<'_>],
    warnings: &mut Vec<FileMistake>,
) -> Option<(oidc::ProviderSettings, CredentialFiles)> {
    let given = fields
        .iter()
        .filter_map(|field| Some((field.variable.as_str(), field.text.as_deref()?)));
    let source = Source::from_pairs(&ONE_PROVIDER, &given.collect::<Vec<_>>());
    let mut reader = Reader::new(&source);
    let files = CredentialFiles::read(&mut reader);
    let read = (one(&mut reader), files);
    let (read, mistakes, found) = match reader.finish(read) {
        Ok((read, warnings)) => (Some(read), Vec::new(), warnings),
        Err(wrong) => (None, wrong.mistakes, wrong.warnings),
    };
    let value_of = |key: &str| fields.iter().find(|field| field.key == key);
    for mistake in mistakes {
        let key = keys::file_key(&mistake.name);
        let text = format!("{key}: {}", keys::with_keys(&mistake.text));
        match value_of(&key) {
            // The value is not a text, which was reported already.
            Some(field) if field.text.is_none() => {}
            Some(field) => field.value.wrong(text),
            // Their absence was reported already.
            None if matches!(key.as_str(), "issuer_url" | "client_id") => {}
            None => table.wrong(text),
        }
    }
    for warning in found {
        let key = keys::file_key(&warning.name);
        let line = value_of(&key).map_or(table.line(), |field| field.value.line());
        let text = format!("{key}: {}", keys::with_keys(&warning.text));
        warnings.push(FileMistake { line, text });
    }
    read
}

fn id(value: Value<'_>, selectors: &mut ProviderSelectors) -> Option<String> {
    let id = value.string()?;
    selectors.add("id", &id, value);
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    if id.len() > MAX_ID_BYTES || !id.bytes().all(plain) {
        value.wrong(format!(
            "id {id:?} has to be a-z, 0-9, - or _, at most {MAX_ID_BYTES} of them: addresses contain it"
        ));
        return None;
    }
    Some(id)
}

fn hosts(value: Value<'_>, selectors: &mut ProviderSelectors) -> Vec<String> {
    let hosts = value.strings().unwrap_or_default();
    for host in &hosts {
        let (name, port) = host.rsplit_once(':').unwrap_or((host, "1"));
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        if name.is_empty() || !name.bytes().all(plain) || port.parse::<u16>().is_err() {
            value.wrong(format!(
                "host {host:?} has to be a name in lower case, optionally with a port: \"partner.example.com\""
            ));
        }
        selectors.add("host", host, value);
    }
    hosts
}
