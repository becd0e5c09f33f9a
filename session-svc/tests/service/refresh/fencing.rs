//! A holder that paused for longer than its lease: its late writes change nothing decided meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use oidc::TokenHint;
use oidc::{
    ExpectedRefreshedIdToken, GrantError, IdToken, IdTokenError, ProviderError, RefreshedTokens,
    RelyingParty, RevocationResult,
};
use scripted_provider::{Endpoint, ScriptedProvider};
use session_proto::v1::ErrorReason;
use session_proto::v1::session::State;
use session_svc::refresh::{LEASE, RefreshProvider};
use session_svc::sessions::SessionLimits;
use tokio::sync::watch;

use super::slow_store::SlowStore;
use super::support::*;

/// Just past the margin before the first access token expires.
const EXPIRED_MS: u64 = 240_001;

/// Where a replica pauses on its way to the provider and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The replica has decided to refresh and has sent nothing yet.
    Asking,
    /// The answer has arrived, and the replica has not handled it yet.
    Answered,
    /// The replica does not pause.
    Nowhere,
}

/// One replica's route to the provider, which the test can pause.
#[derive(Clone)]
struct Way {
    party: RelyingParty,
    stands_at: Arc<watch::Sender<At>>,
    stood: Arc<watch::Sender<bool>>,
}

impl Way {
    fn to(provider: &ScriptedProvider, stands_at: At) -> Self {
        Self {
            party: relying_party(provider.issuer()),
            stands_at: Arc::new(watch::Sender::new(stands_at)),
            stood: Arc::new(watch::Sender::new(false)),
        }
    }

    async fn pass(&self, at: At) {
        let mut stands_at = self.stands_at.subscribe();
        if *stands_at.borrow() == at {
            self.stood.send_replace(true);
            stands_at.wait_for(|now| *now != at).await.unwrap();
        }
    }

    async fn wait_until_it_stands(&self) {
        let mut stood = self.stood.subscribe();
        within(stood.wait_for(|stood| *stood)).await.unwrap();
    }

    fn go_on(&self) {
        self.stands_at.send_replace(At::Nowhere);
    }
}

#[async_trait]
impl RefreshProvider for Way {
    fn wait_limit(&self) -> Duration {
        self.party.wait_limit()
    }

    async fn refresh(&self, refresh_token: &str, now: u64) -> Result<RefreshedTokens, GrantError> {
        self.pass(At::Asking).await;
        let answer = self.party.refresh(refresh_token, now).await;
        self.pass(At::Answered).await;
        answer
    }

    async fn validate(
        &self,
        raw: &str,
        expected: &ExpectedRefreshedIdToken<'_>,
        now: u64,
    ) -> Result<IdToken, IdTokenError> {
        RefreshProvider::validate(&self.party, raw, expected, now).await
    }

    async fn revoke(
        &self,
        refresh_token: &str,
        kind: TokenHint,
        now: u64,
    ) -> Result<RevocationResult, ProviderError> {
        RefreshProvider::revoke(&self.party, refresh_token, kind, now).await
    }
}

/// The first replica pauses with the lease, until the store says the lease is over.
async fn standing(at: At, rotate: bool) -> (World, Way, SignedIn, tokio::task::JoinHandle<Answer>) {
    let provider = ScriptedProvider::start();
    provider.script(|script| script.rotate_refresh_tokens = rotate);
    let (late, prompt) = (Way::to(&provider, at), relying_party(provider.issuer()));
    let world = world_of(provider, limits(), late.clone(), prompt).await;
    let signed_in = world.sign_in().await;
    world.advance_ms(EXPIRED_MS);
    let pending_call = world.one.pending_call(&signed_in.id);
    late.wait_until_it_stands().await;
    world.advance_ms(u64::try_from(LEASE.as_millis()).unwrap() + 1);
    (world, late, signed_in, pending_call)
}

type Answer = Result<session_proto::v1::GetAccessTokenResponse, tonic::Status>;

#[tokio::test]
async fn an_answer_after_another_replica_was_refused_does_not_revive_the_session() {
    let (world, late, signed_in, pending_call) = standing(At::Answered, true).await;
    // The provider rotated for the first replica, so the second replica's token counts as stolen.
    let refused = world.two.token(&signed_in.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (1, 1));
    late.go_on();
    assert_eq!(
        reason(within(pending_call).await.unwrap()),
        ErrorReason::ErrFailedRefreshGrant
    );
    let session = world.two.session(&signed_in.id).await.unwrap();
    assert_eq!(
        (session.state(), session.has_refresh_token),
        (State::NeedsSignIn, false)
    );
    assert_eq!(world.one.refreshes("superseded"), 1);
}

