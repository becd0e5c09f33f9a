//! Claims a sign-in at the session service before the edge redeems its code. So all edges together redeem a
//! callback once (RFC 6749, section 4.1.2).
//!
//! Invariants
//! - The claim's name is derived one-way from the transaction's verifier. Only the sealed cookie of this
//!   browser holds the verifier.
//! - A claim that fails does not use up the sign-in.
//! - A second callback during the redemption gets the same answer. A later one is rejected.

use std::time::{Duration, Instant};

use aws_lc_rs::digest;
use session_proto::timestamp;
use session_proto::v1::begin_sign_in_response::Outcome;
use session_proto::v1::{AbandonSignInRequest, BeginSignInRequest, Session};

use crate::sessions::cookies::SessionId;
use crate::sign_in::SignIn;
use crate::sign_in::background::until_done;
use crate::sign_in::error::SignInError;
use crate::sign_in::transaction::Transaction;
use crate::sign_in::{elapsed_ms, request_id};
use crate::values::refusal::RefusalReason;

/// Separates claim names from other hashes of a verifier, such as the challenge (RFC 7636, section 4.2).
const CONTEXT: &[u8] = b"vestibule sign-in claim v1";

/// Bytes of a claim's name: 128 bits.
const NAME_BYTES: usize = 16;

/// A sign-in that this request has claimed and has to finish.
#[derive(Debug)]
pub(super) struct SignInClaim {
    pub(super) request_id: String,
    pub(super) holder: String,
    /// The store's time of the claim, and this process's monotonic time of the answer, in milliseconds.
    made: Option<(u64, u64)>,
}

/// The outcome of a claim.
#[derive(Debug)]
pub(super) enum ClaimOutcome {
    /// This request holds the claim.
    Ours(SignInClaim),
    /// Another request has finished the sign-in.
    Created(SessionId, Box<Session>),
}

/// Claims a sign-in. Waits at most `longest` for another request that holds it.
///
/// # Errors
/// The sign-in is used up, another request holds it too long, or the session service is unavailable.
pub(super) async fn claim(
    sign_in: &SignIn,
    transaction: &Transaction,
    longest: Duration,
) -> Result<ClaimOutcome, SignInError> {
    let until = Instant::now() + longest;
    let valid_for = Duration::from_secs(sign_in.settings.transaction_duration_secs);
    let mut request = BeginSignInRequest {
        request_id: name_of(transaction),
        holder: request_id()?,
        valid_for: valid_for.try_into().ok(),
        waiting: false,
    };
    loop {
        let answer = sign_in.sessions.client.begin_sign_in(request.clone()).await;
        let answer =
            answer.map_err(|error| SignInError::unavailable(&error, "a sign-in could not be claimed"))?;
        match answer.outcome() {
            Outcome::Begun => {
                let heard_ms = sign_in.clock.monotonic_ms();
                return Ok(ClaimOutcome::Ours(SignInClaim {
                    request_id: request.request_id,
                    holder: request.holder,
                    made: answer.now.map(|now| (timestamp::to_ms(&now), heard_ms)),
                }));
            }
            Outcome::Created => {
                let id = SessionId::parse(&answer.session_id);
                let created = id.zip(answer.session);
                return created
                    .map(|(id, session)| ClaimOutcome::Created(id, Box::new(session)))
                    .ok_or(RefusalReason::AlreadyUsed.into());
            }
            Outcome::Pending if Instant::now() < until => request.waiting = true,
            Outcome::Pending | Outcome::Failed | Outcome::Unspecified => {
                return Err(RefusalReason::AlreadyUsed.into());
            }
        }
    }
}

/// The name of a sign-in, the same at every edge that has the transaction.
fn name_of(transaction: &Transaction) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(CONTEXT);
    context.update(transaction.verifier.as_bytes());
    let hash = context.finish();
    base16ct::lower::encode_string(&hash.as_ref()[..NAME_BYTES])
}

impl SignInClaim {
    /// The store's Unix time in milliseconds, if known. It lags by one answer's delay, and is never ahead.
    pub(super) fn store_now_ms(&self, sign_in: &SignIn) -> Option<u64> {
        let (made_ms, heard_ms) = self.made?;
        Some(made_ms.saturating_add(elapsed_ms(sign_in, heard_ms)))
    }

    /// Abandons the sign-in in the background. Waiting requests fail; a session already created ends.
    pub(super) fn abandon(self, sign_in: &SignIn) {
        let sessions = sign_in.sessions.clone();
        let request = AbandonSignInRequest {
            request_id: self.request_id,
            holder: self.holder,
        };
        until_done(sign_in, "abandoning a sign-in", move || {
            let (sessions, request) = (sessions.clone(), request.clone());
            async move { sessions.client.abandon_sign_in(request).await.map(drop) }
        });
    }
}
