//! The addresses to register at a provider, exactly as the edge sends them.

use chassis::findings::{Finding, Section};
use oidc::ClientAuth;
use provider_settings::ConfiguredProvider;

use super::landing;
use crate::browser::client_keys;
use crate::settings::EdgeSettings;
use crate::sign_in::ProviderLogout;
use crate::values::reserved::{BACK_CHANNEL_PATH, FRONT_CHANNEL_PATH};

/// Everything to register for this client at the provider.
pub(super) fn to_register(settings: &EdgeSettings, provider: &ConfiguredProvider) -> Section {
    let sites = settings.sites();
    let of_provider = sites.of_provider(&provider.settings.issuer);
    let mut addresses = Vec::new();
    for site in &of_provider {
        addresses.push(("redirect_uri", site.at(&settings.callback_path(provider))));
    }
    if settings.sign_in.provider_logout != ProviderLogout::Off {
        for site in &of_provider {
            addresses.push(("post_logout_redirect_uri", landing(settings, site, sites.main())));
        }
        for uri in &settings.sign_in.logout_return_to_allowed {
            addresses.push(("post_logout_redirect_uri", uri.to_string()));
        }
    }
    let main = sites.main();
    addresses.push(("backchannel_logout_uri", main.at(BACK_CHANNEL_PATH)));
    if settings.sign_in.frontchannel_logout {
        addresses.push(("frontchannel_logout_uri", main.at(FRONT_CHANNEL_PATH)));
    }
    addresses.push(("initiate_login_uri", main.login_url(None, None)));
    let signs = matches!(provider.settings.credentials.auth, ClientAuth::PrivateKeyJwt(_))
        || provider.settings.credentials.request_keys.is_some();
    if signs {
        addresses.push(("jwks_uri", main.at(client_keys::PATH)));
    }
    let whose = if settings.providers.listed {
        format!(" {:?}", provider.id)
    } else {
        String::new()
    };
    Section {
        title: format!(
            "Register at the provider{whose}, exactly as shown, for client {:?}",
            provider.settings.client_id
        ),
        checks: addresses
            .into_iter()
            .map(|(id, uri)| (id, Finding::information(uri)))
            .collect(),
    }
}
