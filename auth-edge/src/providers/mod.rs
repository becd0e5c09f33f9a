//! The identity providers, and which of them a sign-in, a session or a message belongs to.
//!
//! Invariants
//! - No two share an issuer, and each has a callback of its own, so that no answer can be taken for another provider's.
//! - What belongs to a session is shown to the session's own issuer alone.
//!
//! Where plain variables describe the one provider there is nothing to choose.

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
    /// What it is called here.
    pub(crate) id: String,
    /// Speaks to it.
    pub(crate) relying_party: RelyingParty,
    /// The path of its callback.
    pub(crate) callback_path: String,
    /// Places for questions about access tokens that are open at once (RFC 7662): one slow provider takes none of another's.
    pub(crate) open_questions: Semaphore,
    /// What people call it; `None` where nothing is known that would tell them anything.
    pub(crate) name: Option<String>,
}

/// Longest list of the providers' origins in a policy, in bytes: with it the head of a page still fits a proxy's buffer.
const MAX_SOURCES_BYTES: usize = 1_024;

/// Questions to one provider that are open at once: more wait nowhere, they are told to come again.
const MAX_OPEN_QUESTIONS: usize = 64;

impl IdentityProvider {
    /// Whether sessions and messages of this issuer are its own: it is configured, or that of an allowed tenant.
    #[must_use]
    pub(crate) fn is_issuer(&self, issuer: &str) -> bool {
        self.relying_party.settings().is_issuer(issuer)
    }

    /// Its configured issuer identifier.
    #[must_use]
    pub(crate) fn issuer(&self) -> &str {
        &self.relying_party.settings().issuer
    }

    /// How it hands its answers back.
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

/// All of them, in the order they were configured.
pub(crate) struct IdentityProviders {
    /// Each of them.
    pub(crate) all: Vec<Arc<IdentityProvider>>,
    default: usize,
    /// Whether a file lists them, so that one has to be chosen.
    pub(crate) several: bool,
}

/// What a login names a provider by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProviderHint<'a> {
    /// The issuer a third party names.
    pub(crate) issuer: Option<&'a str>,
    /// The id its `connection` parameter names.
    pub(crate) connection: Option<&'a str>,
    /// The id the route demands that it leads to.
    pub(crate) by_route: Option<&'a str>,
}

impl IdentityProviders {
    /// The configured ones, each with the path of its callback. Does no IO but reading certificates.
    ///
    /// # Errors
    /// Settings that cannot be used.
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

    /// The one of this issuer.
    #[must_use]
    pub(crate) fn by_issuer(&self, issuer: &str) -> Option<&IdentityProvider> {
        let mut all = self.all.iter().map(Arc::as_ref);
        all.find(|provider| provider.is_issuer(issuer))
    }

    /// The one a session of this issuer came from; `None` when it is not configured any more.
    #[must_use]
    pub(crate) fn of_session(&self, issuer: &str) -> Option<&IdentityProvider> {
        if self.several {
            self.by_issuer(issuer)
        } else {
            self.all.first().map(Arc::as_ref)
        }
    }

    /// The id to sign in with again whoever has a session of this issuer; `None` where there is nothing to choose.
    #[must_use]
    pub(crate) fn connection_of(&self, issuer: &str) -> Option<&str> {
        let mut all = self.all.iter().filter(|_| self.several);
        let provider = all.find(|provider| provider.is_issuer(issuer) || provider.issuer() == issuer)?;
        Some(&provider.id)
    }

    /// The one to sign in at: the one named; at a provider's own host that provider; the default.
    ///
    /// # Errors
    /// The one named is unknown, or may not be taken here.
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

    /// The response mode whose cookies have the attributes that any pending sign-in's can be cleared with.
    #[must_use]
    pub(crate) fn pending_mode(&self) -> ResponseMode {
        let by_form = |provider: &Arc<IdentityProvider>| provider.response_mode() == ResponseMode::FormPost;
        if self.all.iter().any(by_form) {
            ResponseMode::FormPost
        } else {
            ResponseMode::Query
        }
    }

    /// Scheme, host and port of every issuer, separated by spaces, for a content security policy; all of https where that list
    /// is too long for the head of a page.
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

    /// The public keys of this client at all providers, to be registered there; `None` when it signs nothing.
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

/// The addresses of the product: further `hosts`, and those that belong to a provider.
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
