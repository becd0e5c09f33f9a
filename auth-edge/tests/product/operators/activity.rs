//! The stream of a provider's activity: it ends with the operator's right.

use serde_json::json;
use session_proto::error::reason_of;
use session_proto::v1::activity::What;
use session_proto::v1::session_event::Kind;
use session_proto::v1::{Activity, ErrorReason, UpdateSessionRequest};
use tonic::Code;

use super::{Console, Messages, RULE, subject};

/// The handle of the next event. Skips counts of failed sign-ins.
async fn next_event(watch: &mut Messages) -> String {
    loop {
        if let Some(What::Event(event)) = watch.next::<Activity>().await.unwrap().what {
            return event.handle;
        }
    }
}

#[tokio::test]
async fn a_stream_begins_with_the_failed_sign_ins_and_goes_on_with_events() {
    let console = Console::start(RULE).await;
    let refused = console
        .stack
        .browser()
        .visit("/api/auth/callback/a?code=forged&state=forged")
        .await;
    assert_eq!(refused.status, 400);
    let olga = console.operator().await;
    let mut watch = olga.watch(&console.watch()).await;
    let Some(What::Failures(failures)) = watch.next::<Activity>().await.unwrap().what else {
        panic!("the counts come first");
    };
    assert_eq!(failures.by_error["unknown_transaction"], 1, "{failures:?}");
    assert!(failures.since.is_some());
    console.service.send(Kind::Heartbeat, "");
    console.service.send(Kind::Created, "one");
    console.service.send(Kind::Missed, "");
    console.service.send(Kind::Ended, "two");
    for expected in ["one", "", "two"] {
        assert_eq!(next_event(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn a_stream_ends_when_the_operators_claims_lose_the_right() {
    let console = Console::with(RULE, &[("EDGE_SESSION_CACHE_SECS", "15")]).await;
    let olga = console.operator().await;
    let mut watch = olga.watch(&console.watch()).await;
    watch.next::<Activity>().await.unwrap();
    let update = UpdateSessionRequest {
        session_id: olga.cookie.split(['=', '.']).nth(1).unwrap().to_owned(),
        user: json!({ "sub": "olga", "groups": ["sales"] }).to_string(),
        ..UpdateSessionRequest::default()
    };
    console
        .stack
        .sessions
        .client()
        .update_session(update)
        .await
        .unwrap();
    assert_eq!(
        reason_of(&watch.end().await),
        Some(ErrorReason::ErrCallerNotAllowed)
    );
    let next = olga
        .search(&console.search(subject("person-1")))
        .await
        .unwrap_err();
    assert_eq!(reason_of(&next), Some(ErrorReason::ErrCallerNotAllowed));
}

#[tokio::test]
async fn a_stream_ends_when_the_rule_changes_and_when_it_is_removed() {
    let console = Console::start(RULE).await;
    let olga = console.operator().await;
    let both = console
        .page(json!({ "sub": "otto", "groups": ["support", "security"] }))
        .await;
    let mut of_olga = olga.watch(&console.watch()).await;
    let mut of_both = both.watch(&console.watch()).await;
    of_olga.next::<Activity>().await.unwrap();
    std::fs::write(console.routes.path(), RULE.replace("support", "security")).unwrap();
    assert_eq!(of_olga.end().await.code(), Code::PermissionDenied);
    let next = olga
        .search(&console.search(subject("person-1")))
        .await
        .unwrap_err();
    assert_eq!(next.code(), Code::PermissionDenied);
    assert!(both.search(&console.search(subject("person-1"))).await.is_ok());
    std::fs::write(console.routes.path(), "# no rule").unwrap();
    assert_eq!(of_both.end().await.code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_stream_ends_when_the_sign_in_becomes_too_old() {
    let console = Console::start(&format!("{RULE}max_age = 60\n")).await;
    let olga = console.operator().await;
    let mut watch = olga.watch(&console.watch()).await;
    watch.next::<Activity>().await.unwrap();
    console.stack.clock.advance_ms(61_000);
    assert_eq!(
        reason_of(&watch.end().await),
        Some(ErrorReason::ErrFailedRefreshGrant)
    );
}
