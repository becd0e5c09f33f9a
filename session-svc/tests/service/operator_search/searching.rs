//! What each filter finds, and in how many calls.

use serde_json::json;
use session_proto::timestamp::from_ms;
use session_proto::v1;
use session_proto::v1::session::State;
use session_proto::v1::session_filter::By;
use session_svc::sessions::SessionLimits;

use super::support::*;
use crate::support::*;

async fn created(world: &mut World, request: v1::CreateSessionRequest) -> String {
    world.clock.advance_ms(10);
    world.create(request).await.session.unwrap().handle
}

/// Ada twice and Bob, and a namesake at another issuer who shares everything with Ada.
async fn people(world: &mut World) -> ([String; 3], String) {
    let ada =
        json!({"sub": "ada", "name": "Ada Lovelace", "email": "Ada@Example.com", "email_verified": true});
    let bob = json!({"sub": "bob", "preferred_username": "Bobby", "email": "ada@example.com", "email_verified": false});
    let first = created(world, person(ISSUER, ada.clone(), "sid-1", "192.0.2.7")).await;
    let namesake = created(world, person(OTHER_ISSUER, ada.clone(), "sid-1", "192.0.2.7")).await;
    let second = created(world, person(ISSUER, ada, "sid-2", "2001:db8::7")).await;
    let bob = created(world, person(ISSUER, bob, "sid-3", "192.0.2.200")).await;
    ([first, second, bob], namesake)
}

#[tokio::test]
async fn each_filter_finds_its_sessions_the_newest_first_and_none_of_another_issuer() {
    let (mut world, [mut one, mut two]) = searchable().await;
    let ([first, second, bob], namesake) = people(&mut world).await;
    let text = str::to_owned;
    for (by, expected) in [
        (By::Handle(first.clone()), vec![&first]),
        (By::Handle(namesake.clone()), vec![]),
        (By::Handle("0".repeat(32)), vec![]),
        (By::Subject(text("ada")), vec![&second, &first]),
        (By::Subject(text("Ada")), vec![]),
        (By::ProviderSid(text("sid-1")), vec![&first]),
        (By::Email(text("ADA@example.com")), vec![&second, &first]),
        (By::Email(text("ada@example")), vec![]),
        (By::Address(text("192.0.2.7")), vec![&first]),
        (By::Address(text("192.0.2.0/24")), vec![&bob, &first]),
        (By::Address(text("2001:db8::/32")), vec![&second]),
        (By::Address(text("198.51.100.0/24")), vec![]),
        (By::Name(text("ada lovelace")), vec![&second, &first]),
        (By::Name(text("BOBBY")), vec![&bob]),
        (By::Name(text("ada")), vec![]),
        (By::Everyone(true), vec![&bob, &second, &first]),
    ] {
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        assert_eq!(handles(&mut one, filter(by.clone())).await, expected, "{by:?}");
        assert_eq!(handles(&mut two, filter(by.clone())).await, expected, "{by:?}");
    }
    let elsewhere = v1::SessionFilter {
        issuer: OTHER_ISSUER.to_owned(),
        ..filter(By::Everyone(true))
    };
    assert_eq!(handles(&mut one, elsewhere).await, [namesake]);
}

#[tokio::test]
async fn a_session_is_also_found_at_the_address_where_it_was_last_used() {
    let (mut world, [mut one, _]) = searchable().await;
    let created = world
        .create(person(ISSUER, json!({"sub": "ada"}), "", "192.0.2.7"))
        .await;
    world.clock.advance_ms(60_000);
    let rolled = v1::RollSessionRequest {
        device: Some(v1::Device {
            address: "198.51.100.9".to_owned(),
            ..Default::default()
        }),
        ..roll(&created.session_id)
    };
    world.one.roll_session(rolled).await.unwrap();
    let handle = created.session.unwrap().handle;
    for address in ["192.0.2.7", "198.51.100.0/24"] {
        let found = handles(&mut one, filter(By::Address(address.to_owned()))).await;
        assert_eq!(found, std::slice::from_ref(&handle), "{address}");
    }
}

#[tokio::test]
async fn times_bound_every_filter() {
    let (mut world, [mut one, _]) = searchable().await;
    let ([first, second, bob], _) = people(&mut world).await;
    // Created 10, 30 and 40 ms after the start.
    let at = |ms: u64| Some(from_ms(START_MS + ms));
    let ada = || By::Subject("ada".to_owned());
    for (by, after, before, expected) in [
        (By::Everyone(true), at(30), None, vec![&bob, &second]),
        (By::Everyone(true), at(31), None, vec![&bob]),
        (By::Everyone(true), None, at(30), vec![&first]),
        (By::Everyone(true), at(11), at(40), vec![&second]),
        (By::Everyone(true), at(41), None, vec![]),
        (ada(), at(30), None, vec![&second]),
        (ada(), None, at(30), vec![&first]),
        (By::Handle(bob.clone()), None, at(40), vec![]),
        (By::Handle(bob.clone()), at(40), None, vec![&bob]),
    ] {
        let bounded = v1::SessionFilter {
            created_after: after,
            created_before: before,
            ..filter(by.clone())
        };
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        assert_eq!(
            handles(&mut one, bounded).await,
            expected,
            "{by:?} {after:?} {before:?}"
        );
    }
}

