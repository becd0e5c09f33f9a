//! Checks one token: its issuer, its audience, its binding, and the requirements of the route. The cheapest
//! checks come first.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::http::HeaderMap;
use chassis::serve::network;

use oidc::{
    AccessTokenError, ExpectedProof, ProofError, TokenBinding, VerifiedAccessToken, VerifiedProof,
    verify_proof,
};
use url::Url;

use super::digest::digest_of;
use super::presented::{PROOF, PresentedToken, Scheme};
use super::refusal::TokenRefusal;
use super::verified_tokens::{INTROSPECTION_MAX_AGE_MS, SIGNATURE_MAX_AGE_MS, TokenVerdict};
use crate::gateway::Gateway;
use crate::http::request;
use crate::providers::IdentityProvider;
use crate::providers::sites::Site;
use crate::route_table::Route;
use crate::route_table::bearer::{BearerRule, Introspection};
use crate::values::path::RequestPath;

/// A request with a token, as its client sent it, and the context of its checks.
pub(in crate::gateway) struct Presentation<'a> {
    pub(in crate::gateway) gateway: &'a Gateway,
    pub(in crate::gateway) route: &'a Route,
    pub(in crate::gateway) rule: &'a BearerRule,
    /// The headers, and the client or proxy that opened the connection.
    pub(in crate::gateway) client: (&'a HeaderMap, IpAddr),
    /// The method; empty if the proxy does not name it. An empty method matches no proof.
    pub(in crate::gateway) method: &'a str,
    /// Scheme, host and port that the client requested. The client's proof has to name them.
    pub(in crate::gateway) origin: &'a str,
    /// The origin that the token's audience has to name.
    pub(in crate::gateway) audience_origin: &'a str,
    /// The path as received.
    pub(in crate::gateway) path: &'a str,
    /// The site, if the edge publishes the resource's metadata.
    pub(in crate::gateway) publisher: Option<&'a Site>,
}

