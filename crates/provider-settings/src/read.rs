//! Reads the settings of all providers: one from plain variables, or several from a file.

use chassis::settings::Reader;
use oidc::ProviderSettings;

use crate::credentials::proxy;
use crate::one::one;
use crate::table::{PROVIDERS, TOPIC, is_of_one_provider};
use crate::{ConfiguredProviders, CredentialFiles, file};

/// Reads all `OIDC_…` settings. After a mistake, records it in the reader and returns a harmless value.
pub fn read(reader: &mut Reader<'_>) -> ConfiguredProviders {
    let Some(path) = reader.path(PROVIDERS) else {
        let files = CredentialFiles::read(reader);
        return ConfiguredProviders::only(one(reader), files);
    };
    for setting in TOPIC.settings {
        if is_of_one_provider(setting) && reader.is_given(setting.name) {
            reader.wrong(
                setting.name,
                format!(
                    "is set next to {PROVIDERS}: write it into the provider's table, or remove {PROVIDERS}"
                ),
            );
        }
    }
    let mut providers = file::read(reader, &path).unwrap_or_else(|| {
        ConfiguredProviders::only(
            ProviderSettings::new(String::new(), String::new()),
            CredentialFiles::default(),
        )
    });
    let proxy = proxy(reader);
    for provider in &mut providers.all {
        provider.settings.credentials.proxy.clone_from(&proxy);
        provider.credential_files.keep_given(reader);
    }
    providers
}
