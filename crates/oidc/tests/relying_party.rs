//! The relying party against a provider that misbehaves one way at a time.
#![expect(
    clippy::expect_used,
    clippy::type_complexity,
    reason = "a panic is how a test fails; tables of cases"
)]

use oidc::{
    AuthorizationRequest, ClientAuth, ClientSecret, Expected, IdToken, IdTokenError, LogoutTokenError,
    Outage, ProviderError, ProviderSettings, RefreshError, RelyingParty, Revoked, SigningAlgorithm,
    TokenError, TokenHint, TokenSet, UserinfoError,
};
use scripted_provider::{Answer, CLIENT_ID, CLIENT_SECRET, Endpoint, IdTokenShape, Script, ScriptedProvider};
use serde_json::{Value, json};
use url::Url;

const NOW: u64 = 1_800_000_000;
const VERIFIER: &str = "verifier-verifier-verifier-verifier-verifier-1";
const BACK: &str = "http://127.0.0.1:3000/api/auth/callback";

struct Bench {
    provider: ScriptedProvider,
    party: RelyingParty,
}

fn bench_with(change: impl FnOnce(&mut ProviderSettings)) -> Bench {
    let provider = ScriptedProvider::start();
    provider.script(|script| script.now = Some(NOW));
    let mut settings = ProviderSettings::new(provider.issuer(), CLIENT_ID);
    settings.client_auth = ClientAuth::SecretBasic(ClientSecret::new(CLIENT_SECRET));
    settings.http_timeout = std::time::Duration::from_millis(1_500);
    change(&mut settings);
    let party = RelyingParty::new(settings).expect("usable settings");
    Bench { provider, party }
}

fn bench() -> Bench {
    bench_with(|_| {})
}

fn request() -> AuthorizationRequest<'static> {
    AuthorizationRequest {
        redirect_uri: BACK,
        state: "state",
        nonce: "nonce",
        verifier: VERIFIER,
        now: NOW,
        ..AuthorizationRequest::default()
    }
}

