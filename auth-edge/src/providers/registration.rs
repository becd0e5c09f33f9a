//! What has to be registered with a provider about this client: the addresses it is sent to, byte for byte as they are sent.

use url::Url;

use crate::providers::IdentityProvider;
use crate::providers::sites::Sites;
use crate::values::reserved::BACK_CHANNEL_PATH;

/// Addresses to register at one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    /// Where codes come back to.
    pub(crate) redirect_uris: Vec<String>,
    /// Where people land who signed out there.
    pub(crate) post_logout_redirect_uris: Vec<String>,
    /// Where it sends logout tokens.
    pub(crate) backchannel_logout_uri: String,
}

impl Registration {
    /// What this provider, the one at `index`, is sent: at the base URL, and at the further hosts where people sign in at it.
    pub(crate) fn of(
        (index, provider): (usize, &IdentityProvider),
        sites: &Sites,
        post_logout_redirect: &Url,
    ) -> Self {
        let main = sites.main();
        let at = std::iter::once(main).chain(sites.hosts_of(index));
        let (redirects, landings) = at
            .map(|site| {
                (
                    site.at(&provider.callback_path),
                    site.here(main, post_logout_redirect),
                )
            })
            .unzip();
        Self {
            redirect_uris: redirects,
            post_logout_redirect_uris: landings,
            backchannel_logout_uri: main.at(BACK_CHANNEL_PATH),
        }
    }

    /// Says it in the log, once at the start: providers compare to the letter, and whoever registers a client can copy it from there.
    pub(crate) fn log(&self, provider: &IdentityProvider) {
        tracing::info!(
            provider = provider.id,
            issuer = provider.issuer(),
            redirect_uris = self.redirect_uris.join(" "),
            post_logout_redirect_uris = self.post_logout_redirect_uris.join(" "),
            backchannel_logout_uri = self.backchannel_logout_uri,
            "to be registered with the provider"
        );
    }
}

#[cfg(test)]
mod tests {
    use oidc::{ProviderSettings, RelyingParty};

    use super::*;
    use crate::providers::sites::Owner;

    #[test]
    fn hosts_of_the_provider_and_of_nobody_are_registered_too() {
        let issuer = "https://idp.example";
        let provider = IdentityProvider {
            id: "partner".to_owned(),
            relying_party: RelyingParty::new(ProviderSettings::new(issuer, "client")).unwrap(),
            callback_path: "/api/auth/callback/partner".to_owned(),
            open_questions: tokio::sync::Semaphore::new(1),
            name: None,
        };
        let base = Url::parse("https://app.example").unwrap();
        let owner = |provider| Owner {
            provider,
            issuer: issuer.to_owned(),
        };
        let hosts = [
            ("p.example", Some(1)),
            ("p.example:8443", Some(1)),
            ("other.example", Some(0)),
            ("everybodys.example", None),
        ];
        let hosts = hosts.map(|(host, at)| (host.to_owned(), at.map(owner)));
        let sites = Sites::new(&base, ("/api/auth/login", Vec::new()), hosts);
        let registration = Registration::of((1, &provider), &sites, &base);
        assert_eq!(
            registration.redirect_uris,
            [
                "https://app.example/api/auth/callback/partner",
                "https://p.example/api/auth/callback/partner",
                "https://p.example:8443/api/auth/callback/partner",
                "https://everybodys.example/api/auth/callback/partner",
            ]
        );
        assert_eq!(
            registration.post_logout_redirect_uris,
            [
                "https://app.example/",
                "https://p.example/",
                "https://p.example:8443/",
                "https://everybodys.example/"
            ]
        );
        assert_eq!(
            registration.backchannel_logout_uri,
            "https://app.example/api/auth/backchannel-logout"
        );
    }
}
