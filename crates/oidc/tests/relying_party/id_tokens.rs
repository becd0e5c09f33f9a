//! ID tokens: every check, one deviation at a time.

use oidc::{AcceptedAlgorithms, IdTokenError, SigningAlgorithm};
use scripted_provider::{CLIENT_ID, Endpoint, IdTokenShape};
use serde_json::{Value, json};

use crate::support::{NOW, bench, bench_with};

#[tokio::test]
async fn a_good_login_is_accepted() {
    let token = bench().login().await.expect("accepted");
    assert_eq!(token.sub, "alice");
    assert!(token.sid.is_some());
    assert_eq!(token.auth_time, Some(NOW));
}

fn named(algorithm: SigningAlgorithm) -> AcceptedAlgorithms {
    AcceptedAlgorithms::Named(vec![algorithm])
}

// conformance: A-074 B-086
#[tokio::test]
async fn every_named_algorithm_verifies_and_no_other() {
    for algorithm in [
        &SigningAlgorithm::PUBLIC_KEY[..],
        &SigningAlgorithm::SHARED_SECRET[..],
    ]
    .concat()
    {
        let name = algorithm.name();
        let bench = bench_with(|settings| settings.signing_algs = named(algorithm));
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
        let forged = bench
            .login_with(|script| {
                script.algorithm = name;
                script.id_token = IdTokenShape::BadSignature;
            })
            .await;
        assert!(
            matches!(forged, Err(IdTokenError::Signature)),
            "{name}: {forged:?}"
        );
    }
}

#[tokio::test]
async fn without_a_name_every_listed_algorithm_of_a_public_key_verifies() {
    let bench = bench();
    for algorithm in SigningAlgorithm::PUBLIC_KEY {
        let name = algorithm.name();
        let login = bench.login_with(|script| script.algorithm = name).await;
        assert!(login.is_ok(), "{name}: {login:?}");
    }
    for algorithm in SigningAlgorithm::SHARED_SECRET {
        let name = algorithm.name();
        let login = bench.login_with(|script| script.algorithm = name).await;
        assert!(matches!(login, Err(IdTokenError::Algorithm)), "{name}: {login:?}");
    }
}

#[tokio::test]
async fn without_a_name_an_algorithm_the_metadata_does_not_list_is_refused() {
    for (listed, algorithm, accepted) in [
        (json!(["ES256"]), "RS256", false),
        (json!(["ES256"]), "ES256", true),
        (json!(["HS256"]), "HS256", false),
        (json!(["HS256"]), "RS256", false),
        (json!(null), "RS256", true),
        (json!(null), "ES256", false),
    ] {
        let bench = bench();
        let login = bench.login_with(|script| {
            script.algorithm = algorithm;
            let name = "id_token_signing_alg_values_supported";
            script.metadata.insert(name.to_owned(), listed.clone());
        });
        let login = login.await;
        let refused = matches!(login, Err(IdTokenError::Algorithm));
        assert_eq!(
            (login.is_ok(), refused),
            (accepted, !accepted),
            "{listed} {algorithm}"
        );
    }
}

#[tokio::test]
async fn a_public_key_is_no_secret_even_where_both_kinds_are_named() {
    let both = vec![SigningAlgorithm::Rs256, SigningAlgorithm::Hs256];
    let bench = bench_with(|settings| settings.signing_algs = AcceptedAlgorithms::Named(both));
    let forged = bench
        .login_with(|script| script.id_token = IdTokenShape::Hs256WithPublicKey)
        .await;
    assert!(matches!(forged, Err(IdTokenError::Signature)), "{forged:?}");
    for name in ["RS256", "HS256"] {
        let login = bench.login_with(|script| script.algorithm = name).await;
        assert!(login.is_ok(), "{name}: {login:?}");
    }
}

