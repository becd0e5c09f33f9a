//! The keys in the file for the plain variables `OIDC_…`.

use crate::table::{PREFIX, PROVIDER_NAME, TOPIC, is_of_one_provider};

/// The key of a variable that is not a secret: `OIDC_CLIENT_ID` becomes `client_id`. `OIDC_PROVIDER_NAME` becomes
/// `name`, because the table is the provider's.
pub(crate) fn key(name: &str) -> String {
    if name == PROVIDER_NAME {
        return "name".to_owned();
    }
    name.strip_prefix(PREFIX).unwrap_or(name).to_ascii_lowercase()
}

/// The key of a variable in the file. Secrets have the key of their file.
pub(crate) fn file_key(name: &str) -> String {
    let secret = TOPIC
        .settings
        .iter()
        .any(|setting| setting.name == name && setting.secret);
    let key = key(name);
    if secret { format!("{key}_file") } else { key }
}

/// Replaces variables by keys in a message.
pub(crate) fn with_keys(text: &str) -> String {
    let mut names: Vec<(String, String)> = Vec::new();
    for setting in TOPIC
        .settings
        .iter()
        .filter(|setting| is_of_one_provider(setting))
    {
        names.push((setting.name.to_owned(), file_key(setting.name)));
        if setting.secret {
            names.push((setting.file_variable(), file_key(setting.name)));
        }
    }
    // Longer names first: some begin with others.
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
        .into_iter()
        .fold(text.to_owned(), |text, (name, key)| text.replace(&name, &key))
}
