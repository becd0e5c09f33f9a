//! A provider with another clock, within the tolerance: our own times decide on begin and end.

use serde_json::json;
use session_proto::v1::EndSessionsRequest;

use crate::support::Stack;

/// How far the provider's clock is ahead of ours, in seconds.
const AHEAD_SECS: [i64; 4] = [-30, -5, 5, 30];

async fn scene(ahead_secs: i64) -> Stack {
    let stack = Stack::start().await;
    let now = stack.clock_secs().checked_add_signed(ahead_secs);
    stack.provider.script(|script| script.now = now);
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_works_at_once_after_everything_was_ended() {
    for ahead_secs in AHEAD_SECS {
        let stack = scene(ahead_secs).await;
        let mut before = stack.browser();
        before.sign_in().await;
        stack.clock.advance_ms(1);
        let all = EndSessionsRequest {
            issuer: stack.provider.issuer().to_owned(),
            subject: "alice".to_owned(),
            ..Default::default()
        };
        assert_eq!(
            stack
                .sessions
                .client()
                .end_sessions(all)
                .await
                .unwrap()
                .ended_count,
            1
        );
        assert_eq!(before.get("/api/auth/me").await.status, 204);
        stack.clock.advance_ms(1);
        before.sign_in().await;
        let me = before.get("/api/auth/me").await;
        assert_eq!(me.status, 200, "{ahead_secs} s ahead");
    }
}

/// At first the session service is away; the user signs in again before the provider retries.
#[tokio::test(flavor = "multi_thread")]
async fn a_logout_token_sent_again_later_spares_who_signed_in_since() {
    for ahead_secs in AHEAD_SECS {
        let stack = scene(ahead_secs).await;
        let mut before = stack.browser();
        before.sign_in().await;
        let token = stack.provider.logout_token(json!({"sub": "alice", "sid": null}));
        let form = format!("logout_token={token}");
        let mut provider = stack.browser();
        stack.sessions.stop().await;
        let answer = provider.post("/api/auth/backchannel-logout", &[], &form).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        stack.sessions.start_again().await;
        stack.clock.advance_ms(95_000);
        let mut after = stack.browser();
        let now = stack.clock_secs().checked_add_signed(ahead_secs);
        stack.provider.script(|script| script.now = now);
        after.sign_in().await;
        assert_eq!(after.get("/api/auth/me").await.status, 200);
        stack.clock.advance_ms(5_000);
        let answer = provider.post("/api/auth/backchannel-logout", &[], &form).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(before.get("/api/auth/me").await.status, 204, "{ahead_secs}");
        assert_eq!(after.get("/api/auth/me").await.status, 200, "{ahead_secs}");
        let replay = provider.post("/api/auth/backchannel-logout", &[], &form).await;
        assert_eq!(replay.status, 400, "{replay:?}");
    }
}
