//! Claiming a sign-in at the session service before its code is redeemed, so that a callback that reaches several edges is
//! redeemed once (RFC 6749, section 4.1.2).
//!
//! Invariants
//! - The claim's name is derived one-way from the transaction's verifier, which nobody but this browser's sealed cookie
//!   holds.
//! - A claim that cannot be made uses nothing up.
//! - A callback that comes while another one redeems gets the same answer, and one that comes later none.

use std::time::{Duration, Instant};

use ring::digest;
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

/// Keeps names of claims apart from every other hash of a verifier; the challenge is one (RFC 7636, section 4.2).
const CONTEXT: &[u8] = b"vestibule sign-in claim v1";

/// Bytes of a claim's name: 128 bits.
const NAME_BYTES: usize = 16;

/// A sign-in that is this request's to finish.
#[derive(Debug)]
pub(super) struct HeldClaim {
    pub(super) request_id: String,
    pub(super) holder: String,
    /// The store's time when the claim was made and this process's monotonic time when that was heard, in milliseconds.
    made: Option<(u64, u64)>,
}

/// What became of claiming a sign-in.
#[derive(Debug)]
pub(super) enum ClaimOutcome {
    /// It is ours.
    Ours(HeldClaim),
    /// Another request finished it meanwhile.
    Created(SessionId, Box<Session>),
}

/// Claims a sign-in; waits at most `longest` for another request that has it.
///
/// # Errors
/// The sign-in is used up, another request takes too long for it, or the session service cannot be asked.
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
                return Ok(ClaimOutcome::Ours(HeldClaim {
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

impl HeldClaim {
    /// Unix time by the store's clock, in milliseconds, if it is known. It is early by the delay of one answer, never late.
    pub(super) fn store_now_ms(&self, sign_in: &SignIn) -> Option<u64> {
        let (made_ms, heard_ms) = self.made?;
        Some(made_ms.saturating_add(elapsed_ms(sign_in, heard_ms)))
    }

    /// Gives the sign-in up, in the background. Those who wait learn it, and a session that was created unheard ends.
    pub(super) fn abandon(self, sign_in: &SignIn) {
        let sessions = sign_in.sessions.clone();
        let request = AbandonSignInRequest {
            request_id: self.request_id,
            holder: self.holder,
        };
        until_done(sign_in, "a sign-in to be given up", move || {
            let (sessions, request) = (sessions.clone(), request.clone());
            async move { sessions.client.abandon_sign_in(request).await.map(drop) }
        });
    }
}
