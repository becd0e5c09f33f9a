//! Access tokens outside RFC 9068, from their providers' documents, and the same providers' ID tokens.

use oidc::{ACCESS_TOKEN_SHAPES, AccessTokenShape};
use scripted_provider::CLIENT_ID;
use serde_json::{Value, json};

use crate::support::{Bench, NOW, bench_with};

/// The route's audience. At Entra it may be the ID of a registration that also has sign-ins.
const AUDIENCE: &str = "00001111-aaaa-2222-bbbb-3333cccc4444";
const CALLER: &str = "11112222-bbbb-3333-cccc-4444dddd5555";

/// A provider: its shape's name, header `typ`, access token, the token's client, and its ID token.
struct Documented {
    shape: &'static str,
    typ: Value,
    access: Value,
    id: Value,
}

/// https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference (and id-token-…).
fn entra() -> Documented {
    Documented {
        shape: "entra",
        typ: json!("JWT"),
        access: json!({
            "aud": AUDIENCE, "nbf": NOW, "aio": "AXQAi/8IAAAA", "azp": CALLER, "azpacr": "0",
            "name": "Abe Lincoln", "oid": "690222be-ff1a-4d56-abd1-7e4f7d38e474",
            "preferred_username": "abeli@microsoft.com", "rh": "I", "scp": "access_as_user orders:read",
            "tid": "72f988bf-86f1-41af-91ab-2d7cd011db47", "uti": "fqiBqXLPj0eQa82S-IYFAA", "ver": "2.0",
        }),
        id: json!({
            "aud": AUDIENCE, "nbf": NOW, "aio": "Df2UVXL1ix", "name": "Abe Lincoln", "nonce": "123523",
            "oid": "00000000-0000-0000-66f3-3332eca7ea81", "preferred_username": "abeli@microsoft.com",
            "roles": ["orders:read"], "tid": "9122040d-6c67-4c5b-b112-36a304b66dad", "ver": "2.0",
        }),
    }
}

/// https://developer.okta.com/docs/api/openapi/okta-oauth/guides/overview/ (access token and ID token).
fn okta() -> Documented {
    Documented {
        shape: "okta",
        typ: json!(null),
        access: json!({
            "ver": 1, "jti": "AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE", "aud": AUDIENCE, "cid": CALLER,
            "uid": "00ujmkLgagxeRrAg20g3", "scp": ["openid", "orders:read"],
        }),
        id: json!({
            "ver": 1, "jti": "ID.4eAWJOCMB3SX8XewDfVR", "aud": CALLER, "amr": ["pwd"], "idp": "00ok1u7AsAkrwdZL3z0g3",
            "auth_time": NOW, "at_hash": "preview_at_hash", "preferred_username": "saml.jackson@example.com",
        }),
    }
}

/// docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-{access,id}-token.html
fn cognito() -> Documented {
    Documented {
        shape: "cognito",
        typ: json!(null),
        access: json!({
            "device_key": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "cognito:groups": ["testgroup"], "version": 2,
            "client_id": CALLER, "origin_jti": "aaaa", "event_id": "64f513be", "token_use": "access",
            "scope": "phone openid orders:read", "auth_time": NOW, "username": "my-test-user",
        }),
        id: json!({
            "cognito:groups": ["test-group-a"], "cognito:username": "my-test-user", "nonce": "abcdefg",
            "origin_jti": "aaaa", "aud": CALLER, "event_id": "64f513be", "token_use": "id", "auth_time": NOW,
        }),
    }
}

fn bench_of(shape: &str) -> Bench {
    let shape = AccessTokenShape::of_name(shape).expect("a shape");
    bench_with(|settings| settings.access_tokens = shape)
}

/// The token with these claims, without the scripted provider's own `client_id`.
fn signed(bench: &Bench, typ: &Value, claims: &Value) -> String {
    let mut own = json!({ "client_id": null, "jti": null });
    for (name, value) in claims.as_object().expect("claims") {
        own[name] = value.clone();
    }
    bench
        .provider
        .access_token_with_header(json!({ "typ": typ }), own)
}

/// The reason the token is rejected; empty if it passes.
async fn reason(bench: &Bench, raw: &str) -> &'static str {
    let is_audience = |audience: &str| audience == AUDIENCE;
    let clients = [CALLER.to_owned()];
    let token = bench
        .party
        .validate_access_token(raw, is_audience, &clients, NOW)
        .await;
    token.map_or_else(|error| error.reason(), |_| "")
}

fn patched(claims: &Value, patch: Value) -> Value {
    let mut own = claims.clone();
    for (name, value) in patch.as_object().expect("a patch") {
        own[name] = value.clone();
    }
    own
}

