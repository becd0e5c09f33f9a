//! Tokens bound to a key (RFC 9449): each request needs its own proof, or the token is rejected.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING as ES256, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Machines, challenges};
use crate::support::Answer;

/// A client with a key.
pub(super) struct Holder {
    pair: EcdsaKeyPair,
    jwk: Value,
}

impl Holder {
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ES256, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ES256, der.as_ref()).unwrap();
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        let jwk = json!({ "crv": "P-256", "kty": "EC", "x": x, "y": y });
        Self { pair, jwk }
    }

    pub(super) fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.jwk.to_string().as_bytes()))
    }

    /// A proof with these claims, and `ath` of the token.
    pub(super) fn proof(&self, token: &str, claims: Value) -> String {
        let mut own = json!({ "ath": URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())) });
        for (name, value) in claims.as_object().unwrap() {
            own[name] = value.clone();
        }
        let header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk });
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&own));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

struct Bound {
    machines: Machines,
    holder: Holder,
    token: String,
}

impl Bound {
    async fn start() -> Self {
        let machines = Machines::start().await;
        let holder = Holder::new();
        let token = machines.token(json!({ "cnf": { "jkt": holder.thumbprint() } }));
        Self {
            machines,
            holder,
            token,
        }
    }

    /// The claims of a valid proof for this request.
    fn said(&self, method: &str, path: &str, jti: &str) -> Value {
        let htu = format!("{}{path}", self.machines.stack.base());
        json!({ "htm": method, "htu": htu, "iat": self.machines.stack.now_secs(), "jti": jti })
    }

    async fn send(&self, method: Method, path: &str, authorization: &str, proofs: &[&str]) -> Answer {
        let mut headers = vec![("authorization", authorization)];
        headers.extend(proofs.iter().map(|proof| ("dpop", *proof)));
        let mut client = self.machines.stack.browser();
        client.send(method, path, &headers, None).await
    }