// conformance: A-074 B-085 B-100
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
        Err(IdTokenError::TooLong)
    ));
    let padded = bench.with_claim("padding", json!("x".repeat(65_000))).await;
    assert!(
        matches!(padded, Err(IdTokenError::TooLong)),
        "signed and too long"
    );
    for (name, value, expected) in [
        ("kid", json!(7), "Malformed"),
        ("typ", json!(7), "Malformed"),
        ("typ", json!("logout+jwt"), r#"Type("logout+jwt")"#),
        ("typ", json!("at+jwt"), r#"Type("at+jwt")"#),
        (
            "typ",
            json!("application/secevent+jwt"),
            r#"Type("application/secevent+jwt")"#,
        ),
        ("typ", json!("id_token"), r#"Type("id_token")"#),
        ("typ", json!("id_token+jwt\n<b>"), r#"Type("id_token+jwtb")"#),
    ] {
        let login = bench.login_with(|script| {
            script.header.insert(name.into(), value.clone());
        });
        let error = login.await.expect_err("refused");
        assert_eq!(format!("{error:?}"), expected, "{name} {value}");
    }
    bench
        .login_with(|script| script.id_token = IdTokenShape::NoKid)
        .await
        .expect("a missing kid is legal");
}

#[tokio::test]
async fn an_id_token_may_say_that_it_is_one() {
    let bench = bench();
    for typ in [
        "JWT",
        "id_token+jwt",
        "ID_Token+JWT",
        "application/id_token+jwt",
        "Application/ID_TOKEN+jwt",
    ] {
        let login = bench.login_with(|script| _ = script.header.insert("typ".into(), json!(typ)));
        assert!(login.await.is_ok(), "{typ}");
    }
    let error = bench
        .login_with(|script| _ = script.header.insert("typ".into(), json!("at+jwt")))
        .await
        .expect_err("refused");
    assert!(
        error.to_string().contains("at+jwt"),
        "the cause names the type: {error}"
    );
    // A token typed as an ID token is no other kind of token.
    let typ = json!({ "typ": "id_token+jwt" });
    let logout = bench
        .provider
        .logout_token_with_header(typ.clone(), json!({ "sub": "alice" }));
    assert!(bench.party.validate_logout_token(&logout, NOW).await.is_err());
    let access = bench
        .provider
        .access_token_with_header(typ, json!({ "aud": "orders" }));
    let access = bench
        .party
        .validate_access_token(&access, |_| true, &[], NOW)
        .await;
    assert!(access.is_err());
}

// conformance: A-071 A-073 B-083
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
    for sub in [
        json!(null),
        json!(""),
        json!(7),
        json!("x".repeat(256)),
        json!("a\r\nb"),
        json!("a\u{7f}"),
    ] {
        assert!(matches!(
            bench.with_claim("sub", sub).await,
            Err(IdTokenError::Subject)
        ));
    }
}

// conformance: A-075 B-089
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

// conformance: A-076 B-091 B-092 B-096
#[tokio::test]
async fn nonce_hash_acr_and_organization_bind_the_login() {
    let bench = bench();
    for nonce in [json!(null), json!("Nonce"), json!("")] {
        assert!(matches!(
            bench.with_claim("nonce", nonce).await,
            Err(IdTokenError::Nonce)
        ));
    }
    bench.provider.script(|script| {
        script.claims.insert("nonce".into(), json!(null));
    });
    assert!(
        matches!(
            bench.login_expecting(|e| e.nonce = "").await,
            Err(IdTokenError::Nonce)
        ),
        "none is expected and none is there"
    );
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
    bench.provider.script(|script| {
        script.claims.insert("auth_time".into(), json!(NOW + 61));
    });
    let early = bench.login_expecting(|e| e.max_age = Some(340)).await;
    assert!(
        matches!(early, Err(IdTokenError::AuthTime)),
        "a sign-in yet to come is no sign-in"
    );
    bench.provider.script(|script| {
        script.claims.insert("auth_time".into(), json!(null));
    });
    let never = bench.login_expecting(|e| e.max_age = Some(340)).await;
    assert!(
        matches!(never, Err(IdTokenError::NoAuthTime)),
        "requested and absent"
    );
    bench
        .login_expecting(|e| e.acr_values = Some("gold silver"))
        .await
        .expect("one of those requested");
    assert!(matches!(
        bench.login_expecting(|e| e.acr_values = Some("gold")).await,
        Err(IdTokenError::Acr(_))
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

// conformance: A-033
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
    let began = std::time::Instant::now();
    for _ in 0..4 {
        assert!(matches!(bench.login().await, Err(IdTokenError::UnknownKey)));
    }
    // One per second.
    let most = 1 + usize::try_from(began.elapsed().as_secs()).expect("few");
    let fetched = bench.provider.calls(Endpoint::Jwks) - before;
    assert!((1..=most).contains(&fetched), "{fetched} of {most}");
    bench.provider.reset();
    bench.provider.rotate_keys();
    bench.login().await.expect("a rotation right after a bad key");
}

// conformance: B-088
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

// conformance: B-092
#[tokio::test]
async fn an_auth_time_in_the_future_is_refused_without_max_age_a_malformed_one_is_none() {
    let bench = bench();
    for (auth_time, expected) in [
        (json!(NOW + 60), Some(NOW + 60)),
        (json!(NOW - 86_400), Some(NOW - 86_400)),
        (json!(null), None),
        (json!("soon"), None),
        (json!(-1), None),
    ] {
        let token = bench.with_claim("auth_time", auth_time).await.expect("a token");
        assert_eq!(token.auth_time, expected);
    }
    for early in [NOW + 61, NOW + 1_000_000, u64::MAX] {
        let refused = bench.with_claim("auth_time", json!(early)).await;
        assert!(matches!(refused, Err(IdTokenError::AuthTime)), "{early}");
    }
}
