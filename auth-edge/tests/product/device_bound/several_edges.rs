//! Several edges, restarted edges, edges with wrong clocks or new secrets.

use chassis::clock::{Clock as _, ManualClock};
use chassis::secret::Secret;

use super::device::UNTIL_RENEWED_MS;
use super::{bound, is_signed_in, stack};

#[tokio::test]
async fn every_edge_takes_what_another_one_gave_also_after_a_restart() {
    let stack = stack().await;
    let (mut browser, device) = bound(&stack).await;
    for _ in 0..2 {
        // This edge has never seen the browser.
        let mut beside = stack.beside().await;
        beside.jar = browser.jar.clone();
        assert!(is_signed_in(&mut beside).await);
        let asked = device.ask(&mut beside, None).await;
        let proof = device.proof(&device.challenge_of(&asked));
        assert_eq!(device.ask(&mut browser, Some(&proof)).await.status, 200);
    }
}

#[tokio::test]
async fn an_edge_whose_clock_is_off_by_half_a_minute_signs_nobody_out() {
    let stack = stack().await;
    for off_ms in [-30_000_i64, 30_000] {
        let (browser, device) = bound(&stack).await;
        let clock = ManualClock::new(stack.clock.now_ms().saturating_add_signed(off_ms));
        let mut beside = stack.beside_at_another_time(clock.clone()).await;
        beside.jar = browser.jar.clone();
        device.refresh(&mut beside).await;
        let last_ms = UNTIL_RENEWED_MS - 1_000;
        stack.clock.advance_ms(last_ms);
        clock.advance_ms(last_ms);
        let mut here = browser.clone();
        here.jar = beside.jar.clone();
        assert!(
            is_signed_in(&mut beside).await && is_signed_in(&mut here).await,
            "{off_ms}"
        );
        // The browser answers one edge's challenge at another edge.
        let asked = device.ask(&mut beside, None).await;
        let proof = device.proof(&device.challenge_of(&asked));
        assert_eq!(device.ask(&mut here, Some(&proof)).await.status, 200, "{off_ms}");
    }
}

#[tokio::test]
async fn a_new_secret_beside_the_old_one_ends_no_binding_and_without_it_nobody_is_let_in() {
    let stack = stack().await;
    let (browser, device) = bound(&stack).await;
    let secrets = |of: &[&str]| -> Vec<Secret<String>> {
        of.iter()
            .map(|secret| Secret::new((*secret).to_owned()))
            .collect()
    };
    let both = secrets(&["a new secret that is long enough", crate::support::SECRET]);
    let mut rotated = stack
        .beside_with_settings(|settings| settings.secrets = both)
        .await;
    rotated.jar = browser.jar.clone();
    assert!(is_signed_in(&mut rotated).await);
    let refreshed = device.refresh(&mut rotated).await;
    assert_eq!(refreshed.status, 200);

    // The refresh seals its answer with the new secret, like the rolled session cookie.
    let device = device.named(&refreshed.json());
    stack.clock.advance_ms(60_000);
    assert!(
        rotated
            .get("/api/auth/me")
            .await
            .set_cookie("__Host-session")
            .is_some()
    );
    let new = secrets(&["a new secret that is long enough"]);
    let mut without = stack
        .beside_with_settings(|settings| settings.secrets = new)
        .await;
    without.jar = rotated.jar.clone();
    assert!(is_signed_in(&mut without).await);
    without.jar.remove("__Host-session_bound");
    assert_eq!(device.refresh(&mut without).await.status, 200);
    assert!(is_signed_in(&mut without).await);
    without.jar = browser.jar.clone();
    assert!(!is_signed_in(&mut without).await, "signed with the old one");
}
