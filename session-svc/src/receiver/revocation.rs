//! Receives Global Token Revocation requests (draft-parecki-oauth-global-token-revocation-06).
//!
//! Invariants
//! - The service authenticates the sender before it reads the body.
//! - A request is a command: no policy applies to it.
//! - The answer does not depend on whether the user has sessions.

use ssf::{ErrorCode, RevocationToken, SecurityEventError, SubjectIdentifier, revocation_subject};

use super::signal_receiver::{Refusal, SECOND_MS, SignalReceiver, TrustedTransmitter, record};
use super::subjects::SubjectNames;
use crate::session::index;
use crate::sessions::{EventAction, EventOrder, Selector, Sessions, SessionsError, SingleUseOrder};

/// The name of a request in metrics, logs and audit records.
const NAME: &str = "global-token-revocation";

/// How far the provider's clock may be ahead of ours, in milliseconds. A sign-in of its future ends too.
const CLOCKS_APART_MS: u64 = 60_000;

/// A rejection, and the id of the transmitter whose credential it concerns.
type Rejection<'a> = (Option<&'a str>, SecurityEventError);

impl SignalReceiver {
    /// Ends all sessions of the user that a request names. `None` if it is done.
    ///
    /// # Errors
    /// `ListensToNobody` if no transmitter may send such requests. Otherwise the sender must repeat it.
    pub(crate) async fn revoke(
        &self,
        sessions: &Sessions,
        body: &str,
        authorization: &str,
    ) -> Result<Option<Refusal>, SessionsError> {
        if self.revoking().next().is_none() {
            return Err(SessionsError::ListensToNobody);
        }
        let (trusted, token) = match self.authenticate(authorization, sessions.now_ms()).await {
            Ok(authenticated) => authenticated,
            Err((id, error)) => return self.reject(id, &error),
        };
        let subjects = match revocation_subject(body).and_then(|user| selectors(trusted, &user)) {
            Ok(subjects) => subjects,
            Err(error) => return self.reject(Some(trusted.id()), &error),
        };
        let now_ms = sessions.now_ms();
        let request = index::hashed(&[b"revocation request", body.as_bytes()]).to_string();
        if let Some(token) = &token {
            let once = SingleUseOrder {
                id: format!("{NAME} {}", token.jti),
                until_ms: token.valid_until.saturating_mul(SECOND_MS),
                request_id: Some(request.clone()),
            };
            match sessions.use_once(trusted.issuer(), &once).await {
                Err(SessionsError::RequestIdReused) => {
                    let error = unauthenticated("jti", "was received before, with another body");
                    return self.reject(Some(trusted.id()), &error);
                }
                used => used?,
            }
        }
        // A header brings no identifier: each of its requests is a new one.
        let token_id = token.map_or_else(|| format!("{now_ms} {request}"), |token| token.jti);
        let order = EventOrder {
            transmitter: trusted.issuer().to_owned(),
            token_id: format!("{NAME} {token_id}"),
            provider: trusted.configured.provider.clone(),
            subjects,
            occurred_at_ms: now_ms.saturating_add(CLOCKS_APART_MS),
            action: EventAction::End,
        };
        let done = sessions.apply_event(&order).await.map(|changed| {
            let (transmitter, sessions) = (trusted.id(), changed.unwrap_or_default());
            let repeated = changed.is_none();
            tracing::info!(
                transmitter,
                sessions,
                repeated,
                "a user's tokens are revoked globally"
            );
            record(trusted, &order, (NAME, "end"), changed)
        });
        self.conclude(trusted, NAME, done)
    }

    /// The transmitters that may send requests.
    fn revoking(&self) -> impl Iterator<Item = &TrustedTransmitter> {
        let all = self.0.transmitters.iter();
        all.filter(|one| one.configured.has_global_token_revocation)
    }

    /// Identifies the sender by its Authorization header. Without a configured header the sender proves its
    /// identity by a JWT.
    async fn authenticate(
        &self,
        authorization: &str,
        now_ms: u64,
    ) -> Result<(&TrustedTransmitter, Option<RevocationToken>), Rejection<'_>> {
        let has_header = |one: &&TrustedTransmitter| one.configured.authorization.is_some();
        let by_header =
            |one: &&TrustedTransmitter| has_header(one) && one.configured.is_authorized(authorization);
        if let Some(trusted) = self.revoking().find(by_header) {
            return Ok((trusted, None));
        }
        let bearer = authorization.split_once(' ');
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
        let raw = bearer.map_or("", |(_, token)| token.trim());
        let issuer = oidc::unverified_issuer(raw);
        let named = |one: &&TrustedTransmitter| !has_header(one) && issuer.as_deref() == Some(one.issuer());
        let Some(trusted) = self.revoking().find(named) else {
            let error = unauthenticated("the Authorization header", "is of no transmitter");
            return Err((None, error));
        };
        let audience = &trusted.configured.audience;
        let verified = trusted
            .transmitter
            .verify_revocation(raw, audience, now_ms / SECOND_MS);
        match verified.await {
            Ok(token) => Ok((trusted, Some(token))),
            Err(error) => Err((Some(trusted.id()), error)),
        }
    }
}

fn unauthenticated(part: &'static str, fault: &'static str) -> SecurityEventError {
    let code = ErrorCode::AuthenticationFailed;
    SecurityEventError::Refused { code, part, fault }
}

/// Selects the sessions of a user, at least by one name.
fn selectors(
    trusted: &TrustedTransmitter,
    identifiers: &[SubjectIdentifier],
) -> Result<Vec<Selector>, SecurityEventError> {
    let names = SubjectNames::of(trusted.issuer(), &trusted.configured);
    let selectors = names.users(identifiers);
    if !selectors.is_empty() {
        return Ok(selectors);
    }
    let is_of_issuer = |one: &SubjectIdentifier| matches!(one, SubjectIdentifier::IssSub { .. });
    let (code, fault) = match identifiers.iter().any(is_of_issuer) {
        true => (ErrorCode::AccessDenied, "names a user of another provider"),
        false => (ErrorCode::InvalidRequest, "has a format that finds no sessions"),
    };
    let part = "sub_id";
    Err(SecurityEventError::Refused { code, part, fault })
}