#[tokio::test]
async fn a_result_has_no_token_facts_and_only_the_claims_that_were_asked_for() {
    let (mut world, [mut one, _]) = searchable().await;
    let claims = json!({"sub": "ada", "name": "Ada", "groups": ["staff"], "email": "a@b.example"});
    let created = world.create(person(ISSUER, claims, "sid-1", "192.0.2.7")).await;
    let update = v1::UpdateSessionRequest {
        session_id: created.session_id,
        attributes: json!({"cart": 7}).to_string(),
        ..Default::default()
    };
    let updated = world.one.update_session(update).await.unwrap();
    let full = updated.into_inner().session.unwrap();
    assert!(full.has_refresh_token && !full.scope.is_empty());
    for (claims, user) in [
        (vec![], json!({"sub": "ada"})),
        (vec!["name", "phone"], json!({"sub": "ada", "name": "Ada"})),
    ] {
        let request = v1::SearchSessionsRequest {
            claims: claims.into_iter().map(str::to_owned).collect(),
            ..search(filter(By::Everyone(true)))
        };
        let page = one.search_sessions(request).await.unwrap().into_inner();
        assert!(page.server_time.is_some());
        let found = &page.sessions[0];
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&found.user).unwrap(),
            user
        );
        let expected = v1::Session {
            user: found.user.clone(),
            attributes: "{}".to_owned(),
            scope: String::new(),
            access_token_expires_at: None,
            has_refresh_token: false,
            ..full.clone()
        };
        assert_eq!(found, &expected);
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_read_is_listed_as_such_and_matches_no_claim() {
    let (mut world, [mut one, _]) = searchable().await;
    let other = SessionLimits {
        operator_search: true,
        ..limits()
    };
    let mut with_other_key = world.limited_with_key(other, "cd").await;
    let request = person(ISSUER, json!({"sub": "ada", "name": "Ada"}), "", "192.0.2.7");
    let handle = with_other_key.create_session(request).await.unwrap().into_inner();
    let handle = handle.session.unwrap().handle;
    world
        .create(person(ISSUER, json!({"sub": "bob"}), "", "192.0.2.8"))
        .await;
    for (by, count) in [
        (By::Everyone(true), 2),
        (By::Subject("ada".to_owned()), 1),
        (By::Handle(handle.clone()), 1),
        (By::Name("ada".to_owned()), 0),
        (By::Address("192.0.2.7".to_owned()), 0),
    ] {
        let page = one.search_sessions(search(filter(by.clone()))).await.unwrap();
        let sessions = page.into_inner().sessions;
        assert_eq!(sessions.len(), count, "{by:?}");
        let unreadable = sessions.iter().filter(|one| one.state() == State::Unreadable);
        assert_eq!(unreadable.count(), count.min(1), "{by:?}");
    }
    let elsewhere = v1::SessionFilter {
        issuer: OTHER_ISSUER.to_owned(),
        ..filter(By::Handle(handle))
    };
    assert!(handles(&mut one, elsewhere).await.is_empty());
}

#[tokio::test]
async fn a_page_token_belongs_to_one_filter_of_one_issuer() {
    let (world, [mut one, mut two]) = searchable().await;
    fill(&world, ISSUER, 3).await;
    let request = v1::SearchSessionsRequest {
        page_size: 1,
        ..search(filter(By::Everyone(true)))
    };
    let page_token = one
        .search_sessions(request.clone())
        .await
        .unwrap()
        .into_inner()
        .next_page_token;
    let with_token = v1::SearchSessionsRequest {
        page_token,
        ..request
    };
    let second = two
        .search_sessions(with_token.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(second.sessions.len(), 1, "at every replica");
    for other in [
        filter(By::Name("ada".to_owned())),
        v1::SessionFilter {
            issuer: OTHER_ISSUER.to_owned(),
            ..filter(By::Everyone(true))
        },
        v1::SessionFilter {
            created_after: Some(from_ms(1)),
            ..filter(By::Everyone(true))
        },
    ] {
        let stolen = v1::SearchSessionsRequest {
            filter: Some(other),
            ..with_token.clone()
        };
        assert_eq!(field(one.search_sessions(stolen).await), "page_token");
    }
}

#[tokio::test]
async fn a_call_examines_a_bounded_number_of_sessions_and_the_pages_miss_none() {
    let (world, [mut one, _]) = searchable().await;
    let mut expected = fill(&world, ISSUER, 10_000).await;
    let (mut found, pages, most) = all_pages(&mut one, search(filter(By::Everyone(true)))).await;
    assert!((200..=10_000).contains(&pages), "fifty a page: {pages}");
    assert!(most <= 2_048, "{most}");
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    // Nothing matches, so only the bound ends a call.
    let (found, pages, most) = all_pages(&mut one, search(filter(By::Name("ada".to_owned())))).await;
    assert!(found.is_empty());
    assert!(pages >= 5 && most <= 2_048, "{pages} {most}");
}
