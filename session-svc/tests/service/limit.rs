//! The limit of sessions per person.

use std::collections::BTreeSet;
use std::sync::Arc;

use session_proto::v1;

use crate::failing_store::{FailingStore, Fails};
use crate::support::*;

const LIMIT: usize = 5;

fn limited(max_per_subject: usize) -> session_svc::sessions::SessionLimits {
    session_svc::sessions::SessionLimits {
        max_per_subject,
        ..limits()
    }
}

/// Handles of Alice's sessions, the newest first.
async fn handles(world: &mut World) -> Vec<String> {
    let (mut handles, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = world.one.list_sessions(list(200, &page_token)).await;
        let page = page.unwrap().into_inner();
        handles.extend(page.sessions.into_iter().map(|session| session.handle));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return handles;
        }
    }
}

#[tokio::test]
async fn parallel_sign_ins_leave_the_limit_and_never_end_the_session_just_made() {
    let mut world = world_with(limited(LIMIT)).await;
    let pending_call: Vec<_> = (0..60)
        .map(|at| {
            let mut client = [&world.one, &world.two][at % 2].clone();
            tokio::spawn(async move { client.create_session(alice()).await.unwrap().into_inner() })
        })
        .collect();
    let mut made = BTreeSet::new();
    for one in pending_call {
        made.insert(within(one).await.unwrap().session.unwrap().handle);
    }
    assert_eq!(made.len(), 60);
    // No concurrent sign-in ended a session within the limit; the next sign-in sees them all.
    assert!(handles(&mut world).await.len() >= LIMIT);
    world.clock.advance_ms(1);
    let last = world.create(alice()).await.session.unwrap().handle;
    let left = handles(&mut world).await;
    assert_eq!((left.len(), &left[0]), (LIMIT, &last));
}

#[tokio::test]
async fn the_session_just_made_stays_though_others_are_younger() {
    let mut world = world_with(limited(LIMIT)).await;
    for _ in 0..LIMIT {
        world.create(alice()).await;
        world.clock.advance_ms(1_000);
    }
    // A late call: its tokens were received before the other sessions began.
    let late = v1::CreateSessionRequest {
        tokens_received_at: Some(session_proto::timestamp::from_ms(START_MS - 1_000)),
        ..alice()
    };
    let made = world.create(late).await;
    world.one.get_session(by_id(&made.session_id)).await.unwrap();
    // A sign-in ends no younger session, or two at once would end each other's. The next sign-in ends it.
    assert_eq!(handles(&mut world).await.len(), LIMIT + 1);
    world.create(alice()).await;
    assert_eq!(handles(&mut world).await.len(), LIMIT);
}

#[tokio::test]
async fn parallel_sign_ins_with_room_for_one_leave_one() {
    for _ in 0..20 {
        let mut world = world_with(limited(1)).await;
        let (mut one, mut two) = (world.one.clone(), world.two.clone());
        let both = tokio::join!(one.create_session(alice()), two.create_session(alice()));
        let made = [both.0.unwrap().into_inner(), both.1.unwrap().into_inner()];
        let left = handles(&mut world).await;
        assert!(!left.is_empty(), "each ended the other");
        let newest = made
            .map(|created| created.session.unwrap().handle)
            .into_iter()
            .max();
        assert!(left.contains(&newest.unwrap()));
    }
}

#[tokio::test]
async fn a_person_with_thousands_before_the_limit_loses_the_oldest_a_few_at_a_time() {
    let mut world = world().await;
    for _ in 0..2_000 {
        world.create(alice()).await;
        world.clock.advance_ms(1);
    }
    let before = handles(&mut world).await;
    let mut with_limit = world.limited(limited(100)).await;
    let created = with_limit.create_session(alice()).await.unwrap().into_inner();
    let left = handles(&mut world).await;
    let ended = 2_001 - left.len();
    assert!((1..=50).contains(&ended), "{ended} ended by one sign-in");
    assert!(left.contains(&created.session.unwrap().handle));
    assert_eq!(left[1..101], before[..100], "the newest stay");
    for _ in 0..50 {
        world.clock.advance_ms(1);
        with_limit.create_session(alice()).await.unwrap();
    }
    assert_eq!(handles(&mut world).await.len(), 100);
}

#[tokio::test]
async fn sessions_that_have_expired_take_no_place_of_the_limit() {
    let mut world = world_with(limited(LIMIT)).await;
    let kept = world.create(alice()).await;
    for _ in 0..LIMIT - 1 {
        world.create(alice()).await;
    }
    // The first is in use, the others are not.
    for _ in 0..3 {
        world.clock.advance_ms(10 * HOUR_MS);
        world.one.roll_session(roll(&kept.session_id)).await.unwrap();
    }
    for _ in 0..LIMIT - 1 {
        world.create(alice()).await;
    }
    world.one.get_session(by_id(&kept.session_id)).await.unwrap();
    assert_eq!(handles(&mut world).await.len(), LIMIT);
}

#[tokio::test]
async fn a_sign_in_succeeds_although_the_limit_cannot_be_kept_and_the_next_one_keeps_it() {
    let mut world = world_with(limited(LIMIT)).await;
    let store = FailingStore::over(&world);
    let mut client = world.limited_on(Arc::new(store.clone()), limited(LIMIT)).await;
    store.fails(Fails::Lists);
    for _ in 0..LIMIT + 3 {
        // If this failed, the caller would retry, and no caller would know the session of the first try.
        client.create_session(alice()).await.unwrap();
        world.clock.advance_ms(1_000);
    }
    store.fails(Fails::Nothing);
    assert_eq!(handles(&mut world).await.len(), LIMIT + 3);
    client.create_session(alice()).await.unwrap();
    assert_eq!(handles(&mut world).await.len(), LIMIT);
}

#[tokio::test]
async fn entries_whose_records_were_lost_take_no_place_of_the_limit() {
    let mut world = world_with(limited(LIMIT)).await;
    let store = FailingStore::over(&world);
    let mut client = world.limited_on(Arc::new(store.clone()), limited(LIMIT)).await;
    store.fails(Fails::Records(50));
    for _ in 0..LIMIT {
        client.create_session(alice()).await.unwrap();
        world.clock.advance_ms(1_000);
    }
    assert_eq!(handles(&mut world).await.len(), LIMIT, "none ended early");
    client.create_session(alice()).await.unwrap();
    assert_eq!(handles(&mut world).await.len(), LIMIT);
}