#[tokio::test]
async fn a_refusal_that_comes_after_somebody_else_refreshed_leaves_the_new_tokens_alone() {
    let (world, late, signed_in, pending_call) = standing(At::Asking, true).await;
    let winner = world.two.token(&signed_in.id).await.unwrap();
    late.go_on();
    let answer = within(pending_call).await.unwrap().unwrap();
    assert_eq!(
        answer.access_token, winner.access_token,
        "the winner's token for all"
    );
    assert_eq!(world.provider.reuses(), 1, "and yet the old token was sent");
    let session = world.one.session(&signed_in.id).await.unwrap();
    assert_eq!(
        (session.state(), session.has_refresh_token),
        (State::Active, true)
    );

    // The next refresh shows the provider's reaction.
    let refused = world.two.forced(&signed_in.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    let session = world.one.session(&signed_in.id).await.unwrap();
    assert_eq!(session.state(), State::NeedsSignIn);
}

#[tokio::test]
async fn tokens_that_come_after_somebody_else_refreshed_are_let_go_and_not_revoked() {
    // A provider with a grace period answers both.
    let (world, late, signed_in, pending_call) = standing(At::Answered, false).await;
    let winner = world.two.token(&signed_in.id).await.unwrap();
    late.go_on();
    let answer = within(pending_call).await.unwrap().unwrap();
    assert_eq!(answer.access_token, winner.access_token);
    assert_eq!(world.provider.grants("refresh_token"), 2);
    assert_eq!(world.one.refreshes("superseded"), 1);
    // Revoking them might revoke those in use.
    assert_eq!(world.provider.calls(Endpoint::Revocation), 0);
    assert!(world.two.forced(&signed_in.id).await.is_ok());
}

#[tokio::test]
async fn an_end_that_comes_while_a_holder_stands_still_stays_and_its_token_is_taken_back() {
    let (world, late, signed_in, pending_call) = standing(At::Answered, true).await;
    assert!(world.two.end(&signed_in.id).await.ended);
    world.wait_for_revocations(1).await;
    late.go_on();
    assert_eq!(
        reason(within(pending_call).await.unwrap()),
        ErrorReason::ErrMissingSession
    );
    assert_eq!(
        reason(world.one.session(&signed_in.id).await),
        ErrorReason::ErrMissingSession
    );
    world.wait_for_revocations(2).await;
    let revoked = world.provider.last_request(Endpoint::Revocation);
    assert_ne!(revoked.param("token"), Some(signed_in.refresh_token.as_str()));
}

#[tokio::test]
async fn a_holder_that_stood_still_before_it_asked_does_not_ask_any_more() {
    let lease = Duration::from_millis(300);
    let limits = SessionLimits {
        refresh_lease: lease,
        ..limits()
    };
    let provider = ScriptedProvider::start();
    let party = relying_party(provider.issuer());
    let world = world_of(provider, limits, party.clone(), party).await;
    let signed_in = world.sign_in().await;
    world.advance_ms(EXPIRED_MS);
    // A third replica, whose store pauses between the lease and the session read.
    let slow = SlowStore::over(Arc::new(world.store.clone()));
    let third = replica(
        Arc::new(slow.clone()),
        Arc::new(world.clock.clone()),
        relying_party(world.provider.issuer()),
        limits,
    )
    .await;
    slow.stand_still_after_a_lease();
    let pending_call = third.pending_call(&signed_in.id);
    slow.wait_until_it_stands().await;
    let stood_at = Instant::now();
    world.advance_ms(u64::try_from(lease.as_millis()).unwrap() + 1);
    let winner = world.two.token(&signed_in.id).await.unwrap();
    eventually("the lease to be over by the third's own clock too", || {
        stood_at.elapsed() > lease * 2
    })
    .await;
    slow.go_on();
    let answer = within(pending_call).await.unwrap().unwrap();
    assert_eq!(answer.access_token, winner.access_token);
    assert_eq!(
        (world.provider.grants("refresh_token"), world.provider.reuses()),
        (1, 0)
    );
}

#[tokio::test]
async fn a_replica_that_saw_the_old_tokens_looks_again_before_it_asks() {
    let provider = ScriptedProvider::start();
    let party = relying_party(provider.issuer());
    let world = world_of(provider, limits(), party.clone(), party).await;
    let signed_in = world.sign_in().await;
    world.advance_ms(EXPIRED_MS);
    let slow = SlowStore::over(Arc::new(world.store.clone()));
    let third = replica(
        Arc::new(slow.clone()),
        Arc::new(world.clock.clone()),
        relying_party(world.provider.issuer()),
        limits(),
    )
    .await;
    slow.stand_still_at_the_next_load();
    let pending_call = third.pending_call(&signed_in.id);
    slow.wait_until_it_stands().await;
    let winner = world.two.token(&signed_in.id).await.unwrap();
    slow.go_on();
    let answer = within(pending_call).await.unwrap().unwrap();
    assert_eq!(answer.access_token, winner.access_token);
    assert_eq!(world.provider.grants("refresh_token"), 1);
}
