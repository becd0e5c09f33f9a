//! Access tokens of API clients in the place of a session: a command line, a service, an MCP client (RFC 6750, RFC 9068,
//! RFC 7662, RFC 9449, RFC 9728).
//!
//! Invariants
//! - Whoever presents a token is judged by it alone: a wrong one never falls back to a cookie.
//! - A token counts for the audience of its route, from a provider that counts there, as it was bound, or not at all.
//! - What cannot be judged (keys that were never had, an introspection endpoint that is down) lets nobody in.
//! - A wrong token costs bounded work: what is cheap is looked at first, and who sends many that are not is told to wait.
//!
//! Deliberately absent: tokens bound to a client certificate (RFC 8705), which end at a proxy as often as here; they are refused.

mod presented;
mod proofs_seen;
mod refusal;
pub(crate) mod resource;
mod verified_tokens;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use oidc::{
    AccessToken, AccessTokenError, DpopProofError, ExpectedProof, SigningAlgorithm, TokenBinding,
    verify_proof,
};
use prometheus::IntCounterVec;
use tokio::sync::Semaphore;
use url::Url;

use self::presented::{PresentedToken, Scheme};
use self::proofs_seen::{NotTaken, ProofsSeen};
use self::refusal::Refusal;
use self::verified_tokens::{JudgedBy, SIGNATURE_MAX_AGE_MS, Verdict, VerifiedTokens, key};
use crate::gateway::Gateway;
use crate::http::protect::rate_limit::RateLimiter;
use crate::providers::IdentityProvider;
use crate::route_table::Route;
use crate::route_table::bearer::{BearerRule, Introspection};

pub(super) use self::presented::{PROOF, presented};
pub(super) use self::refusal::invite;
pub(super) use self::resource::Resource;

/// Signatures of one address in a minute that did not verify: a hundredth of a core, and more than whoever shares an address
/// with somebody who forges tokens will notice.
const FORGED_PER_MINUTE: u64 = 1_200;
/// Questions about tokens of one address in a minute that the provider answered with no: more than a client that retries.
const UNKNOWN_PER_MINUTE: u64 = 120;
/// Questions to providers that are open at once: more wait nowhere, they are told to come again.
const MAX_OPEN_QUESTIONS: usize = 64;

/// What judges access tokens. Clones share it.
#[derive(Clone)]
pub(crate) struct BearerTokens(Arc<Shared>);

struct Shared {
    introspection_max_age: Duration,
    verdicts_counted: IntCounterVec,
    /// Made by the first token: where none come, it takes no memory.
    memory: OnceLock<Memory>,
}

struct Memory {
    tokens: VerifiedTokens,
    proofs: ProofsSeen,
    forged: RateLimiter,
    unknown: RateLimiter,
    questions: Semaphore,
}

impl BearerTokens {
    /// Remembers what a provider said of a token for `introspection_max_age`; zero asks each time.
    #[must_use]
    pub(crate) fn new(introspection_max_age: Duration, verdicts_counted: IntCounterVec) -> Self {
        Self(Arc::new(Shared {
            introspection_max_age,
            verdicts_counted,
            memory: OnceLock::new(),
        }))
    }

    fn memory(&self) -> &Memory {
        self.0.memory.get_or_init(|| Memory {
            tokens: VerifiedTokens::new(),
            proofs: ProofsSeen::new(),
            forged: RateLimiter::new(FORGED_PER_MINUTE),
            unknown: RateLimiter::new(UNKNOWN_PER_MINUTE),
            questions: Semaphore::new(MAX_OPEN_QUESTIONS),
        })
    }

    fn count(&self, outcome: &str) {
        self.0.verdicts_counted.with_label_values(&[outcome]).inc();
    }
}

/// The algorithms proofs may be signed with.
fn proof_algorithms() -> Vec<&'static str> {
    let all = SigningAlgorithm::PUBLIC_KEY.iter();
    all.map(|algorithm| algorithm.name()).collect()
}

/// A request that presents a token, as its client has sent it.
pub(super) struct ShownRequest<'a> {
    /// Its headers.
    pub(super) headers: &'a HeaderMap,
    /// Who opened the connection.
    pub(super) peer: IpAddr,
    /// Its method; empty where nobody tells, which no proof is for.
    pub(super) method: &'a str,
    /// Scheme, host and port by which the client knows the resource.
    pub(super) origin: &'a str,
    /// The path as it came.
    pub(super) path: &'a str,
    /// What it is for.
    pub(super) resource: &'a Resource,
}

