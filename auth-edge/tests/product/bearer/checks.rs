//! Clients with their own tokens behind another proxy that asks the edge: `[[check]]` with `bearer`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::dpop::Holder;
use super::{Machines, challenges};
use crate::support::{Answer, key_file};

const CHECKS: &str = r#"
[[check]]
host = "orders.localhost"
guard = "api"
upstream_jwt = true
headers = { X-Tenant = "claim:tenant" }
[check.bearer]
scopes = ["orders:read"]

[[check]]
host = "people.localhost"
guard = "api"
"#;

async fn machines() -> (Machines, tempfile::NamedTempFile) {
    let keys = key_file();
    let path = keys.path().to_str().unwrap().to_owned();
    let settings = [
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
        ("EDGE_UPSTREAM_JWT_KEY_FILE", path.as_str()),
    ];
    (Machines::with(CHECKS, &settings).await, keys)
}

async fn ask(machines: &Machines, host: &str, further: &[(&str, &str)]) -> Answer {
    let told = [&[("x-forwarded-method", "GET")], further].concat();
    ask_without_method(machines, host, &told).await
}

async fn ask_without_method(machines: &Machines, host: &str, further: &[(&str, &str)]) -> Answer {
    let asked = [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", host),
        ("x-forwarded-uri", "/orders/7?page=2"),
    ];
    let mut proxy = machines.stack.browser();
    proxy
        .get_with("/api/auth/check", &[&asked[..], further].concat())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_takes_a_token_for_the_application_and_tells_it_who_it_is() {
    let (machines, _keys) = machines().await;
    let token = |aud: &str| machines.token(json!({ "aud": aud, "tenant": "acme" }));
    let good = format!("Bearer {}", token("https://orders.localhost"));
    let answer = ask(&machines, "orders.localhost", &[("authorization", &good)]).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    for (name, value) in [
        ("x-auth-subject", "alice"),
        ("x-auth-client", "machine"),
        ("x-tenant", "acme"),
        ("x-auth-session", ""),
        ("authorization", ""),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let assertion = answer.header("x-auth-assertion").split('.').nth(1).unwrap();
    let said: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(assertion).unwrap()).unwrap();
    assert_eq!(
        (&said["sub"], &said["client_id"], &said["aud"]),
        (
            &json!("alice"),
            &json!("machine"),
            &json!("https://orders.localhost")
        )
    );
    assert_eq!(said.get("sid"), None);
    for (host, aud, status) in [
        ("orders.localhost", "https://orders.localhost/orders/7", 200),
        ("orders.localhost", "https://orders.localhost/orders/8", 401),
        ("orders.localhost", "https://people.localhost", 401),
        ("orders.localhost", machines.stack.base(), 401),
        ("people.localhost", "https://people.localhost", 401),
    ] {
        let authorization = format!("Bearer {}", token(aud));
        assert_eq!(
            ask(&machines, host, &[("authorization", &authorization)])
                .await
                .status,
            status,
            "{host} {aud}"
        );
    }
    let mut person = machines.person().await;
    let cookie = format!("session={}", person.jar.remove("session").unwrap());
    let beside = [("authorization", "Bearer forged"), ("cookie", cookie.as_str())];
    assert_eq!(ask(&machines, "orders.localhost", &beside).await.status, 401);
    assert_eq!(ask(&machines, "orders.localhost", &beside[1..]).await.status, 200);
    let stranger = ask(&machines, "orders.localhost", &[]).await;
    assert_eq!(
        (stranger.status, challenges(&stranger)[0].as_str()),
        (401, "Bearer scope=\"orders:read\"")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_is_for_the_request_the_proxy_asks_about() {
    let (machines, _keys) = machines().await;
    let holder = Holder::new();
    let token =
        machines.token(json!({ "aud": "https://orders.localhost", "cnf": { "jkt": holder.thumbprint() } }));
    let authorization = format!("DPoP {token}");
    for (htm, htu, status) in [
        ("GET", "https://orders.localhost/orders/7", 200),
        ("POST", "https://orders.localhost/orders/7", 401),
        ("GET", "https://orders.localhost/api/auth/check", 401),
    ] {
        let said = json!({ "htm": htm, "htu": htu, "iat": machines.stack.now_secs(), "jti": htu });
        let proof = holder.proof(&token, said);
        let sent = [
            ("authorization", authorization.as_str()),
            ("dpop", proof.as_str()),
        ];
        assert_eq!(
            ask(&machines, "orders.localhost", &sent).await.status,
            status,
            "{htm} {htu}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_a_client_names_is_no_part_of_the_audience() {
    let (machines, _keys) = machines().await;
    for (host, aud, status) in [
        // Another port is another application: a token for it is rejected, even if the client names that port.
        ("orders.localhost:8443", "https://orders.localhost:8443", 401),
        ("ORDERS.localhost.:8443", "https://orders.localhost.:8443", 401),
        ("ORDERS.localhost.:8443", "https://orders.localhost", 200),
    ] {
        let authorization = format!("Bearer {}", machines.token(json!({ "aud": aud })));
        let answer = ask(&machines, host, &[("authorization", &authorization)]).await;
        assert_eq!(answer.status, status, "{host} {aud}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_proxy_does_not_tell_the_method_no_proof_passes() {
    let (machines, _keys) = machines().await;
    let holder = Holder::new();
    let token =
        machines.token(json!({ "aud": "https://orders.localhost", "cnf": { "jkt": holder.thumbprint() } }));
    let authorization = format!("DPoP {token}");
    for htm in ["", "GET"] {
        let htu = "https://orders.localhost/orders/7";
        let said =
            json!({ "htm": htm, "htu": htu, "iat": machines.stack.now_secs(), "jti": htm.len().to_string() });
        let proof = holder.proof(&token, said);
        let sent = [
            ("authorization", authorization.as_str()),
            ("dpop", proof.as_str()),
        ];
        let answer = ask_without_method(&machines, "orders.localhost", &sent).await;
        assert_eq!(answer.status, 401, "{htm:?}");
    }
}
