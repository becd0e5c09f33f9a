//! ListSessions: order, pages, and page tokens that survive concurrent changes.

use session_proto::v1;
use session_svc::session::index;
use session_svc::store::{KeyValueStore as _, Name, Record, Replaced};

use crate::support::*;

#[tokio::test]
async fn a_list_is_newest_first_and_its_pages_belong_to_one_person() {
    let mut world = world().await;
    let mut handles = Vec::new();
    for _ in 0..5 {
        handles.push(world.create(alice()).await.session.unwrap().handle);
        world.clock.advance_ms(10);
    }
    handles.reverse();
    let (mut listed, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = world
            .two
            .list_sessions(list(2, &page_token))
            .await
            .unwrap()
            .into_inner();
        listed.extend(page.sessions.into_iter().map(|session| session.handle));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
        let other = v1::ListSessionsRequest {
            subject: "bob".to_owned(),
            ..list(2, &page_token)
        };
        assert_eq!(field(world.one.list_sessions(other).await), "page_token");
    }
    assert_eq!(listed, handles);
}

/// All handles of Alice's list, page by page, and the size of each page.
async fn pages(client: &mut Client, size: i32) -> (Vec<String>, Vec<usize>) {
    let (mut handles, mut sizes, mut token) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = client
            .list_sessions(list(size, &token))
            .await
            .unwrap()
            .into_inner();
        sizes.push(page.sessions.len());
        handles.extend(page.sessions.into_iter().map(|session| session.handle));
        token = page.next_page_token;
        if token.is_empty() {
            return (handles, sizes);
        }
    }
}

#[tokio::test]
async fn pages_have_fifty_sessions_unless_asked_and_never_more_than_two_hundred() {
    let mut world = world().await;
    for _ in 0..205 {
        world.create(alice()).await;
    }
    for (size, expected) in [
        (0, vec![50, 50, 50, 50, 5]),
        (1_000, vec![200, 5]),
        (200, vec![200, 5]),
    ] {
        let (mut handles, sizes) = pages(&mut world.one, size).await;
        assert_eq!(sizes, expected, "{size}");
        handles.sort();
        handles.dedup();
        assert_eq!(
            handles.len(),
            205,
            "created in the same millisecond, each is told once"
        );
    }
    assert_eq!(field(world.one.list_sessions(list(-1, "")).await), "page_size");
}

#[tokio::test]
async fn a_page_token_survives_what_begins_and_ends_in_between_at_every_replica() {
    let mut world = world().await;
    let (mut ids, mut handles) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let created = world.create(alice()).await;
        ids.push(created.session_id);
        handles.push(created.session.unwrap().handle);
        world.clock.advance_ms(10);
    }
    let first = world.one.list_sessions(list(2, "")).await.unwrap().into_inner();
    assert_eq!(first.sessions.len(), 2);
    // The last session of that page, one of the next, and a new one.
    world.two.end_session(end(&ids[4])).await.unwrap();
    world.two.end_session(end(&ids[2])).await.unwrap();
    world.create(alice()).await;
    let mut rotated = world.another(lifetime(), "cd,ab").await;
    let next = rotated
        .list_sessions(list(2, &first.next_page_token))
        .await
        .unwrap()
        .into_inner();
    let reported: Vec<_> = next.sessions.iter().map(|session| &session.handle).collect();
    assert_eq!(reported, [&handles[3], &handles[1]]);
    let last = rotated
        .list_sessions(list(2, &next.next_page_token))
        .await
        .unwrap()
        .into_inner();
    let reported: Vec<_> = last.sessions.iter().map(|session| &session.handle).collect();
    assert_eq!((reported, last.next_page_token.as_str()), (vec![&handles[0]], ""));
}

#[tokio::test]
async fn a_page_of_large_sessions_ends_early_and_the_next_goes_on() {
    let mut world = world_with(session_svc::sessions::SessionLimits {
        max_bytes: 65_536,
        ..limits()
    })
    .await;
    let user = serde_json::json!({"sub": "alice", "note": "n".repeat(25_000)});
    for _ in 0..200 {
        let user = claims(user.clone());
        world.create(v1::CreateSessionRequest { user, ..alice() }).await;
        world.clock.advance_ms(1);
    }
    let (mut handles, sizes) = pages(&mut world.one, 200).await;
    assert!(sizes.len() > 1 && sizes.iter().all(|size| *size > 0), "{sizes:?}");
    handles.sort();
    handles.dedup();
    assert_eq!(handles.len(), 200);
}