#[tokio::test]
async fn each_documented_access_token_passes_and_no_id_token_does() {
    let all = [entra(), okta(), cognito()];
    assert_eq!(
        all.len() + 1,
        ACCESS_TOKEN_SHAPES.len(),
        "each shape has its documents here"
    );
    for Documented {
        shape,
        typ,
        access,
        id,
    } in all
    {
        let bench = bench_of(shape);
        let raw = signed(&bench, &typ, &access);
        let clients = [CALLER.to_owned()];
        let token = bench
            .party
            .validate_access_token(&raw, |audience| audience == AUDIENCE, &clients, NOW)
            .await
            .expect(shape);
        assert_eq!(token.client_id, CALLER, "{shape}");
        assert!(token.has_scope("orders:read"), "{shape}");
        assert!(
            !token.has_scope("orders:write") && !token.has_scope(""),
            "{shape}"
        );
        assert_eq!(
            reason(&bench, &signed(&bench, &typ, &id)).await,
            "shape",
            "{shape}"
        );
        // The same ID token from a flow without hash and nonce, for the audience of the route.
        let bare = patched(&id, json!({ "nonce": null, "at_hash": null, "aud": AUDIENCE }));
        assert_eq!(
            reason(&bench, &signed(&bench, &typ, &bare)).await,
            "shape",
            "{shape}"
        );
        // A claim of ID tokens makes any token an ID token.
        for (name, value) in [("nonce", "n"), ("at_hash", "h"), ("c_hash", "h")] {
            let raw = signed(&bench, &typ, &patched(&access, json!({ name: value })));
            assert_eq!(reason(&bench, &raw).await, "shape", "{shape} {name}");
        }
        for own in [json!(CALLER), json!(CLIENT_ID), json!([AUDIENCE, CALLER])] {
            let raw = signed(&bench, &typ, &patched(&access, json!({ "aud": own })));
            assert_eq!(reason(&bench, &raw).await, "shape", "{shape} {own}");
        }
        for kind in [
            "at+jwt",
            "logout+jwt",
            "application/okta-internal-at+jwt",
            "dpop+jwt",
        ] {
            assert_eq!(
                reason(&bench, &signed(&bench, &json!(kind), &access)).await,
                "typ",
                "{shape} {kind}"
            );
        }
        for (patch, refused) in [
            (json!({ "exp": NOW - 61 }), "expired"),
            (json!({ "iss": "https://evil.example" }), "iss"),
            (json!({ "aud": "another-resource" }), "aud"),
            (json!({ "aud": [] }), "aud"),
            (json!({ "sub": null }), "sub"),
        ] {
            let raw = signed(&bench, &typ, &patched(&access, patch.clone()));
            assert_eq!(reason(&bench, &raw).await, refused, "{shape} {patch}");
        }
    }
}

#[tokio::test]
async fn no_provider_passes_by_the_shape_of_another() {
    let all = [entra(), okta(), cognito()];
    for of in &all {
        for by in ACCESS_TOKEN_SHAPES.iter().filter(|by| by.name != of.shape) {
            let bench = bench_of(by.name);
            let refused = reason(&bench, &signed(&bench, &of.typ, &of.access)).await;
            assert_ne!(refused, "", "{} as {}", of.shape, by.name);
        }
    }
}

#[tokio::test]
async fn permissions_of_an_application_count_as_its_scopes_and_those_of_a_person_do_not() {
    let (bench, Documented { typ, access, .. }) = (bench_of("entra"), entra());
    let judged = async |patch: Value| {
        let raw = signed(&bench, &typ, &patched(&access, patch));
        let is_audience = |audience: &str| audience == AUDIENCE;
        bench
            .party
            .validate_access_token(&raw, is_audience, &[], NOW)
            .await
    };
    let application = json!({ "scp": null, "roles": ["Orders.Read.All"], "idtyp": "app", "name": null });
    let token = judged(application).await.expect("an application's");
    assert!(token.has_scope("Orders.Read.All"));
    let person = judged(json!({ "roles": ["Orders.Read.All"] }))
        .await
        .expect("a person's");
    assert!(!person.has_scope("Orders.Read.All") && person.has_scope("access_as_user"));
    // Every application of the tenant gets a token for every API, without any permission.
    for (patch, refused) in [
        (json!({ "scp": null }), "shape"),
        (json!({ "scp": "" }), "shape"),
        (json!({ "scp": null, "roles": [] }), "shape"),
        (json!({ "scp": { "a": 1 } }), "scope_malformed"),
        (json!({ "scp": ["a b"] }), "scope_malformed"),
        (json!({ "azp": null }), "shape"),
        (json!({ "azp": null, "appid": CALLER }), ""),
        // A claim added by an administrator does not name the client.
        (json!({ "azp": null, "client_id": CALLER }), "shape"),
    ] {
        let refusal = judged(patch.clone())
            .await
            .map_or_else(|error| error.reason(), |_| "");
        assert_eq!(refusal, refused, "{patch}");
    }
    let added = judged(json!({ "scope": "orders:write" }))
        .await
        .expect("a person's");
    assert!(!added.has_scope("orders:write"));
}

#[tokio::test]
async fn a_token_without_an_audience_passes_for_the_clients_the_resource_names() {
    let (bench, Documented { typ, access, .. }) = (bench_of("cognito"), cognito());
    let raw = signed(&bench, &typ, &access);
    for (clients, refused) in [
        (&[][..], "aud"),
        (&["another"], "aud"),
        (&["another", CALLER], ""),
    ] {
        let clients: Vec<String> = clients.iter().map(|one| (*one).to_owned()).collect();
        let token = bench
            .party
            .validate_access_token(&raw, |_| true, &clients, NOW)
            .await;
        assert_eq!(
            token.map_or_else(|error| error.reason(), |_| ""),
            refused,
            "{clients:?}"
        );
    }
    // A client that names a resource gets `aud`, which then decides alone.
    let bound = patched(&access, json!({ "aud": AUDIENCE }));
    assert_eq!(reason(&bench, &signed(&bench, &typ, &bound)).await, "");
    let elsewhere = patched(&access, json!({ "aud": "https://elsewhere.example" }));
    assert_eq!(reason(&bench, &signed(&bench, &typ, &elsewhere)).await, "aud");
    // If the standard requires `aud`, a list of clients does not replace it.
    let standard = bench_of("rfc9068");
    let raw = standard.provider.access_token(json!({ "client_id": CALLER }));
    assert_eq!(reason(&standard, &raw).await, "aud");
}