impl Presentation<'_> {
    /// Verifies the token, and checks that it may be used for this request.
    pub(super) async fn verify_token(
        &self,
        presented: PresentedToken<'_>,
    ) -> Result<Arc<VerifiedAccessToken>, TokenRefusal> {
        let raw = presented.token.ok_or(TokenRefusal::Malformed)?;
        let issuer = oidc::unverified_issuer(raw);
        let by_signature = match (issuer.is_some(), self.rule.introspection) {
            (true, Introspection::Never | Introspection::OpaqueTokens) => true,
            (false, Introspection::Never) => return Err(TokenRefusal::Opaque),
            (_, Introspection::Always) | (false, Introspection::OpaqueTokens) => false,
        };
        let provider = self.provider(issuer.as_deref())?;
        let token = self.verdict(provider, raw, by_signature).await?;
        let now = self.gateway.clock.now_secs();
        token
            .check(|audience| self.is_audience(audience), &self.rule.clients, now)
            .map_err(Arc::new)?;
        self.check_use(&token, presented.scheme, raw)?;
        Ok(token)
    }

    /// Whether this audience names the resource. Only the rule's own audience does, if it has one. Otherwise: the
    /// requested URL, the route's address, or a path between them.
    fn is_audience(&self, audience: &str) -> bool {
        if let Some(own) = &self.rule.audience {
            return own == audience;
        }
        let Some(path) = audience.strip_prefix(self.audience_origin) else {
            return false;
        };
        let path = RequestPath::parse(if path.is_empty() { "/" } else { path });
        path.is_ok_and(|path| {
            let (named, of_route) = (path.segments(), &self.route.segments);
            let requested = || RequestPath::parse(self.path);
            named == of_route
                || named.starts_with(of_route)
                    && requested().is_ok_and(|requested| requested.segments().starts_with(named))
        })
    }

    /// The provider that verifies the token: its issuer, or for an opaque token the only possible provider. The
    /// edge sends no token to another provider.
    fn provider(&self, issuer: Option<&str>) -> Result<&IdentityProvider, TokenRefusal> {
        let providers = &self.gateway.providers;
        let owner = self.gateway.sites.of(self.client.0).owner.as_ref();
        let provider = match issuer {
            Some(issuer) => providers.by_issuer(issuer).ok_or(TokenRefusal::Issuer)?,
            None => {
                let named = self.route.requirements.connection.as_ref();
                let mut counting = providers
                    .all
                    .iter()
                    .filter(|provider| named.is_none_or(|id| *id == provider.id));
                match (counting.next(), counting.next()) {
                    (Some(only), None) => only,
                    _ => return Err(TokenRefusal::Opaque),
                }
            }
        };
        if owner.is_some_and(|owner| owner != provider.issuer()) {
            return Err(TokenRefusal::Issuer);
        }
        let connection = &self.route.requirements.connection;
        if connection.as_ref().is_some_and(|id| *id != provider.id) {
            return Err(TokenRefusal::Connection);
        }
        Ok(provider)
    }

    /// The verdict on the token, by its signature or by introspection.
    async fn verdict(
        &self,
        provider: &IdentityProvider,
        raw: &str,
        by_signature: bool,
    ) -> Result<Arc<VerifiedAccessToken>, TokenRefusal> {
        let (memory, now_ms) = (&self.gateway.bearer.memory, self.gateway.clock.now_ms());
        let (label, max_age_ms) = if by_signature {
            ("vestibule access token signature v1", SIGNATURE_MAX_AGE_MS)
        } else {
            (
                "vestibule access token introspection v1",
                INTROSPECTION_MAX_AGE_MS,
            )
        };
        let ask = async {
            if by_signature {
                // Failures are not cached: any client can create tokens that fail.
                self.verify(provider, raw, now_ms).await.map(Ok)
            } else {
                self.introspect(provider, raw, now_ms).await
            }
        };
        let key = digest_of(&[label, &provider.id, raw]);
        let verdict = memory.tokens.find_or_ask(&key, (now_ms, max_age_ms), ask).await?;
        Ok(verdict?)
    }

    async fn verify(
        &self,
        provider: &IdentityProvider,
        raw: &str,
        now_ms: u64,
    ) -> Result<Arc<VerifiedAccessToken>, TokenRefusal> {
        let forged = &self.gateway.bearer.memory.forged;
        forged.peek(self.network(), now_ms)?;
        let is_audience = |audience: &str| self.is_audience(audience);
        let validated = provider
            .relying_party
            .validate_access_token(raw, is_audience, &self.rule.clients, now_ms / 1_000)
            .await;
        let token = validated.map_err(|error| {
            if matches!(error.reason(), "signature" | "unknown_key") {
                // The result does not matter here: `peek` rejects the next token if the bucket is empty.
                let _ = forged.check(self.network(), now_ms);
            }
            Arc::new(error)
        })?;
        Ok(Arc::new(token))
    }

    async fn introspect(
        &self,
        provider: &IdentityProvider,
        raw: &str,
        now_ms: u64,
    ) -> Result<TokenVerdict, TokenRefusal> {
        let unknown = &self.gateway.bearer.memory.unknown;
        unknown.peek(self.network(), now_ms)?;
        let open = provider.open_questions.try_acquire();
        let _open = open.map_err(|_all_are_open| TokenRefusal::Overloaded)?;
        let said = provider.relying_party.introspect(raw, now_ms / 1_000).await;
        if said.is_err() {
            let _ = unknown.check(self.network(), now_ms);
        }
        if let Err(AccessTokenError::Provider(error)) = &said {
            tracing::warn!(
                provider = &*provider.id,
                error = error as &dyn std::error::Error,
                "an access token could not be introspected at the provider"
            );
        }
        Ok(said.map(Arc::new).map_err(Arc::new))
    }

    fn network(&self) -> Ipv6Addr {
        let (headers, peer) = self.client;
        network(self.gateway.trusted_proxies.client_address(peer, headers))
    }

    /// Checks the token's binding and the requirements of the route.
    fn check_use(&self, token: &VerifiedAccessToken, scheme: Scheme, raw: &str) -> Result<(), TokenRefusal> {
        let headers = self.client.0;
        let proof = match (&token.binding, scheme) {
            (TokenBinding::Key(thumbprint), Scheme::Dpop) => {
                Some((thumbprint, self.check_proof(thumbprint, raw)?))
            }
            (TokenBinding::Key(_), Scheme::Bearer) => return Err(TokenRefusal::WithoutProof),
            (TokenBinding::None, Scheme::Dpop) => return Err(TokenRefusal::NotBound),
            (TokenBinding::None, Scheme::Bearer) => {
                if self.rule.dpop_required || headers.contains_key(PROOF) {
                    return Err(TokenRefusal::NotBound);
                }
                None
            }
        };
        if !self.rule.scopes.iter().all(|scope| token.has_scope(scope)) {
            return Err(TokenRefusal::Scope);
        }
        let may_be_narrowed = self.rule.pass_authorization || self.rule.ignore_authorization_details;
        if token.has_authorization_details() && !may_be_narrowed {
            return Err(TokenRefusal::AuthorizationDetails);
        }
        let requirements = &self.route.requirements;
        requirements.check(token.into(), self.gateway.clock.now_ms())?;
        requirements.check_connection(&token.iss, &self.gateway.providers)?;
        // This check is last, so that only a request that passes all others uses up its proof.
        let (proofs, now_ms) = (&self.gateway.bearer.memory.proofs, self.gateway.clock.now_ms());
        proof.map_or(Ok(()), |(thumbprint, proof)| {
            proofs.take(thumbprint, &proof.jti, now_ms)
        })
    }

    /// The proof, if it matches this request and this token. The caller checks for a replay.
    fn check_proof(&self, thumbprint: &str, raw: &str) -> Result<VerifiedProof, TokenRefusal> {
        let now_ms = self.gateway.clock.now_ms();
        if self.method.is_empty() {
            tracing::warn!(
                "a bound access token is rejected: the proxy does not send the method (X-Forwarded-Method), which the proof must match"
            );
            return Err(ProofError::Method.into());
        }
        let proof = request::text(self.client.0, PROOF.as_str()).ok_or(ProofError::Malformed)?;
        let url = Url::parse(&format!("{}{}", self.origin, self.path));
        let url = url.map_err(|_unreadable| ProofError::Address)?;
        let forged = &self.gateway.bearer.memory.forged;
        forged.peek(self.network(), now_ms)?;
        let expected = ExpectedProof {
            method: self.method,
            url: &url,
            access_token: raw,
            thumbprint,
        };
        let verified = verify_proof(proof, &expected, now_ms / 1_000).inspect_err(|error| {
            if *error == ProofError::Signature {
                let _ = forged.check(self.network(), now_ms);
            }
        })?;
        Ok(verified)
    }
}
