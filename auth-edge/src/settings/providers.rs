//! Checks of providers' settings against the edge's other settings.

use std::collections::BTreeSet;

use chassis::settings::Reader;
use oidc::ResponseMode;
use provider_settings::{ConfiguredProvider, ConfiguredProviders, PROVIDERS};
use url::Url;

use super::addresses::is_localhost;
use super::paths::is_plain_path;
use crate::values::reserved::{CALLBACK_PATH, is_fixed, is_reserved, segments};

/// The callback of oauth2-proxy, so that the registration at the provider stays.
const ALIAS_CALLBACK_PATH: &str = "/oauth2/callback";

/// The path of a provider's callback.
pub(super) fn callback_path(
    providers: &ConfiguredProviders,
    provider: &ConfiguredProvider,
    aliases: bool,
) -> String {
    match &provider.callback_path {
        Some(own) => own.clone(),
        None if aliases && !providers.listed => ALIAS_CALLBACK_PATH.to_owned(),
        None if providers.listed => format!("{CALLBACK_PATH}/{}", provider.id),
        None => CALLBACK_PATH.to_owned(),
    }
}

/// The paths of the login route and of all callbacks.
pub(super) fn own_paths(providers: &ConfiguredProviders, login_path: &str, aliases: bool) -> Vec<String> {
    let callbacks = providers
        .all
        .iter()
        .map(|provider| callback_path(providers, provider, aliases));
    std::iter::once(login_path.to_owned()).chain(callbacks).collect()
}

/// Checks the providers against the edge's other settings.
pub(super) fn check(
    reader: &mut Reader<'_>,
    providers: &ConfiguredProviders,
    base_url: &Url,
    login_path: &str,
) {
    let settings = |name: &'static str| if providers.listed { PROVIDERS } else { name };
    for provider in &providers.all {
        let of = if providers.listed {
            format!("provider {:?}: ", provider.id)
        } else {
            String::new()
        };
        if base_url.scheme() == "http"
            && provider.settings.response_mode == ResponseMode::FormPost
            && !is_localhost(base_url)
        {
            reader.wrong(
                settings("OIDC_RESPONSE_MODE"),
                format!("{of}form_post needs an https EDGE_BASE_URL, or one on localhost"),
            );
        }
        if provider
            .callback_path
            .as_ref()
            .is_some_and(|path| !is_plain_path(path))
        {
            reader.wrong(
                PROVIDERS,
                format!("{of}callback_path must be a plain path such as {CALLBACK_PATH}"),
            );
        }
    }
    // Other programs cannot use a bound token, because they lack the key.
    let bound = providers
        .settings()
        .any(|settings| settings.credentials.dpop_key.is_some());
    for name in ["EDGE_ACCESS_TOKEN_ENDPOINT", "EDGE_CHECK_AUTHORIZATION"] {
        if bound && reader.flag(name) {
            reader.wrong(
                name,
                "cannot be on with OIDC_DPOP=on: other programs cannot use a token that is bound to a key",
            );
        }
    }
    if reader.is_given("EDGE_COOKIE_DOMAIN")
        && providers.all.iter().any(|provider| !provider.hosts.is_empty())
    {
        reader.wrong(
            "EDGE_COOKIE_DOMAIN",
            "cannot be set with hosts in OIDC_PROVIDERS: a session belongs to one host",
        );
    }
    let mut seen = BTreeSet::from([login_path.to_owned()]);
    // Other paths below the base path have their own routes. A callback there is known by its first segment.
    let is_taken = |path: &str| {
        path != CALLBACK_PATH
            && (is_fixed(path) || is_reserved(&segments(path)) && !path.starts_with(CALLBACK_PATH))
    };
    for provider in &providers.all {
        let path = callback_path(providers, provider, false);
        let own = provider.callback_path.is_some() && is_taken(&path);
        if providers.listed && (own || !seen.insert(path.clone())) {
            reader.wrong(
                PROVIDERS,
                format!("provider {:?}: the callback {path:?} is another route of the edge: set another callback_path", provider.id),
            );
        }
    }
}
