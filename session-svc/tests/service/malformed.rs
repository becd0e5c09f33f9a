//! Invalid fields: the error names each.

use session_proto::timestamp::from_ms;
use session_proto::v1;

use crate::support::*;

#[tokio::test]
async fn every_malformed_field_is_named() {
    let mut world = world().await;
    assert_eq!(
        field(world.one.get_session(v1::GetSessionRequest { by: None }).await),
        "session_id"
    );
    assert_eq!(
        field(world.one.get_session(by_id(&"A".repeat(32))).await),
        "session_id"
    );
    assert_eq!(
        field(
            world
                .one
                .create_session(v1::CreateSessionRequest {
                    issuer: String::new(),
                    ..alice()
                })
                .await
        ),
        "issuer"
    );
    assert_eq!(
        field(
            world
                .one
                .create_session(v1::CreateSessionRequest {
                    user: String::new(),
                    ..alice()
                })
                .await
        ),
        "user.sub"
    );
    assert_eq!(
        field(
            world
                .one
                .create_session(v1::CreateSessionRequest {
                    request_id: "x".to_owned(),
                    ..alice()
                })
                .await
        ),
        "request_id"
    );
    assert_eq!(
        field(
            world
                .one
                .create_session(v1::CreateSessionRequest {
                    not_after: Some(from_ms(1)),
                    ..alice()
                })
                .await
        ),
        "not_after"
    );
    let mut odd = alice();
    odd.tokens.as_mut().unwrap().token_type = "mac".to_owned();
    assert_eq!(field(world.one.create_session(odd).await), "tokens.token_type");
    assert_eq!(field(world.one.end_sessions(end_all("", "")).await), "subject");
}

#[tokio::test]
async fn every_field_of_a_new_session_is_bounded() {
    let mut world = world().await;
    type Change = fn(&mut v1::CreateSessionRequest);
    let cases: [(&str, Change); 16] = [
        ("issuer", |new| {
            new.issuer = format!("https://{}", "i".repeat(2_048))
        }),
        ("issuer", |new| new.issuer = "https://issuer\n.example".to_owned()),
        ("user.sub", |new| {
            new.user = claims(serde_json::json!({"sub": 7}));
        }),
        ("user.sub", |new| {
            new.user = claims(serde_json::json!({"sub": "s".repeat(513)}));
        }),
        ("user.sub", |new| {
            new.user = claims(serde_json::json!({"sub": "a\u{0}b"}));
        }),
        ("user", |new| new.user = "[]".to_owned()),
        ("user", |new| {
            new.user = r#"{"sub":"alice","sub":"bob"}"#.to_owned();
        }),
        ("provider_sid", |new| new.provider_sid = "s".repeat(513)),
        ("provider_sid", |new| new.provider_sid = "a\tb".to_owned()),
        ("request_id", |new| new.request_id = "x".repeat(65)),
        ("request_id", |new| new.request_id = "sixteen chars or".to_owned()),
        ("replaces_session_id", |new| {
            new.replaces_session_id = "g".repeat(32)
        }),
        ("device.address", |new| {
            new.device = Some(v1::Device {
                address: "localhost".to_owned(),
                ..Default::default()
            });
        }),
        ("authenticated_at", |new| {
            new.authenticated_at = Some(prost_types::Timestamp {
                seconds: -1,
                nanos: 0,
            });
        }),
        ("authenticated_at", |new| {
            new.authenticated_at = Some(prost_types::Timestamp {
                seconds: 1,
                nanos: 1_000_000_000,
            });
        }),
        ("tokens.expires_at", |new| {
            let tokens = new.tokens.as_mut().unwrap();
            tokens.expires_at = Some(prost_types::Timestamp {
                seconds: 1,
                nanos: -1,
            });
        }),
    ];
    for (at, (name, change)) in cases.into_iter().enumerate() {
        let mut request = alice();
        change(&mut request);
        assert_eq!(field(world.one.create_session(request).await), name, "case {at}");
    }
    let listed = world.one.list_sessions(list(0, "")).await.unwrap().into_inner();
    assert!(listed.sessions.is_empty(), "what was refused began nothing");
}

#[tokio::test]
async fn every_other_request_names_its_wrong_field_too() {
    let (mut world, id) = signed_in().await;
    for wrong in [
        "",
        "0",
        &"A".repeat(32),
        &"0".repeat(33),
        &format!(" {}", "0".repeat(31)),
    ] {
        assert_eq!(
            field(world.one.get_session(by_id(wrong)).await),
            "session_id",
            "{wrong:?}"
        );
        assert_eq!(field(world.one.roll_session(roll(wrong)).await), "session_id");
        assert_eq!(
            field(world.one.get_access_token(token(wrong)).await),
            "session_id"
        );
        assert_eq!(field(world.one.end_session(end(wrong)).await), "session_id");
        let update = v1::UpdateSessionRequest {
            session_id: wrong.to_owned(),
            ..Default::default()
        };
        assert_eq!(field(world.one.update_session(update).await), "session_id");
        let by = Some(v1::get_session_request::By::Handle(wrong.to_owned()));
        assert_eq!(
            field(world.one.get_session(v1::GetSessionRequest { by }).await),
            "handle"
        );
        let by = Some(v1::end_session_request::By::Handle(wrong.to_owned()));
        let by_handle = v1::EndSessionRequest {
            by,
            ..Default::default()
        };
        assert_eq!(field(world.one.end_session(by_handle).await), "handle");
    }
    let long = vec!["s".repeat(257)];
    for scopes in [
        vec!["a".to_owned(); 101],
        long,
        vec![String::new()],
        vec!["a b".to_owned()],
        vec!["é".to_owned()],
    ] {
        let asked = v1::GetAccessTokenRequest { scopes, ..token(&id) };
        assert_eq!(field(world.one.get_access_token(asked).await), "scopes");
    }
    let once = v1::EndSessionsRequest {
        once_id: "j".repeat(513),
        once_until: Some(from_ms(START_MS)),
        ..end_all("alice", "")
    };
    assert_eq!(field(world.one.end_sessions(once).await), "once_id");
    let except = v1::EndSessionsRequest {
        except_handle: "me".to_owned(),
        ..end_all("alice", "")
    };
    assert_eq!(field(world.one.end_sessions(except).await), "except_handle");
    for (issuer, subject, expected) in [("", "alice", "issuer"), (ISSUER, "", "subject")] {
        let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
        let listed = v1::ListSessionsRequest {
            issuer: issuer.clone(),
            subject: subject.clone(),
            ..Default::default()
        };
        assert_eq!(field(world.one.list_sessions(listed).await), expected);
        let watched = v1::WatchSessionsRequest {
            issuer,
            subject,
            ..Default::default()
        };
        assert_eq!(
            field(world.one.watch_sessions(watched).await.map(|_| ())),
            expected
        );
    }
    let resumed = v1::WatchSessionsRequest {
        resume_token: "t".repeat(1_025),
        ..Default::default()
    };
    assert_eq!(
        field(world.one.watch_sessions(resumed).await.map(|_| ())),
        "resume_token"
    );
    world
        .one
        .get_session(by_id(&id))
        .await
        .expect("the session is untouched");
}
