//! Discovery, outages and authorization requests.

use oidc::{
    AcceptedAlgorithms, AuthorizationRequest, BuildError, ClientAuth, ClientSecret, GrantError, Outage,
    ProviderError, ProviderSettings, RelyingParty, SigningAlgorithm,
};
use scripted_provider::{Answer, Endpoint};
use serde_json::json;

use crate::support::{BACK, DEADLINE, NOW, bench, bench_with, param, request};

// conformance: A-031 B-021 B-067 B-081
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
        Answer::status(500),
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
            .insert("padding".into(), json!("x".repeat(1 << 20)));
    });
    let error = bench.party.metadata().await.expect_err("no metadata");
    assert!(
        error.to_string().contains("more than 1048576 bytes"),
        "right in everything but its length: {error}"
    );
    let bench = self::bench();
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

// conformance: B-097
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
async fn a_provider_that_never_answers_is_given_up() {
    for endpoint in [Endpoint::Discovery, Endpoint::Token] {
        let bench = bench();
        bench.provider.script(|script| {
            script.answers.insert(endpoint, Answer::Hang);
        });
        let refresh = tokio::time::timeout(DEADLINE, bench.party.refresh("a token", NOW));
        let outcome = refresh.await.expect("given up in time");
        assert!(
            matches!(&outcome, Err(GrantError::Transient(error)) if error.outage() == Outage::Timeout),
            "{endpoint:?}: {outcome:?}"
        );
    }
}

#[test]
fn settings_that_cannot_be_kept_to_are_refused_before_any_word_is_said() {
    let built = |issuer: &str, algorithm, auth: &ClientAuth| {
        let mut settings = ProviderSettings::new(issuer, "client");
        settings.signing_algs = AcceptedAlgorithms::Named(vec![algorithm]);
        settings.credentials.auth = auth.clone();
        RelyingParty::new(settings).map(|_| ())
    };
    let public = ClientAuth::None;
    for issuer in [
        "http://op.example",
        "http://10.0.0.1",
        "http://localhost.op.example",
    ] {
        assert!(
            matches!(
                built(issuer, SigningAlgorithm::Rs256, &public),
                Err(BuildError::InsecureIssuer)
            ),
            "{issuer}"
        );
    }
    for issuer in [
        "op.example",
        "ftp://op.example",
        "https://op.example?a=b",
        "https://op.example#a",
    ] {
        assert!(
            matches!(
                built(issuer, SigningAlgorithm::Rs256, &public),
                Err(BuildError::Issuer)
            ),
            "{issuer}"
        );
    }
    let secret = |length| ClientAuth::SecretPost(ClientSecret::new("s".repeat(length)));
    for (auth, strong) in [(&public, false), (&secret(31), false), (&secret(32), true)] {
        let built = built("https://op.example", SigningAlgorithm::Hs256, auth);
        assert_eq!(built.is_ok(), strong, "{built:?}");
    }
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

// conformance: B-001
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
        ("response_mode", "fragment"),
        ("request", "e30.e30."),
        ("request_uri", "https://evil.example/request"),
        ("resource", "https://evil.example"),
        ("dpop_jkt", "x"),
        ("client_secret", "x"),
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
    let verifier = request().verifier;
    assert!(param(&url, "code_challenge").is_some_and(|challenge| challenge != verifier));
    for name in [
        "response_mode",
        "request",
        "request_uri",
        "resource",
        "dpop_jkt",
        "client_secret",
    ] {
        assert_eq!(param(&url, name), None, "{name}");
    }
}

// conformance: B-070 B-073
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
    let url = bench.party.authorization_url(&request()).await.expect("taken");
    assert_eq!(
        param(&url, "request_uri").as_deref(),
        Some("u"),
        "200 is as good as 201"
    );
    let bench = self::bench();
    bench.provider.script(|script| {
        script
            .metadata
            .insert("require_pushed_authorization_requests".into(), json!(true));
    });
    assert!(
        matches!(
            bench.party.authorization_url(&request()).await,
            Err(ProviderError::PushedRequests)
        ),
        "required, and no place for them"
    );
}

#[tokio::test]
async fn a_sign_in_goes_on_without_a_push_whose_answer_is_unusable_unless_pushing_is_required() {
    let uri = json!({ "request_uri": "u", "expires_in": 60 });
    for (answer, goes_on) in [
        (Answer::json(200, &json!({ "request_uri": "u" })), true),
        (Answer::json(201, &json!({ "expires_in": 60 })), true),
        (Answer::text(201, "application/json", "{"), true),
        (Answer::json(202, &uri), true),
        (Answer::status(404), true),
        (Answer::status(500), true),
        (Answer::redirect("https://elsewhere.example/"), true),
        // The provider would refuse a browser's request with this error too.
        (Answer::json(400, &json!({ "error": "invalid_request" })), false),
        (Answer::json(200, &json!({ "error": "invalid_scope" })), false),
        (Answer::json(401, &json!({ "error": "invalid_client" })), false),
        (Answer::status(401), false),
    ] {
        let scripted = |bench: &crate::support::Bench| {
            bench.provider.script(|script| {
                script.offer_par = true;
                script.answers.insert(Endpoint::Par, answer.clone());
            });
        };
        let bench = self::bench();
        scripted(&bench);
        let url = bench.party.authorization_url(&request()).await.ok();
        assert_eq!(url.is_some(), goes_on, "{answer:?}");
        let plain =
            url.is_none_or(|url| param(&url, "state").is_some() && param(&url, "request_uri").is_none());
        assert!(plain, "{answer:?}");
        let required = bench_with(|settings| settings.par = oidc::Par::Require);
        scripted(&required);
        assert!(
            required.party.authorization_url(&request()).await.is_err(),
            "{answer:?}"
        );
        let insisted = self::bench();
        scripted(&insisted);
        insisted.provider.script(|script| {
            let name = "require_pushed_authorization_requests".to_owned();
            script.metadata.insert(name, json!(true));
        });
        assert!(
            insisted.party.authorization_url(&request()).await.is_err(),
            "{answer:?}"
        );
    }
}