fn param(url: &Url, name: &str) -> Option<String> {
    url.query_pairs()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

impl Bench {
    async fn code(&self) -> String {
        let url = self
            .party
            .authorization_url(&request())
            .await
            .expect("an address");
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("client");
        let answer = client.get(url).send().await.expect("an answer");
        let location = answer.headers()["location"].to_str().expect("text");
        param(&Url::parse(location).expect("a URL"), "code").expect("a code")
    }

    async fn exchange(&self) -> Result<TokenSet, TokenError> {
        let code = self.code().await;
        self.party.exchange_code(&code, VERIFIER, BACK, NOW).await
    }

    async fn login_expecting(&self, change: impl FnOnce(&mut Expected<'_>)) -> Result<IdToken, IdTokenError> {
        let tokens = self.exchange().await.expect("tokens");
        let mut expected = Expected {
            nonce: "nonce",
            access_token: Some(&tokens.access_token),
            ..Expected::default()
        };
        change(&mut expected);
        self.party
            .validate_id_token(&tokens.id_token, &expected, NOW)
            .await
    }

    async fn login(&self) -> Result<IdToken, IdTokenError> {
        self.login_expecting(|_| {}).await
    }

    async fn login_with(&self, change: impl FnOnce(&mut Script)) -> Result<IdToken, IdTokenError> {
        self.provider.reset();
        self.provider.script(change);
        self.login().await
    }

    async fn with_claim(&self, name: &str, value: Value) -> Result<IdToken, IdTokenError> {
        self.login_with(|script| {
            script.claims.insert(name.to_owned(), value);
        })
        .await
    }
}

#[tokio::test]
async fn a_good_login_is_accepted() {
    let token = bench().login().await.expect("accepted");
    assert_eq!(token.sub, "alice");
    assert!(token.sid.is_some());
    assert_eq!(token.auth_time, Some(NOW));
}

#[tokio::test]
async fn every_configured_algorithm_verifies_and_no_other() {
    for (algorithm, name) in [
        (SigningAlgorithm::Rs256, "RS256"),
        (SigningAlgorithm::Ps256, "PS256"),
        (SigningAlgorithm::Es256, "ES256"),
        (SigningAlgorithm::EdDsa, "EdDSA"),
        (SigningAlgorithm::Hs256, "HS256"),
    ] {
        let bench = bench_with(|settings| settings.id_token_alg = algorithm);
        bench
            .login_with(|script| script.algorithm = name)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let other = if name == "RS256" { "ES256" } else { "RS256" };
        let refused = bench.login_with(|script| script.algorithm = other).await;
        assert!(
            matches!(refused, Err(IdTokenError::Algorithm)),
            "{name}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn forged_shapes_are_refused() {
    let bench = bench();
    let cases: [(IdTokenShape, fn(&IdTokenError) -> bool); 6] = [
        (IdTokenShape::BadSignature, |e| {
            matches!(e, IdTokenError::Signature)
        }),
        (IdTokenShape::AlgNone, |e| matches!(e, IdTokenError::Algorithm)),
        (IdTokenShape::Hs256WithPublicKey, |e| {
            matches!(e, IdTokenError::Algorithm)
        }),
        (IdTokenShape::UnknownKid, |e| {
            matches!(e, IdTokenError::UnknownKey)
        }),
        (IdTokenShape::EmbeddedJwk, |e| {
            matches!(e, IdTokenError::Signature)
        }),
        (IdTokenShape::Critical, |e| matches!(e, IdTokenError::Header)),
    ];
    for (shape, expected) in cases {
        let error = bench
            .login_with(|script| script.id_token = shape.clone())
            .await
            .expect_err("refused");
        assert!(expected(&error), "{shape:?}: {error:?}");
    }
    let huge = IdTokenShape::Raw(format!("{}.e30.x", "a".repeat(70_000)));
    assert!(matches!(
        bench.login_with(|script| script.id_token = huge).await,
        Err(IdTokenError::Malformed)
    ));
    bench
        .login_with(|script| script.id_token = IdTokenShape::NoKid)
        .await
        .expect("a missing kid is legal");
}

#[tokio::test]
async fn who_and_for_whom_are_checked() {
    let bench = bench();
    for iss in [
        json!(null),
        json!("https://evil.example"),
        json!(format!("{}/", bench.provider.issuer())),
    ] {
        assert!(matches!(
            bench.with_claim("iss", iss).await,
            Err(IdTokenError::Issuer)
        ));
    }
    for aud in [
        json!(null),
        json!("other"),
        json!([CLIENT_ID, "other"]),
        json!([]),
        json!(7),
    ] {
        assert!(matches!(
            bench.with_claim("aud", aud).await,
            Err(IdTokenError::Audience)
        ));
    }
    bench
        .with_claim("aud", json!([CLIENT_ID]))
        .await
        .expect("one audience in an array");
    assert!(matches!(
        bench.with_claim("azp", json!("other")).await,
        Err(IdTokenError::AuthorizedParty)
    ));
    bench
        .with_claim("azp", json!(CLIENT_ID))
        .await
        .expect("azp is us");
    for sub in [json!(null), json!(""), json!(7), json!("x".repeat(256))] {
        assert!(matches!(
            bench.with_claim("sub", sub).await,
            Err(IdTokenError::Subject)
        ));
    }
}

#[tokio::test]
async fn times_hold_up_to_the_tolerance_and_not_beyond() {
    let bench = bench();
    for late in [59, 60] {
        bench
            .with_claim("exp", json!(NOW - late))
            .await
            .expect("within tolerance");
        bench
            .with_claim("nbf", json!(NOW + late))
            .await
            .expect("within tolerance");
        bench
            .with_claim("iat", json!(NOW + late))
            .await
            .expect("within tolerance");
    }
    for exp in [json!(NOW - 61), json!(null), json!("soon")] {
        assert!(matches!(
            bench.with_claim("exp", exp).await,
            Err(IdTokenError::Expired)
        ));
    }
    assert!(matches!(
        bench.with_claim("nbf", json!(NOW + 61)).await,
        Err(IdTokenError::NotYetValid)
    ));
    for iat in [json!(NOW + 61), json!(NOW - 86_400), json!(null), json!(-5)] {
        assert!(matches!(
            bench.with_claim("iat", iat).await,
            Err(IdTokenError::IssuedAt)
        ));
    }
    bench
        .with_claim("iat", json!(NOW - 86_399))
        .await
        .expect("not yet a day old");
}

#[tokio::test]
async fn nonce_hash_acr_and_organization_bind_the_login() {
    let bench = bench();
    for nonce in [json!(null), json!("Nonce"), json!("")] {
        assert!(matches!(
            bench.with_claim("nonce", nonce).await,
            Err(IdTokenError::Nonce)
        ));
    }
    assert!(matches!(
        bench.with_claim("at_hash", json!("AAAA")).await,
        Err(IdTokenError::AccessTokenHash)
    ));
    bench
        .with_claim("at_hash", json!(null))
        .await
        .expect("at_hash is optional");

    bench.provider.reset();
    bench.provider.script(|script| {
        script.claims.insert("auth_time".into(), json!(NOW - 400));
        script.claims.insert("org_id".into(), json!("org_1"));
        script.claims.insert("org_name".into(), json!("Acme"));
        script.claims.insert("acr".into(), json!("silver"));
    });
    bench
        .login_expecting(|e| e.max_age = Some(340))
        .await
        .expect("max_age plus tolerance");
    let stale = bench.login_expecting(|e| e.max_age = Some(339)).await;
    assert!(matches!(stale, Err(IdTokenError::AuthTime)));
    bench
        .login_expecting(|e| e.acr_values = Some("gold silver"))
        .await
        .expect("one of those asked for");
    assert!(matches!(
        bench.login_expecting(|e| e.acr_values = Some("gold")).await,
        Err(IdTokenError::Acr)
    ));
    bench
        .login_expecting(|e| e.organization = Some("org_1"))
        .await
        .expect("the id");
    bench
        .login_expecting(|e| e.organization = Some("aCME"))
        .await
        .expect("a name in any case");
    for other in ["org_2", "ORG_1", "org_1x", "other"] {
        let refused = bench.login_expecting(|e| e.organization = Some(other)).await;
        assert!(matches!(refused, Err(IdTokenError::Organization)), "{other}");
    }
}

#[tokio::test]
async fn a_rotated_key_is_found_by_the_very_login_and_bad_keys_make_no_storm() {
    let bench = bench();
    bench.login().await.expect("the first key");
    for _ in 0..4 {
        bench.provider.rotate_keys();
        bench.login().await.expect("the next key");
    }
    let before = bench.provider.calls(Endpoint::Jwks);
    bench
        .provider
        .script(|script| script.id_token = IdTokenShape::UnknownKid);
    for _ in 0..20 {
        assert!(matches!(bench.login().await, Err(IdTokenError::UnknownKey)));
    }
    assert_eq!(bench.provider.calls(Endpoint::Jwks), before + 1);
    bench.provider.reset();
    bench.provider.rotate_keys();
    bench.login().await.expect("a rotation right after a bad key");
}

#[tokio::test]
async fn unfit_keys_are_never_used() {
    let bench = bench();
    let all = reqwest::get(bench.provider.url(Endpoint::Jwks))
        .await
        .expect("keys")
        .bytes()
        .await
        .expect("keys");
    let all: Value = serde_json::from_slice(&all).expect("JSON");
    for (name, value) in [
        ("use", json!("enc")),
        ("alg", json!("RS512")),
        ("key_ops", json!(["encrypt"])),
    ] {
        let bench = self::bench();
        let mut key = all["keys"][0].clone();
        key[name] = value;
        bench
            .provider
            .script(|script| script.jwks = Some(json!({ "keys": [key] })));
        assert!(
            matches!(bench.login().await, Err(IdTokenError::UnknownKey)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn odd_but_legal_token_answers_are_taken() {
    let bench = bench();
    for (member, value, lifetime) in [
        ("expires_in", json!(null), 300),
        ("expires_in", json!("120"), 120),
        ("expires_in", json!(-5), 0),
        ("expires_in", json!(1e300), 365 * 86_400),
        ("token_type", json!("bEARER"), 3600),
        ("unknown", json!({ "x": 1 }), 3600),
    ] {
        bench.provider.reset();
        bench.provider.script(|script| {
            script.token.insert(member.into(), value.clone());
        });
        let tokens = bench
            .exchange()
            .await
            .unwrap_or_else(|error| panic!("{member} {value}: {error}"));
        assert_eq!(tokens.expires_at, NOW + lifetime, "{member} {value}");
    }
    bench.provider.reset();
    bench.provider.script(|script| {
        script.token.insert("scope".into(), json!(null));
        script.token.insert("refresh_token".into(), json!(null));
    });
    let tokens = bench.exchange().await.expect("tokens");
    assert_eq!(
        (tokens.scope.as_str(), tokens.refresh_token),
        ("openid profile email", None)
    );
}

#[tokio::test]
async fn useless_token_answers_are_refused() {
    let bench = bench();
    let exchange = async |name: &str, value: Value| {
        bench.provider.reset();
        bench.provider.script(|script| {
            script.token.insert(name.to_owned(), value);
        });
        bench.exchange().await
    };
    assert!(matches!(
        exchange("access_token", json!(null)).await,
        Err(TokenError::MissingAccessToken)
    ));
    assert!(matches!(
        exchange("id_token", json!(null)).await,
        Err(TokenError::MissingIdToken)
    ));
    assert!(matches!(
        exchange("token_type", json!("mac")).await,
        Err(TokenError::TokenType)
    ));
    bench.provider.reset();
    let code = bench.code().await;
    let wrong = bench
        .party
        .exchange_code(&code, "another-verifier", BACK, NOW)
        .await;
    assert!(matches!(wrong, Err(TokenError::Refused(refusal)) if refusal.is_final()));
}

#[tokio::test]
async fn refreshes_tell_dead_grants_from_passing_trouble() {
    let bench = bench();
    let first = bench
        .exchange()
        .await
        .expect("tokens")
        .refresh_token
        .expect("a refresh token");
    let second = bench.party.refresh(&first, NOW).await.expect("refreshed");
    let rotated = second.refresh_token.expect("rotated");
    assert_ne!(rotated, first);
    let id_token = second.id_token.expect("an ID token");
    let issuer = bench.provider.issuer();
    bench
        .party
        .validate_refreshed_id_token(&id_token, issuer, "alice", NOW)
        .await
        .expect("the same person");
    let other = bench
        .party
        .validate_refreshed_id_token(&id_token, issuer, "bob", NOW)
        .await;
    assert!(matches!(other, Err(IdTokenError::Subject)));

    for answer in [
        Answer::status(500),
        Answer::status(429),
        Answer::text(400, "text/html", "no"),
        Answer::Hang,
    ] {
        bench.provider.script(|script| {
            script.answers.insert(Endpoint::Token, answer.clone());
        });
        let error = bench.party.refresh(&rotated, NOW).await.expect_err("trouble");
        assert!(
            matches!(error, RefreshError::Transient(_)),
            "{answer:?}: {error:?}"
        );
    }
    bench.provider.reset();
    for (error, is_final) in [("invalid_grant", true), ("invalid_client", false)] {
        bench
            .provider
            .script(|script| script.refresh_error = Some(error.into()));
        let refused = bench.party.refresh(&rotated, NOW).await;
        assert!(matches!(refused, Err(RefreshError::Refused(refusal)) if refusal.is_final() == is_final));
    }
    bench.provider.reset();
    bench.provider.script(|script| {
        script.refresh.insert("access_token".into(), json!(null));
    });
    assert!(matches!(
        bench.party.refresh(&rotated, NOW).await,
        Err(RefreshError::Unusable(_))
    ));
}

#[tokio::test]
async fn userinfo_is_about_the_same_person_and_says_nothing_protected() {
    let bench = bench();
    for signed in [false, true] {
        bench.provider.reset();
        bench.provider.script(|script| script.userinfo_jwt = signed);
        let token = bench.exchange().await.expect("tokens").access_token;
        bench.provider.script(|script| {
            script.userinfo.insert("acr".into(), json!("gold"));
        });
        let claims = bench.party.userinfo(&token, "alice").await.expect("userinfo");
        assert_eq!(claims.get("email"), Some(&json!("alice@example.com")));
        assert_eq!(claims.get("acr"), None);
        assert!(matches!(
            bench.party.userinfo(&token, "bob").await,
            Err(UserinfoError::Subject)
        ));
        assert!(matches!(
            bench.party.userinfo("forged", "alice").await,
            Err(UserinfoError::Unauthorized)
        ));
        assert!(bench.provider.last_request(Endpoint::Userinfo).query.is_empty());
    }
}

#[tokio::test]
async fn discovery_is_byte_exact_bounded_and_secure() {
    for (name, value) in [
        ("issuer", json!("https://evil.example")),
        ("issuer", json!(null)),
        ("token_endpoint", json!("http://op.example/token")),
        ("jwks_uri", json!("ftp://127.0.0.1/keys")),
        ("authorization_endpoint", json!(null)),
    ] {
        let bench = bench();
        bench.provider.script(|script| {
            script.metadata.insert(name.into(), value.clone());
        });
        assert!(
            bench.party.authorization_url(&request()).await.is_err(),
            "{name} {value}"
        );
        assert_eq!(bench.provider.calls(Endpoint::Authorize), 0);
    }
    for answer in [
        Answer::text(200, "text/html", "{}"),
        Answer::json(200, &json!([])),
        Answer::json(200, &json!({ "x": "y".repeat(2 << 20) })),
        Answer::redirect("http://169.254.169.254/latest"),
    ] {
        let bench = bench();
        bench.provider.script(|script| {
            script.answers.insert(Endpoint::Discovery, answer);
        });
        let error = bench.party.metadata().await.expect_err("no metadata");
        assert_eq!(error.outage(), Outage::BadAnswer);
    }
    let bench = bench();
    bench.provider.script(|script| {
        script
            .metadata
            .insert("code_challenge_methods_supported".into(), json!(["plain"]));
    });
    assert!(matches!(
        bench.party.authorization_url(&request()).await,
        Err(ProviderError::NoS256)
    ));
}

#[tokio::test]
async fn an_outage_is_not_cached_and_known_metadata_outlives_it() {
    let bench = bench();
    bench.provider.stop();
    assert_eq!(
        bench.party.metadata().await.expect_err("down").outage(),
        Outage::Unreachable
    );
    bench.provider.start_again();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
    while bench.party.metadata().await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "no recovery");
        tokio::task::yield_now().await;
    }
    bench.provider.stop();
    bench
        .party
        .authorization_url(&request())
        .await
        .expect("from the cache");
}

#[tokio::test]
async fn a_thousand_waiters_make_one_discovery() {
    let bench = bench();
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let party = bench.party.clone();
            tokio::spawn(async move { party.metadata().await.is_ok() })
        })
        .collect();
    for task in tasks {
        assert!(task.await.expect("no panic"));
    }
    assert_eq!(bench.provider.calls(Endpoint::Discovery), 1);
}

#[tokio::test]
async fn no_parameter_of_a_login_overrides_the_protocol() {
    let bench = bench_with(|settings| {
        settings.organization = Some("org_1".into());
        settings.authorization_params = vec![("prompt".into(), "consent".into())];
    });
    let pairs = [
        ("state", "x"),
        ("response_type", "token"),
        ("organization", "org_2"),
        ("prompt", "login"),
        ("a", "b"),
    ];
    let extra: Vec<_> = pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let url = bench
        .party
        .authorization_url(&AuthorizationRequest {
            extra: &extra,
            ..request()
        })
        .await
        .expect("URL");
    for (name, value) in [
        ("state", "state"),
        ("response_type", "code"),
        ("organization", "org_1"),
        ("prompt", "login"),
        ("a", "b"),
        ("code_challenge_method", "S256"),
        ("redirect_uri", BACK),
    ] {
        assert_eq!(param(&url, name).as_deref(), Some(value));
        assert_eq!(
            url.query_pairs().filter(|(key, _)| key == name).count(),
            1,
            "{name}"
        );
    }
}

#[tokio::test]
async fn pushed_requests_leave_only_two_parameters_in_the_browser() {
    let bench = bench();
    bench.provider.script(|script| script.offer_par = true);
    let url = bench.party.authorization_url(&request()).await.expect("URL");
    let names: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
    assert_eq!(names, ["client_id", "request_uri"]);
    bench.provider.script(|script| {
        script.answers.insert(
            Endpoint::Par,
            Answer::json(200, &json!({ "request_uri": "u", "expires_in": 60 })),
        );
    });
    assert!(
        bench.party.authorization_url(&request()).await.is_err(),
        "200 is not 201"
    );
}

#[tokio::test]
async fn logout_tokens_pass_every_check_or_none() {
    let bench = bench();
    let validate = async |claims: Value| {
        bench
            .party
            .validate_logout_token(&bench.provider.logout_token(claims), NOW)
            .await
    };
    let token = validate(json!({ "sid": "s", "sub": "alice", "extra": 1 }))
        .await
        .expect("good");
    assert_eq!(
        (token.sid.as_deref(), token.sub.as_deref()),
        (Some("s"), Some("alice"))
    );
    validate(json!({ "sub": "alice", "iat": NOW - 300 }))
        .await
        .expect("five minutes old");
    for bad in [
        json!({}),
        json!({ "sub": "a", "nonce": "n" }),
        json!({ "sub": "a", "events": null }),
        json!({ "sub": "a", "events": { "other": {} } }),
        json!({ "sub": "a", "jti": null }),
        json!({ "sub": "a", "exp": null }),
        json!({ "sub": "a", "exp": NOW - 61 }),
        json!({ "sub": "a", "iat": null }),
        json!({ "sub": "a", "iat": NOW - 301 }),
        json!({ "sub": "a", "iat": NOW + 61 }),
        json!({ "sub": "a", "iss": "https://evil.example" }),
        json!({ "sub": "a", "aud": "other" }),
    ] {
        assert!(validate(bad.clone()).await.is_err(), "{bad}");
    }
    for (typ, accepted) in [
        (json!(null), true),
        (json!("logout+jwt"), true),
        (json!("at+jwt"), false),
    ] {
        let raw = bench
            .provider
            .logout_token_with_header(json!({ "typ": typ }), json!({ "sub": "a" }));
        assert_eq!(
            bench.party.validate_logout_token(&raw, NOW).await.is_ok(),
            accepted,
            "{typ}"
        );
    }
    let id_token = bench.exchange().await.expect("tokens").id_token;
    assert!(matches!(
        bench.party.validate_logout_token(&id_token, NOW).await,
        Err(LogoutTokenError::Type)
    ));
}

#[tokio::test]
async fn a_revoked_refresh_token_is_gone() {
    let bench = bench();
    let token = bench
        .exchange()
        .await
        .expect("tokens")
        .refresh_token
        .expect("a refresh token");
    let revoked = bench
        .party
        .revoke(&token, TokenHint::RefreshToken, NOW)
        .await
        .expect("revoked");
    assert_eq!(revoked, Revoked::Done);
    assert!(!bench.provider.knows_refresh_token(&token));
}
