//! The identity providers, and the choice of one for a sign-in, a session or a message.
//!
//! Invariants
//! - No two providers share an issuer or a callback, so that no answer passes for another provider's.
//! - The edge sends the data of a session only to the session's own issuer.
//!
//! With plain variables there is one provider and no choice.

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
    /// The client of the provider.
    pub(crate) relying_party: RelyingParty,
    /// The path of its callback.
    pub(crate) callback_path: String,
    /// Slots for concurrent introspection calls (RFC 7662): a slow provider takes no slots of another one.
    pub(crate) open_questions: Semaphore,
    /// Its display name; `None` if no useful name is known.
    pub(crate) name: Option<String>,
}

/// Longest list of provider origins in a policy, in bytes: a page's head still fits a proxy's buffer.
const MAX_SOURCES_BYTES: usize = 1_024;

/// Concurrent introspection calls per provider. Further clients have to retry: there is no queue.
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

/// How a login names a provider.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProviderHint<'a> {
    /// The issuer that a third party names.
    pub(crate) issuer: Option<&'a str>,
    /// The id in the `connection` parameter.
    pub(crate) connection: Option<&'a str>,
    /// The id that the route requires.
    pub(crate) by_route: Option<&'a str>,
}

impl IdentityProviders {
    /// The configured providers, each with its callback path. Does no IO except reading certificates.
    ///
    /// # Errors
    /// Unusable settings.
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

    /// The provider of a session with this issuer; `None` if it is no longer configured.
    #[must_use]
    pub(crate) fn of_session(&self, issuer: &str) -> Option<&IdentityProvider> {
        if self.several {
            self.by_issuer(issuer)
        } else {
            self.all.first().map(Arc::as_ref)
        }
    }

    /// The id for the next sign-in of a user with a session of this issuer; `None` if there is no choice.
    #[must_use]
    pub(crate) fn connection_of(&self, issuer: &str) -> Option<&str> {
        let mut all = self.all.iter().filter(|_| self.several);
        let provider = all.find(|provider| provider.is_issuer(issuer) || provider.issuer() == issuer)?;
        Some(&provider.id)
    }

    /// The provider to sign in at: the named one; at a provider's own host that provider; else the default.
    ///
    /// # Errors
    /// The named provider is unknown, or not allowed here.
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

    /// The response mode whose cookie attributes can clear the cookie of any pending sign-in.
    #[must_use]
    pub(crate) fn pending_mode(&self) -> ResponseMode {
        let by_form = |provider: &Arc<IdentityProvider>| provider.response_mode() == ResponseMode::FormPost;
        if self.all.iter().any(by_form) {
            ResponseMode::FormPost
        } else {
            ResponseMode::Query
        }
    }

    /// The origins of all issuers, separated by spaces, for a content security policy; all of https if the
    /// list is too long for the head of a page.
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

    /// The public keys of this client at all providers, to register there; `None` if it signs nothing.
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

/// The addresses of the product: the configured `hosts`, and hosts of single providers.
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
