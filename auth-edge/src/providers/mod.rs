//! The identity providers, and the choice of one for a sign-in, a session, a token or a logout message.
//!
//! Invariants
//! - No two providers share an issuer or a callback, so the edge cannot confuse their answers.
//! - The edge sends the data of a session only to the session's own issuer.
//!
//! If environment variables configure the provider, there is only one, and a login has no choice.

mod name;
pub(crate) mod sites;

use std::collections::BTreeSet;
use std::sync::Arc;

use oidc::{BuildError, RelyingParty, ResponseMode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use url::Url;

use crate::providers::sites::{Site, Sites};
use crate::values::refusal::RefusalReason;

/// One provider.
pub(crate) struct IdentityProvider {
    /// Its id in the configuration.
    pub(crate) id: String,
    /// The OpenID Connect client for this provider.
    pub(crate) relying_party: RelyingParty,
    /// The path of its callback.
    pub(crate) callback_path: String,
    /// Slots for concurrent introspection calls (RFC 7662). A slow provider uses no slots of other providers.
    pub(crate) open_questions: Semaphore,
    /// Its display name; `None` if no useful name is known.
    pub(crate) name: Option<String>,
}

/// Most bytes of provider origins in a content security policy, so that the headers fit a proxy's buffer.
const MAX_SOURCES_BYTES: usize = 1_024;

/// Most concurrent introspection calls per provider. The edge rejects further ones: it has no queue.
const MAX_OPEN_QUESTIONS: usize = 64;

impl IdentityProvider {
    /// Whether this issuer is the provider's: the configured one, or that of an allowed tenant.
    #[must_use]
    pub(crate) fn is_issuer(&self, issuer: &str) -> bool {
        self.relying_party.settings().is_issuer(issuer)
    }

    /// Its configured issuer identifier.
    #[must_use]
    pub(crate) fn issuer(&self) -> &str {
        &self.relying_party.settings().issuer
    }

    /// How the provider returns its answers.
    #[must_use]
    pub(crate) fn response_mode(&self) -> ResponseMode {
        self.relying_party.settings().response_mode
    }

    /// Scheme, host and port of its issuer.
    pub(crate) fn origin(&self) -> String {
        Url::parse(self.issuer())
            .map(|issuer| issuer.origin().ascii_serialization())
            .unwrap_or_default()
    }
}

/// All providers, in the configured order.
pub(crate) struct IdentityProviders {
    /// The providers.
    pub(crate) all: Vec<Arc<IdentityProvider>>,
    default: usize,
    /// Whether a file lists the providers, so that a login has to choose.
    pub(crate) several: bool,
}

/// The provider that a login request or its route names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProviderHint<'a> {
    /// The issuer in the `iss` parameter of a login that a third party starts.
    pub(crate) issuer: Option<&'a str>,
    /// The id in the `connection` parameter.
    pub(crate) connection: Option<&'a str>,
    /// The id that the route requires.
    pub(crate) by_route: Option<&'a str>,
}

impl IdentityProviders {
    /// Builds the configured providers, each with its callback path. Reads certificates, but does no other IO.
    ///
    /// # Errors
    /// A provider's settings are unusable.
    pub(crate) fn new(
        configured: &provider_settings::ConfiguredProviders,
        callback_path: impl Fn(&provider_settings::ConfiguredProvider) -> String,
    ) -> Result<Self, BuildError> {
        let provider = |provider: &provider_settings::ConfiguredProvider| {
            Ok(Arc::new(IdentityProvider {
                id: provider.id.clone(),
                relying_party: RelyingParty::new(provider.settings.clone())?,
                callback_path: callback_path(provider),
                open_questions: Semaphore::new(MAX_OPEN_QUESTIONS),
                name: name::name(provider.settings.name.as_deref(), &provider.settings.issuer),
            }))
        };
        Ok(Self {
            all: configured
                .all
                .iter()
                .map(provider)
                .collect::<Result<_, BuildError>>()?,
            default: configured.default,
            several: configured.listed,
        })
    }

    /// The provider of this issuer.
    #[must_use]
    pub(crate) fn by_issuer(&self, issuer: &str) -> Option<&IdentityProvider> {
        let mut all = self.all.iter().map(Arc::as_ref);
        all.find(|provider| provider.is_issuer(issuer))
    }

    /// The provider of a session with this issuer; `None` if not configured. Without a provider file: the only one.
    #[must_use]
    pub(crate) fn of_session(&self, issuer: &str) -> Option<&IdentityProvider> {
        if self.several {
            self.by_issuer(issuer)
        } else {
            self.all.first().map(Arc::as_ref)
        }
    }

