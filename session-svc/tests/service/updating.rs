//! UpdateSession: versions and masks.

use session_proto::v1::{self, ErrorReason};

use crate::support::*;

#[tokio::test]
async fn an_update_is_refused_when_the_version_is_stale_or_the_person_changes() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    let user = claims(serde_json::json!({"sub": "alice", "name": "A."}));
    let update = v1::UpdateSessionRequest {
        session_id: id.clone(),
        user,
        version: 1,
        ..Default::default()
    };
    let session = world
        .one
        .update_session(update.clone())
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert_eq!(session.version, 2);
    assert_eq!(
        reason(world.two.update_session(update.clone()).await),
        ErrorReason::ErrStaleVersion
    );
    let user = claims(serde_json::json!({"sub": "mallory"}));
    assert_eq!(
        field(
            world
                .one
                .update_session(v1::UpdateSessionRequest {
                    user,
                    version: 0,
                    ..update.clone()
                })
                .await
        ),
        "user.sub"
    );
    let big = claims(serde_json::json!({"text": "x".repeat(5_000)}));
    let big = v1::UpdateSessionRequest {
        attributes: big,
        user: String::new(),
        version: 0,
        ..update.clone()
    };
    assert_eq!(
        reason(world.one.update_session(big).await),
        ErrorReason::ErrSessionTooLarge
    );
    world.one.end_session(end(&id)).await.unwrap();
    assert_eq!(
        reason(world.one.update_session(update).await),
        ErrorReason::ErrMissingSession
    );
}

fn update(id: &str, paths: &[&str]) -> v1::UpdateSessionRequest {
    let paths = paths.iter().map(|&path| path.to_owned()).collect();
    v1::UpdateSessionRequest {
        session_id: id.to_owned(),
        user: claims(serde_json::json!({"sub": "alice", "name": "A."})),
        attributes: claims(serde_json::json!({"theme": "dark"})),
        update_mask: Some(prost_types::FieldMask { paths }),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_mask_says_what_is_replaced_and_without_one_what_is_present_is() {
    let before = claims(serde_json::json!({"sub": "alice", "name": "Alice"}));
    let user = claims(serde_json::json!({"sub": "alice", "name": "A."}));
    let (none, theme) = (
        claims(serde_json::json!({})),
        claims(serde_json::json!({"theme": "dark"})),
    );
    let without_user = v1::UpdateSessionRequest {
        user: String::new(),
        ..update("", &[])
    };
    for (request, expected) in [
        (update("", &["user"]), (&user, &none)),
        (update("", &["attributes"]), (&before, &theme)),
        (update("", &["attributes", "user"]), (&user, &theme)),
        (update("", &[]), (&user, &theme)),
        (without_user, (&before, &theme)),
    ] {
        let (mut world, session_id) = signed_in().await;
        let request = v1::UpdateSessionRequest {
            session_id,
            ..request
        };
        let updated = world.one.update_session(request).await.unwrap().into_inner();
        let session = updated.session.unwrap();
        let reported = (&session.user, &session.attributes);
        assert_eq!((reported, session.version), (expected, 2));
    }
}

#[tokio::test]
async fn attributes_named_but_absent_are_cleared_and_an_unusable_mask_is_refused() {
    let (mut world, id) = signed_in().await;
    world
        .one
        .update_session(update(&id, &["attributes"]))
        .await
        .unwrap();
    let bare = |paths: &[&str]| v1::UpdateSessionRequest {
        user: String::new(),
        attributes: String::new(),
        ..update(&id, paths)
    };
    let cleared = world
        .two
        .update_session(bare(&["attributes"]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(cleared.session.unwrap().attributes, claims(serde_json::json!({})));
    for (name, wrong) in [
        (
            "user",
            v1::UpdateSessionRequest {
                user: "[]".to_owned(),
                ..update(&id, &["user"])
            },
        ),
        (
            "attributes",
            v1::UpdateSessionRequest {
                attributes: r#"{"a":1,"a":2}"#.to_owned(),
                ..update(&id, &[])
            },
        ),
    ] {
        assert_eq!(field(world.one.update_session(wrong).await), name);
    }
    assert_eq!(field(world.one.update_session(bare(&["user"])).await), "user");
    assert_eq!(field(world.one.update_session(bare(&[])).await), "update_mask");
    for path in ["scope", "user.name", "User", "*", ""] {
        assert_eq!(
            field(world.one.update_session(update(&id, &[path])).await),
            "update_mask",
            "{path}"
        );
    }
    let session = world
        .one
        .get_session(by_id(&id))
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert_eq!(session.version, 3, "what was refused wrote nothing");
}

#[tokio::test]
async fn of_two_updates_of_one_version_one_wins_and_the_other_is_told() {
    let (mut world, id) = signed_in().await;
    let request = v1::UpdateSessionRequest {
        version: 1,
        ..update(&id, &["attributes"])
    };
    let (one, two) = tokio::join!(
        world.one.update_session(request.clone()),
        world.two.update_session(request.clone())
    );
    let (won, lost) = if one.is_ok() { (one, two) } else { (two, one) };
    assert_eq!(won.unwrap().into_inner().session.unwrap().version, 2);
    assert_eq!(reason(lost), ErrorReason::ErrStaleVersion);
}