#[tokio::test]
async fn what_is_no_page_token_of_this_list_is_refused() {
    let mut world = world().await;
    for _ in 0..2 {
        world.create(alice()).await;
    }
    let page = world.one.list_sessions(list(1, "")).await.unwrap().into_inner();
    let mut forged = page.next_page_token.into_bytes();
    forged[30] = if forged[30] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    for token in [forged.as_str(), "AAAA", "not base64!", "ä", &"A".repeat(2_000)] {
        assert_eq!(
            field(world.one.list_sessions(list(1, token)).await),
            "page_token",
            "{token}"
        );
    }
}

/// Alice's session record, with an entry in another person's list.
async fn entered(world: &World, handle: &str, index: Name) {
    let record = world
        .store
        .load(Name::parse(handle).unwrap())
        .await
        .unwrap()
        .unwrap();
    let version = record.version;
    let indexes = [vec![index], record.indexes.clone()].concat();
    let entered = Record { indexes, ..record };
    let replaced = world.store.replace(entered, version, None).await.unwrap();
    assert_eq!(replaced, Replaced::Done);
}

#[tokio::test]
async fn an_index_entry_that_leads_to_somebody_else_shows_and_ends_nothing() {
    let mut world = world_with(session_svc::sessions::SessionLimits {
        max_per_subject: 1,
        ..limits()
    })
    .await;
    let bob = v1::CreateSessionRequest {
        user: claims(serde_json::json!({"sub": "bob"})),
        provider_sid: "bobs".to_owned(),
        ..alice()
    };
    let issuer = bob.issuer.clone();
    let bobs = world.create(bob).await;
    let handle = bobs.session.unwrap().handle;
    entered(&world, &handle, index::by_subject(&issuer, "alice")).await;
    entered(&world, &handle, index::by_provider_sid(&issuer, "sid-1")).await;

    let listed = world.one.list_sessions(list(0, "")).await.unwrap().into_inner();
    assert_eq!(listed.sessions, []);
    for (subject, sid) in [("alice", ""), ("", "sid-1"), ("alice", "sid-1")] {
        let ended = world.two.end_sessions(end_all(subject, sid)).await.unwrap();
        assert_eq!(ended.into_inner().ended_count, 0, "{subject} {sid}");
    }
    world.clock.advance_ms(150_000);
    // Beyond Alice's limit, and not her session.
    world.create(alice()).await;
    world.one.get_session(by_id(&bobs.session_id)).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_is_listed_as_such_and_can_be_ended() {
    let mut world = world().await;
    let readable = world.create(alice()).await.session.unwrap();
    world.clock.advance_ms(1_000);
    let mut elsewhere = world.another(lifetime(), "cd").await;
    let created = elsewhere.create_session(alice()).await.unwrap().into_inner();
    let sealed = created.session.unwrap();
    let listed = world.one.list_sessions(list(0, "")).await.unwrap().into_inner();
    let [unreadable, other] = &listed.sessions[..] else {
        panic!("{listed:?}");
    };
    assert_eq!(other.handle, readable.handle);
    let expected = v1::Session {
        handle: sealed.handle.clone(),
        issuer: sealed.issuer,
        subject: "alice".to_owned(),
        created_at: sealed.created_at,
        state: v1::session::State::Unreadable.into(),
        ..Default::default()
    };
    assert_eq!(*unreadable, expected);
    let by = Some(v1::end_session_request::By::Handle(sealed.handle));
    let end = v1::EndSessionRequest {
        by,
        ..Default::default()
    };
    world.one.end_session(end).await.unwrap();
    let listed = world.two.list_sessions(list(0, "")).await.unwrap().into_inner();
    assert_eq!(listed.sessions.len(), 1);
}

#[tokio::test]
async fn a_page_reads_a_bounded_number_of_bytes() {
    let mut world = world_with(session_svc::sessions::SessionLimits {
        max_bytes: 65_536,
        ..limits()
    })
    .await;
    let user = serde_json::json!({"sub": "alice", "note": "n".repeat(60_000)});
    for _ in 0..150 {
        let user = claims(user.clone());
        world.create(v1::CreateSessionRequest { user, ..alice() }).await;
        world.clock.advance_ms(1);
    }
    let (mut handles, sizes) = pages(&mut world.one, 200).await;
    // A megabyte, plus one read.
    assert!(sizes.iter().all(|size| (1..=48).contains(size)), "{sizes:?}");
    handles.sort();
    handles.dedup();
    assert_eq!(handles.len(), 150);
    let ended = world.one.end_sessions(end_all("alice", "")).await.unwrap();
    assert_eq!(ended.into_inner().ended_count, 150);
}