    /// The display name of the provider of a session with this issuer; empty for none.
    pub(crate) fn name_of_session(&self, issuer: &str) -> String {
        let provider = self.of_session(issuer);
        provider.and_then(|found| found.name.clone()).unwrap_or_default()
    }

    /// The id of this issuer's provider, for a login URL. `None` if unknown, or if no file lists the providers.
    #[must_use]
    pub(crate) fn connection_of(&self, issuer: &str) -> Option<&str> {
        let mut all = self.all.iter().filter(|_| self.several);
        let provider = all.find(|provider| provider.is_issuer(issuer) || provider.issuer() == issuer)?;
        Some(&provider.id)
    }

    /// Chooses the provider for a sign-in: the named one, else the owner of this host, else the default.
    ///
    /// # Errors
    /// The named provider is unknown, the names contradict each other, or another provider owns this host.
    pub(crate) fn choose(
        &self,
        named: ProviderHint<'_>,
        site: &Site,
    ) -> Result<&IdentityProvider, RefusalReason> {
        let find = |matches: &dyn Fn(&IdentityProvider) -> bool, otherwise: RefusalReason| {
            let mut all = self.all.iter().map(Arc::as_ref);
            all.find(|one| matches(one)).ok_or(otherwise)
        };
        let of_issuer = |issuer: &str| {
            let is = |one: &IdentityProvider| one.is_issuer(issuer) || one.issuer() == issuer;
            find(&is, RefusalReason::UnknownIssuer)
        };
        let by_id = |id: &str| {
            find(
                &|one: &IdentityProvider| one.id == id,
                RefusalReason::UnknownConnection,
            )
        };
        let by_issuer = named.issuer.map(of_issuer).transpose()?;
        let by_connection = named.connection.map(by_id).transpose()?;
        if let (Some(one), Some(other)) = (by_issuer, by_connection)
            && one.id != other.id
        {
            return Err(RefusalReason::UnknownIssuer);
        }
        let demanded = named.by_route.map(by_id).transpose()?;
        let chosen = by_issuer.or(demanded).or(by_connection);
        match (&site.owner, chosen) {
            (Some(owner), Some(chosen)) if owner != chosen.issuer() => {
                Err(RefusalReason::ConnectionElsewhere)
            }
            (Some(owner), None) => find(
                &|one: &IdentityProvider| one.issuer() == owner,
                RefusalReason::UnknownConnection,
            ),
            (_, Some(chosen)) => Ok(chosen),
            (None, None) => {
                let default = self.all.get(self.default).map(Arc::as_ref);
                default.ok_or(RefusalReason::UnknownConnection)
            }
        }
    }

    /// The response mode whose cookie attributes clear the pending sign-ins of every provider.
    #[must_use]
    pub(crate) fn pending_mode(&self) -> ResponseMode {
        let by_form = |provider: &Arc<IdentityProvider>| provider.response_mode() == ResponseMode::FormPost;
        if self.all.iter().any(by_form) {
            ResponseMode::FormPost
        } else {
            ResponseMode::Query
        }
    }

    /// The origins of all issuers, separated by spaces, for a content security policy. If the list is too
    /// long for a response head, returns `https:`, which allows every https origin.
    #[must_use]
    pub(crate) fn origins(&self) -> String {
        let origins: BTreeSet<String> = self.all.iter().map(|provider| provider.origin()).collect();
        let sources = Vec::from_iter(origins).join(" ");
        if sources.len() <= MAX_SOURCES_BYTES {
            sources
        } else {
            "https:".to_owned()
        }
    }

    /// The edge's public keys, which the operator registers at the providers; `None` if the edge signs nothing.
    #[must_use]
    pub(crate) fn client_jwks(&self) -> Option<Value> {
        let mut keys: Vec<Value> = Vec::new();
        for set in self
            .all
            .iter()
            .filter_map(|provider| provider.relying_party.client_jwks())
        {
            for key in set["keys"].as_array().into_iter().flatten() {
                if !keys.contains(key) {
                    keys.push(key.clone());
                }
            }
        }
        (!keys.is_empty()).then(|| json!({ "keys": keys }))
    }
}

/// The edge's addresses: the base URL, the configured `hosts`, and the hosts that single providers own.
#[must_use]
pub(crate) fn sites(
    providers: &provider_settings::ConfiguredProviders,
    base_url: &Url,
    hosts: &[String],
    own_paths: (&str, Vec<String>),
) -> Sites {
    let owned = providers.all.iter().flat_map(|provider| {
        let owner = &provider.settings.issuer;
        let hosts = provider.hosts.iter();
        hosts.map(move |host| (host.clone(), Some(owner.clone())))
    });
    let further = hosts.iter().map(|host| (host.clone(), None));
    Sites::new(base_url, own_paths, further.chain(owned))
}
