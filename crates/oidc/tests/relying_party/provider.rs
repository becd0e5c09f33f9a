//! Discovery, outages and authorization requests.

use oidc::{AuthorizationRequest, Outage, ProviderError};
use scripted_provider::{Answer, Endpoint};
use serde_json::json;

use crate::support::{BACK, bench, bench_with, param, request};

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
    assert!(
        bench.party.authorization_url(&request()).await.is_err(),
        "200 is not 201"
    );
}
