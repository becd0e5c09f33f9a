//! `[allow]`: who passes a guard, a check without a rule, and an address whose file changes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::support::Browser;

/// A changed file applies within ten seconds; only a failing test waits longer.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

const DOMAIN: &str = "[allow]\nemail_domains = [\"example.com\"]\nnot = { groups = [\"suspended\"] }\n";

async fn person(gateway: &Gateway, more: Value) -> Browser {
    let mut user = json!({"sub": "ada-1", "email": "ada@example.com", "email_verified": true});
    for (name, value) in more.as_object().unwrap() {
        user[name] = value.clone();
    }
    gateway.signed_in_as(user, "openid").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_and_a_check_admit_verified_addresses_of_the_domain_alone() {
    let gateway = Gateway::start(DOMAIN, &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    for (claims, status) in [
        (json!({}), 200),
        (json!({"email": "ADA@Example.COM"}), 200),
        (json!({"email": "ada@example.com.evil.net"}), 403),
        (json!({"email": "ada@sub.example.com"}), 403),
        (json!({"email_verified": false}), 403),
        (json!({"email_verified": null}), 403),
        (json!({"groups": ["suspended", "staff"]}), 403),
    ] {
        let mut browser = person(&gateway, claims.clone()).await;
        assert_eq!(browser.get("/api/orders").await.status, status, "{claims}");
        assert_eq!(browser.get("/api/auth/check").await.status, status, "{claims}");
        assert_eq!(browser.get("/public/a").await.status, 200);
        assert_eq!(
            browser.get("/api/auth/me").await.status,
            200,
            "the account pages stay"
        );
    }
    let mut other = person(&gateway, json!({"email": "ada@elsewhere.com"})).await;
    let refused = other.get("/api/orders").await;
    assert!(
        refused.body.contains("insufficient_claims") && refused.body.contains("email"),
        "{refused:?}"
    );
    assert!(
        !refused.body.contains("example.com"),
        "the answer names no accepted value"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_its_own_replaces_the_list_at_the_top() {
    let rule = "[[route]]\npath = \"/partners/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\nallow = { emails = [\"kate@partner.net\"] }\n";
    let gateway = Gateway::start(&format!("{rule}{DOMAIN}"), &[]).await;
    let mut kate = person(&gateway, json!({"email": "kate@partner.net"})).await;
    assert_eq!(kate.get("/partners/a").await.status, 200);
    assert_eq!(kate.get("/api/orders").await.status, 403);
    let mut ada = person(&gateway, json!({})).await;
    assert_eq!(ada.get("/partners/a").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_checked_before_a_sign_in_by_the_address_that_trusted_proxies_report() {
    let table = "[allow]\nnetworks = [\"192.0.2.0/24\", \"2001:db8::/32\"]\n";
    let gateway = Gateway::start(table, &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let mut stranger = gateway.stack.browser();
    for (client, status) in [
        ("192.0.2.7", 401),
        ("2001:db8::7", 401),
        ("::ffff:192.0.2.7", 401),
        ("198.51.100.7", 403),
        ("192.0.2.7, 198.51.100.7", 403),
    ] {
        for path in ["/api/orders", "/api/auth/check"] {
            let answer = stranger.get_with(path, &[("x-forwarded-for", client)]).await;
            assert_eq!(answer.status, status, "{path} {client}");
            assert_eq!(answer.body.contains("wrong_network"), status == 403, "{answer:?}");
        }
    }
    assert_eq!(stranger.get("/public/a").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_addresses_is_followed_and_an_unreadable_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("allowed-emails");
    std::fs::write(&file, "# partners\nkate@partner.net\n").unwrap();
    let table = format!("[allow]\nemails_file = {:?}\n", file.display().to_string());
    let gateway = Gateway::start(&table, &[]).await;
    let mut ada = person(&gateway, json!({})).await;
    let mut kate = person(&gateway, json!({"email": "kate@partner.net"})).await;
    assert_eq!(ada.get("/api/orders").await.status, 403);
    assert_eq!(kate.get("/api/orders").await.status, 200);

    std::fs::write(&file, "Ada@example.com,comment\n").unwrap();
    let deadline = Instant::now() + LONGEST_WAIT;
    while ada.get("/api/orders").await.status != 200 {
        assert!(Instant::now() < deadline, "the file is not followed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(kate.get("/api/orders").await.status, 403);

    std::fs::write(&file, "").unwrap();
    let deadline = Instant::now() + LONGEST_WAIT;
    while ada.get("/api/orders").await.status != 403 {
        assert!(Instant::now() < deadline, "an empty file admits nobody");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