    async fn get(&self, path: &str, proof: &str) -> Answer {
        let authorization = format!("DPoP {}", self.token);
        self.send(Method::GET, path, &authorization, &[proof]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_passes_with_a_proof_for_this_very_request() {
    let bound = Bound::start().await;
    let proof = bound
        .holder
        .proof(&bound.token, bound.said("GET", "/orders/7", "one"));
    let answer = bound.get("/orders/7?page=2", &proof).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = &bound.machines.upstream.requests()[0];
    assert_eq!(seen.all("x-auth-client"), ["machine"]);
    assert!(seen.all("dpop").is_empty() && seen.all("authorization").is_empty());
    let proof = bound
        .holder
        .proof(&bound.token, bound.said("GET", "/bound/a", "two"));
    assert_eq!(bound.get("/bound/a", &proof).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_that_was_used_is_refused_while_it_could_be_shown() {
    let bound = Bound::start().await;
    let mut said = bound.said("GET", "/orders/7", "one");
    said["iat"] = json!(bound.machines.stack.now_secs() + 60);
    let proof = bound.holder.proof(&bound.token, said);
    assert_eq!(bound.get("/orders/7", &proof).await.status, 200);
    for wait in [0, 60, 60] {
        bound.machines.stack.advance(wait);
        let answer = bound.get("/orders/7", &proof).await;
        assert_eq!(answer.status, 401, "{wait}");
        assert!(
            challenges(&answer)[1].starts_with(
                "DPoP error=\"invalid_dpop_proof\", error_description=\"The DPoP proof was used"
            ),
            "{answer:?}"
        );
    }
    bound.machines.stack.advance(1);
    let answer = bound.get("/orders/7", &proof).await;
    assert!(
        challenges(&answer)[1].contains("absent, or not for this request"),
        "{answer:?}"
    );
    assert_eq!(bound.machines.upstream.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_for_something_else_is_refused() {
    let bound = Bound::start().await;
    let now = bound.machines.stack.now_secs();
    let right = bound.said("GET", "/orders/7", "one");
    for patch in [
        json!({ "htm": "POST" }),
        json!({ "htu": format!("{}/orders/8", bound.machines.stack.base()) }),
        json!({ "htu": "https://evil.example/orders/7" }),
        json!({ "iat": now - 61 }),
        json!({ "iat": now + 61 }),
        json!({ "jti": "" }),
        json!({ "ath": "of another token" }),
    ] {
        let mut said = right.clone();
        said.as_object_mut()
            .unwrap()
            .extend(patch.as_object().cloned().unwrap());
        let answer = bound
            .get("/orders/7", &bound.holder.proof(&bound.token, said))
            .await;
        assert_eq!(
            (answer.status, answer.json()["error"].as_str()),
            (401, Some("invalid_dpop_proof")),
            "{patch}"
        );
    }
    let thief = Holder::new();
    let stolen = thief.proof(&bound.token, right.clone());
    assert_eq!(bound.get("/orders/7", &stolen).await.status, 401);
    let proof = bound.holder.proof(&bound.token, right);
    let authorization = format!("DPoP {}", bound.token);
    for proofs in [&[][..], &[proof.as_str(), proof.as_str()]] {
        let answer = bound.send(Method::GET, "/orders/7", &authorization, proofs).await;
        assert_eq!(answer.status, 401, "{proofs:?}");
    }
    assert_eq!(bound.machines.upstream.requests().len(), 0);
    assert_eq!(
        bound.get("/orders/7", &proof).await.status,
        200,
        "none of these used it up"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_presented_as_it_is_bound_or_not_at_all() {
    let bound = Bound::start().await;
    let free = bound.machines.token(json!({}));
    let proof = |token: &str, path: &str, jti: &str| bound.holder.proof(token, bound.said("GET", path, jti));
    let (token, bare) = (&bound.token, Vec::<String>::new());
    for (path, authorization, proofs) in [
        ("/orders/7", format!("Bearer {token}"), bare.clone()),
        (
            "/orders/7",
            format!("Bearer {token}"),
            vec![proof(token, "/orders/7", "a")],
        ),
        ("/orders/7", format!("DPoP {free}"), bare.clone()),
        (
            "/orders/7",
            format!("DPoP {free}"),
            vec![proof(&free, "/orders/7", "b")],
        ),
        (
            "/orders/7",
            format!("Bearer {free}"),
            vec![proof(&free, "/orders/7", "c")],
        ),
        ("/bound/a", format!("Bearer {free}"), bare.clone()),
        ("/bound/a", format!("Bearer {token}"), bare),
    ] {
        let proofs: Vec<&str> = proofs.iter().map(String::as_str).collect();
        let answer = bound.send(Method::GET, path, &authorization, &proofs).await;
        assert_eq!(
            (answer.status, answer.json()["error"].as_str()),
            (401, Some("invalid_token")),
            "{path} {authorization}"
        );
        let only_bound = path.starts_with("/bound");
        let schemes: Vec<String> = challenges(&answer);
        assert_eq!(
            schemes.iter().any(|line| line.starts_with("Bearer ")),
            !only_bound,
            "{answer:?}"
        );
        assert!(
            schemes
                .iter()
                .any(|line| line.starts_with("DPoP ") && line.contains("algs=\"")),
            "{answer:?}"
        );
    }
    assert_eq!(bound.machines.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_refused_for_something_else_uses_no_proof_up() {
    let bound = Bound::start().await;
    let token = bound
        .machines
        .token(json!({ "cnf": { "jkt": bound.holder.thumbprint() }, "scope": "other" }));
    let proof = bound.holder.proof(&token, bound.said("GET", "/orders/7", "one"));
    for _ in 0..2 {
        let authorization = format!("DPoP {token}");
        let answer = bound
            .send(Method::GET, "/orders/7", &authorization, &[&proof])
            .await;
        assert_eq!(answer.status, 403, "{answer:?}");
    }
}