/// What is judged, and by what.
struct Presentation<'a> {
    gateway: &'a Gateway,
    route: &'a Route,
    rule: &'a BearerRule,
    request: &'a ShownRequest<'a>,
    address: IpAddr,
}

/// Authorizes a request by the token it presents, or answers it.
pub(super) async fn authorize(
    gateway: &Gateway,
    route: &Route,
    rule: &BearerRule,
    request: &ShownRequest<'_>,
    presented: PresentedToken<'_>,
) -> Result<Arc<AccessToken>, Response> {
    let presentation = Presentation {
        gateway,
        route,
        rule,
        request,
        address: gateway
            .trusted_proxies
            .client_address(request.peer, request.headers),
    };
    match presentation.judge(presented).await {
        Ok(token) => {
            gateway.bearer.count("accepted");
            Ok(token)
        }
        Err(refusal) => {
            gateway.bearer.count(refusal.reason());
            tracing::info!(
                http.route = &*route.name,
                reason = refusal.reason(),
                error = &refusal as &dyn std::error::Error,
                "an access token was refused"
            );
            Err(refusal.into_response(route, rule, request.resource, presented.scheme))
        }
    }
}

impl Presentation<'_> {
    async fn judge(&self, presented: PresentedToken<'_>) -> Result<Arc<AccessToken>, Refusal> {
        let raw = presented.token.ok_or(Refusal::Malformed)?;
        let token = self.judge_token(raw).await?;
        self.judge_use(&token, presented.scheme, raw)?;
        Ok(token)
    }

    /// Whose token it is, and whether it is for this resource.
    async fn judge_token(&self, raw: &str) -> Result<Arc<AccessToken>, Refusal> {
        let issuer = oidc::unverified_issuer(raw);
        let by_signature = match (issuer.is_some(), self.rule.introspection) {
            (true, Introspection::Never | Introspection::OpaqueTokens) => true,
            (false, Introspection::Never) => return Err(Refusal::Opaque),
            (_, Introspection::Always) | (false, Introspection::OpaqueTokens) => false,
        };
        let provider = self.provider(issuer.as_deref())?;
        let token = if by_signature {
            self.by_signature(provider, raw).await?
        } else {
            self.by_provider(provider, raw).await?
        };
        let now = self.gateway.clock.now_secs();
        token
            .check(self.rule.audience(&self.request.resource.url), now)
            .map_err(Arc::new)?;
        Ok(token)
    }

    /// The provider that judges it: the one its issuer names, or the only one a token that names none can be of. No token is shown
    /// to a provider that has not made it.
    fn provider(&self, issuer: Option<&str>) -> Result<&IdentityProvider, Refusal> {
        let providers = &self.gateway.providers;
        let owner = self.gateway.sites.of(self.request.headers).owner();
        let provider = match issuer {
            Some(issuer) => providers.by_issuer(issuer).ok_or(Refusal::Issuer)?,
            None => {
                let named = self.route.requirements.connection.as_ref();
                let mut counting = providers
                    .all()
                    .iter()
                    .filter(|provider| named.is_none_or(|id| *id == provider.id));
                match (counting.next(), counting.next()) {
                    (Some(only), None) => only,
                    _ => return Err(Refusal::Opaque),
                }
            }
        };
        if owner.is_some_and(|owner| owner.issuer != provider.issuer()) {
            return Err(Refusal::Issuer);
        }
        let connection = &self.route.requirements.connection;
        if connection.as_ref().is_some_and(|id| *id != provider.id) {
            return Err(Refusal::Connection);
        }
        Ok(provider)
    }

    async fn by_signature(
        &self,
        provider: &IdentityProvider,
        raw: &str,
    ) -> Result<Arc<AccessToken>, Refusal> {
        let (memory, now_ms) = (self.gateway.bearer.memory(), self.gateway.clock.now_ms());
        let key = key(JudgedBy::Signature, &provider.id, raw);
        if let Some(Ok(token)) = memory.tokens.find(&key, now_ms) {
            return Ok(token);
        }
        self.may_cost(&memory.forged, now_ms)?;
        let audience = self.rule.audience(&self.request.resource.url);
        let validated = provider
            .relying_party
            .validate_access_token(raw, audience, now_ms / 1_000)
            .await;
        let token = validated.map(Arc::new).map_err(|error| {
            if matches!(error.reason(), "signature" | "unknown_key") {
                self.has_cost(&memory.forged, now_ms);
            }
            Arc::new(error)
        })?;
        let verdict = Ok(Arc::clone(&token));
        memory
            .tokens
            .keep(key, raw, &verdict, now_ms, SIGNATURE_MAX_AGE_MS);
        Ok(token)
    }

    async fn by_provider(&self, provider: &IdentityProvider, raw: &str) -> Result<Arc<AccessToken>, Refusal> {
        let (memory, now_ms) = (self.gateway.bearer.memory(), self.gateway.clock.now_ms());
        let max_age = self.gateway.bearer.0.introspection_max_age;
        let max_age_ms = u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX);
        let key = key(JudgedBy::Provider, &provider.id, raw);
        if let Some(verdict) = memory.tokens.find(&key, now_ms) {
            return Ok(verdict?);
        }
        self.may_cost(&memory.unknown, now_ms)?;
        let ask = async {
            let open = memory.questions.try_acquire();
            let _open = open.map_err(|_all_are_open| Refusal::Overloaded)?;
            let said = provider.relying_party.introspect(raw, now_ms / 1_000).await;
            match &said {
                Ok(_) => {}
                Err(AccessTokenError::Provider(error)) => tracing::warn!(
                    provider = &*provider.id,
                    error = error as &dyn std::error::Error,
                    "a provider cannot be asked about an access token"
                ),
                Err(_) => self.has_cost(&memory.unknown, now_ms),
            }
            Ok::<Verdict, Refusal>(said.map(Arc::new).map_err(Arc::new))
        };
        let verdict = if max_age_ms == 0 {
            ask.await?
        } else {
            let times = (now_ms, max_age_ms);
            memory.tokens.find_or_ask(&key, raw, times, ask).await?
        };
        Ok(verdict?)
    }

    /// Whether the address may cause more of what has been for nothing.
    fn may_cost(&self, refused: &RateLimiter, now_ms: u64) -> Result<(), Refusal> {
        let refused = refused.peek(self.address, now_ms);
        refused.map_err(|too_many| Refusal::TooMany {
            retry_after_secs: too_many.retry_after_secs,
        })
    }

    /// Something was verified, or asked, for nothing.
    fn has_cost(&self, refused: &RateLimiter, now_ms: u64) {
        // Where the bucket is empty already, the next token is not looked at.
        let _ = refused.check(self.address, now_ms);
    }

    /// Whether it is presented as it is bound, and is enough for the route.
    fn judge_use(&self, token: &AccessToken, scheme: Scheme, raw: &str) -> Result<(), Refusal> {
        let headers = self.request.headers;
        match (&token.binding, scheme) {
            (TokenBinding::Key(thumbprint), Scheme::Dpop) => self.judge_proof(thumbprint, raw)?,
            (TokenBinding::Key(_), Scheme::Bearer) => return Err(Refusal::WithoutProof),
            (TokenBinding::None, Scheme::Dpop) => return Err(Refusal::NotBound),
            (TokenBinding::None, Scheme::Bearer) => {
                if self.rule.dpop_required || headers.contains_key(presented::PROOF) {
                    return Err(Refusal::NotBound);
                }
            }
        }
        if !self.rule.scopes.iter().all(|scope| token.has_scope(scope)) {
            return Err(Refusal::Scope);
        }
        let requirements = &self.route.requirements;
        requirements.check(token, self.gateway.clock.now_ms())?;
        requirements.check_connection(&token.iss, &self.gateway.providers)?;
        Ok(())
    }

    fn judge_proof(&self, thumbprint: &str, raw: &str) -> Result<(), Refusal> {
        let now_ms = self.gateway.clock.now_ms();
        let proof = presented::proof(self.request.headers).ok_or(DpopProofError::Malformed)?;
        let url = Url::parse(&format!("{}{}", self.request.origin, self.request.path));
        let url = url.map_err(|_unreadable| DpopProofError::Address)?;
        let memory = self.gateway.bearer.memory();
        self.may_cost(&memory.forged, now_ms)?;
        let expected = ExpectedProof {
            method: self.request.method,
            url: &url,
            access_token: raw,
            thumbprint,
        };
        let proof = verify_proof(proof, &expected, now_ms / 1_000).inspect_err(|error| {
            if *error == DpopProofError::Signature {
                self.has_cost(&memory.forged, now_ms);
            }
        })?;
        let taken = self
            .gateway
            .bearer
            .memory()
            .proofs
            .take(thumbprint, &proof.jti, now_ms);
        taken.map_err(|not_taken| match not_taken {
            NotTaken::Replay => Refusal::Replay,
            NotTaken::TooMany(retry_after_secs) => Refusal::TooMany { retry_after_secs },
            NotTaken::Full => Refusal::Overloaded,
        })
    }
}
