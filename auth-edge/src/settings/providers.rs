//! What the edge requires of providers' settings beyond what each provider's own validation does.

use std::collections::BTreeSet;

use chassis::settings::Reader;
use oidc::ResponseMode;
use provider_settings::{ConfiguredProvider, ConfiguredProviders, PROVIDERS};
use url::Url;

use super::addresses::is_localhost;
use super::paths::is_plain_path;
use crate::values::reserved::{CALLBACK_PATH, is_fixed, is_reserved, segments};

/// The path of a provider's callback.
pub(super) fn callback_path(providers: &ConfiguredProviders, provider: &ConfiguredProvider) -> String {
    match &provider.callback_path {
        Some(own) => own.clone(),
        None if providers.listed => format!("{CALLBACK_PATH}/{}", provider.id),
        None => CALLBACK_PATH.to_owned(),
    }
}

/// Where signing in begins and comes back to.
pub(super) fn own_paths(providers: &ConfiguredProviders, login_path: &str) -> Vec<String> {
    let callbacks = providers
        .all
        .iter()
        .map(|provider| callback_path(providers, provider));
    std::iter::once(login_path.to_owned()).chain(callbacks).collect()
}

/// Judges the providers by what else is configured.
pub(super) fn judge(
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
    // Such a token is of no use to whoever does not hold the key.
    let bound = providers
        .settings()
        .any(|settings| settings.credentials.dpop_key.is_some());
    for name in ["EDGE_ACCESS_TOKEN_ENDPOINT", "EDGE_CHECK_AUTHORIZATION"] {
        if bound && reader.flag(name) {
            reader.wrong(
                name,
                "cannot be on with OIDC_DPOP=on: the token is bound to a key that stays here",
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
    // What else lies below the base path has an address of its own; a callback there is recognised by its first segment.
    let is_taken = |path: &str| {
        path != CALLBACK_PATH
            && (is_fixed(path) || is_reserved(&segments(path)) && !path.starts_with(CALLBACK_PATH))
    };
    for provider in &providers.all {
        let path = callback_path(providers, provider);
        let own = provider.callback_path.is_some() && is_taken(&path);
        if providers.listed && (own || !seen.insert(path.clone())) {
            reader.wrong(
                PROVIDERS,
                format!("provider {:?}: the callback {path:?} is another route of ours: give it a path of its own", provider.id),
            );
        }
    }
}
