//! Checks of a discovery document, as tables.

use chassis::findings::CheckResult::{Fits, Information, Problem, Unknown, Warning};
use oidc::{AcceptedAlgorithms, ClientSecret, Credentials, OAuthError, Par, ResponseMode, SigningAlgorithm};
use scripted_provider::{Answer, CLIENT_ID, CLIENT_SECRET, Endpoint, ScriptedProvider};
use serde_json::json;

use super::*;

const ISSUER: &str = "https://op.example";
const ALWAYS: Option<UserinfoReading> = Some(UserinfoReading::Always);

/// A document of a provider that offers what the defaults need.
fn document(changes: &Value) -> Map<String, Value> {
    let mut document = json!({
        "issuer": ISSUER,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query", "form_post"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "id_token_signing_alg_values_supported": ["RS256", "ES256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        "scopes_supported": ["openid", "profile", "email"],
        "userinfo_endpoint": "https://op.example/me",
        "revocation_endpoint": "https://op.example/revoke",
        "backchannel_logout_supported": true,
    });
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    let mut document = document.as_object().unwrap().clone();
    document.retain(|_, value| !value.is_null());
    document
}

fn settings() -> ProviderSettings {
    ProviderSettings {
        credentials: Credentials {
            auth: ClientAuth::SecretBasic(ClientSecret::new("a secret".to_owned())),
            ..Credentials::default()
        },
        ..ProviderSettings::new(ISSUER, "client")
    }
}

fn run_check(settings: &ProviderSettings, changes: &Value, id: &str) -> Finding {
    let document = document(changes);
    let accepted = tokens::accepted(DiscoveryDocument(&document), settings);
    let mut checks = vec![
        ("issuer", tokens::issuer(DiscoveryDocument(&document), settings)),
        (
            "id_token_algorithm",
            tokens::algorithm(DiscoveryDocument(&document), &accepted),
        ),
    ];
    checks.extend(judge(&document, settings, ALWAYS));
    let found = checks.into_iter().find(|(check, _)| *check == id);
    found.unwrap_or_else(|| panic!("no check {id}")).1
}

/// The setting that the advice names.
fn setting_of(finding: &Finding) -> Option<&str> {
    finding
        .advice
        .as_ref()?
        .split_once(": ")
        .map(|(setting, _)| setting)
}

#[test]
fn a_provider_that_offers_what_is_configured_fits() {
    let document = document(&json!({}));
    let findings = judge(&document, &settings(), ALWAYS);
    assert!(
        findings.iter().all(|(_, finding)| finding.verdict == Fits),
        "{findings:#?}"
    );
}

#[test]
fn an_issuer_is_compared_byte_for_byte_and_the_right_one_is_told() {
    for (configured, said, setting_to) in [
        (
            "https://op.example/",
            "https://op.example",
            "write https://op.example",
        ),
        (
            "https://op.example",
            "https://op.example/",
            "write https://op.example/",
        ),
        (
            "https://OP.example",
            "https://op.example",
            "write https://op.example",
        ),
        (
            "https://op.example",
            "http://op.example",
            "write http://op.example",
        ),
        (
            "https://op.example",
            "https://other.example",
            "if that is your provider, write https://other.example",
        ),
        (
            "https://op.example/common",
            "https://op.example/{tenantid}",
            "your tenant's id",
        ),
    ] {
        let settings = ProviderSettings {
            issuer: configured.to_owned(),
            ..settings()
        };
        let finding = run_check(&settings, &json!({ "issuer": said }), "issuer");
        assert_eq!(finding.verdict, Problem, "{configured} {said}");
        assert_eq!(setting_of(&finding), Some("OIDC_ISSUER_URL"));
        let advice = finding.advice.unwrap();
        assert!(advice.contains(setting_to), "{advice}");
    }
}

#[test]
fn what_the_document_says_is_judged_by_the_settings() {
    for (id, changes, verdict, setting) in [
        (
            "client_authentication",
            json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}),
            Problem,
            Some("OIDC_CLIENT_AUTH_METHOD"),
        ),
        (
            "client_authentication",
            json!({"token_endpoint_auth_methods_supported": null}),
            Fits,
            None,
        ),
        (
            "code_flow",
            json!({"response_types_supported": ["id_token"]}),
            Problem,
            None,
        ),
        (
            "code_flow",
            json!({"grant_types_supported": ["implicit"]}),
            Problem,
            None,
        ),
        (
            "code_flow",
            json!({"code_challenge_methods_supported": ["plain"]}),
            Problem,
            None,
        ),
        (
            "code_flow",
            json!({"code_challenge_methods_supported": null}),
            Fits,
            None,
        ),
        (
            "response_mode",
            json!({"response_modes_supported": ["form_post"]}),
            Warning,
            Some("OIDC_RESPONSE_MODE"),
        ),
        (
            "response_mode",
            json!({"response_modes_supported": null}),
            Fits,
            None,
        ),
        (
            "pushed_requests",
            json!({"require_pushed_authorization_requests": true}),
            Problem,
            None,
        ),
        (
            "pushed_requests",
            json!({"pushed_authorization_request_endpoint": "https://op.example/par"}),
            Fits,
            None,
        ),
        (
            "signed_requests",
            json!({"require_signed_request_object": true}),
            Problem,
            Some("OIDC_SIGNED_REQUESTS"),
        ),
        (
            "scope",
            json!({"scopes_supported": ["openid", "email"]}),
            Warning,
            Some("OIDC_SCOPE"),
        ),
        ("scope", json!({"scopes_supported": null}), Unknown, None),
        (
            "profile_claims",
            json!({"userinfo_endpoint": null}),
            Problem,
            Some("EDGE_USERINFO_AT_LOGIN"),
        ),
        (
            "refresh",
            json!({"scopes_supported": ["openid", "profile", "email", "offline_access"]}),
            Information,
            Some("OIDC_SCOPE"),
        ),
        (
            "refresh",
            json!({"grant_types_supported": ["authorization_code"]}),
            Information,
            None,
        ),
        (
            "revocation",
            json!({"revocation_endpoint": null}),
            Information,
            None,
        ),
    ] {
        let finding = run_check(&settings(), &changes, id);
        assert_eq!(finding.verdict, verdict, "{id} {changes}");
        assert_eq!(setting_of(&finding), setting, "{id} {changes}");
    }
}

#[test]
fn the_settings_are_judged_by_what_the_document_says() {
    let par = |par| ProviderSettings { par, ..settings() };
    let form = ProviderSettings {
        response_mode: ResponseMode::FormPost,
        ..settings()
    };
    let offline = ProviderSettings {
        scope: "openid offline_access".to_owned(),
        ..settings()
    };
    let open = ProviderSettings {
        credentials: Credentials {
            auth: ClientAuth::None,
            ..Credentials::default()
        },
        ..settings()
    };
    let required = json!({
        "require_pushed_authorization_requests": true, "pushed_authorization_request_endpoint": "https://op.example/par",
    });
    for (id, settings, changes, verdict) in [
        ("pushed_requests", par(Par::Require), json!({}), Problem),
        ("pushed_requests", par(Par::Off), required.clone(), Problem),
        ("pushed_requests", par(Par::Auto), required, Fits),
        (
            "response_mode",
            form.clone(),
            json!({"response_modes_supported": null}),
            Warning,
        ),
        ("response_mode", form, json!({}), Fits),
        (
            "refresh",
            offline.clone(),
            json!({"grant_types_supported": ["authorization_code"]}),
            Warning,
        ),
        ("refresh", offline.clone(), json!({}), Fits),
        (
            "refresh",
            offline,
            json!({"grant_types_supported": null}),
            Unknown,
        ),
        ("client_authentication", open, json!({}), Unknown),
    ] {
        assert_eq!(
            run_check(&settings, &changes, id).verdict,
            verdict,
            "{id} {changes}"
        );
    }
}

#[test]
fn algorithms_are_judged_by_those_accepted_of_this_provider() {
    use SigningAlgorithm::{Es384, Rs256};
    let named = |algorithm| AcceptedAlgorithms::Named(vec![algorithm]);
    for (accepted, listed, verdict) in [
        (AcceptedAlgorithms::Auto, json!(["ES384", "HS256"]), Fits),
        (AcceptedAlgorithms::Auto, json!(["HS256", "none"]), Problem),
        (AcceptedAlgorithms::Auto, Value::Null, Unknown),
        (named(Rs256), json!(["RS256", "ES384"]), Fits),
        (named(Es384), json!(["RS256"]), Problem),
    ] {
        let settings = ProviderSettings {
            signing_algs: accepted.clone(),
            ..settings()
        };
        let changes = json!({ "id_token_signing_alg_values_supported": listed });
        assert_eq!(
            run_check(&settings, &changes, "id_token_algorithm").verdict,
            verdict,
            "{accepted:?} {listed}"
        );
    }
}

#[test]
fn what_the_token_endpoint_says_of_a_made_up_code_is_told_as_what_it_means() {
    let error = |code| OAuthError::new(code);
    for (verdict, expected, setting) in [
        (Ok(ClientVerdict::Believed), Fits, None),
        (
            Ok(ClientVerdict::NotBelieved(error("invalid_client"))),
            Problem,
            Some("OIDC_CLIENT_SECRET"),
        ),
        (
            Err(ProviderError::ClientRefused("token_endpoint", 401, "")),
            Problem,
            Some("OIDC_CLIENT_SECRET"),
        ),
        (
            Ok(ClientVerdict::NotAllowed(error("unauthorized_client"))),
            Problem,
            None,
        ),
        (
            Ok(ClientVerdict::Unclear(error("invalid_request"))),
            Unknown,
            None,
        ),
        (Err(ProviderError::Timeout("token_endpoint")), Unknown, None),
    ] {
        let finding = client::credentials(&settings(), &verdict);
        assert_eq!(finding.verdict, expected, "{verdict:?}");
        assert_eq!(setting_of(&finding), setting, "{verdict:?}");
    }
}

#[test]
fn a_sign_in_that_nobody_may_be_asked_at_says_whether_the_redirect_uri_is_known() {
    use oidc::AuthorizationProbe::{Elsewhere, Page, Returned};
    let error = |code| Returned(Some(OAuthError::new(code)));
    for (probe, verdict) in [
        (Returned(None), Fits),
        (error("login_required"), Fits),
        (error("invalid_scope"), Problem),
        // It came to the redirect URI, which is registered: some want prompt=consent with offline_access.
        (error("invalid_request"), Unknown),
        (error("access_denied"), Unknown),
        (Page(400), Problem),
        (Page(200), Unknown),
        (Page(503), Unknown),
        (Elsewhere, Unknown),
    ] {
        let finding = client::sign_in_request(&Ok(probe.clone()), "https://app.example/cb", true, false);
        assert_eq!(finding.verdict, verdict, "{probe:?}");
        let told = finding
            .advice
            .is_none_or(|advice| advice.starts_with("OIDC_") || advice.contains("https://app.example/cb"));
        assert!(told, "{probe:?}");
    }
}

#[test]
fn a_page_that_an_unregistered_address_gets_as_well_is_a_warning() {
    use oidc::AuthorizationProbe::{Elsewhere, Page};
    for (probe, verdict) in [
        (Page(200), Warning),
        (Elsewhere, Warning),
        (Page(400), Problem),
        (Page(503), Unknown),
    ] {
        let finding = client::sign_in_request(&Ok(probe.clone()), "https://app.example/cb", true, true);
        assert_eq!(finding.verdict, verdict, "{probe:?}");
    }
}

/// A provider that checks the code before the client, one that reports a wrong redirect URI as a wrong client, and
/// one whose client may not refresh.
#[tokio::test]
async fn a_made_up_refresh_token_is_shown_before_a_code() {
    let provider = ScriptedProvider::start();
    let mut settings = ProviderSettings::new(provider.issuer(), CLIENT_ID);
    settings.credentials.auth = ClientAuth::SecretBasic(ClientSecret::new(CLIENT_SECRET.to_owned()));
    let party = RelyingParty::new(settings).unwrap();
    let redirect_uri = RedirectUrl::new("http://127.0.0.1:3000/api/auth/callback".to_owned()).unwrap();
    for (refused, expected, grants) in [
        ("invalid_grant", Fits, 1),
        ("invalid_client", Problem, 1),
        ("unsupported_grant_type", Problem, 2),
    ] {
        provider.reset();
        let before = provider.calls(Endpoint::Token);
        let answer = Answer::json(400, &json!({ "error": refused }));
        provider.script(|script| drop(script.answers.insert(Endpoint::Token, answer)));
        let findings = try_client(&party, &redirect_uri, None, 1_800_000_000).await;
        assert_eq!(findings[0].1.verdict, expected, "{refused}: {findings:?}");
        assert_eq!(provider.calls(Endpoint::Token) - before, grants, "{refused}");
    }
}

#[test]
fn a_sign_out_that_is_refused_names_the_address_to_register() {
    const LANDING: &str = "https://app.example/";
    for (status, verdict) in [
        (Ok(Some(200)), Fits),
        (Ok(Some(303)), Fits),
        (Ok(Some(400)), Warning),
        (Ok(Some(503)), Unknown),
        (Ok(None), Warning),
    ] {
        assert_eq!(
            client::sign_out_request(&status, LANDING).verdict,
            verdict,
            "{status:?}"
        );
    }
    let refused = client::sign_out_request(&Ok(Some(400)), LANDING);
    assert!(refused.advice.unwrap().contains(LANDING));
}

/// Keycloak's answer to a wrong secret, whose body differs from the usual `invalid_client`, and a provider that
/// checks the contents of a pushed request.
#[tokio::test]
async fn a_pushed_request_that_is_refused_says_nothing_of_the_client() {
    let provider = ScriptedProvider::start();
    let mut settings = ProviderSettings::new(provider.issuer(), CLIENT_ID);
    settings.credentials.auth = ClientAuth::SecretBasic(ClientSecret::new(CLIENT_SECRET.to_owned()));
    let party = RelyingParty::new(settings).unwrap();
    let redirect_uri = RedirectUrl::new("http://127.0.0.1:3000/api/auth/callback".to_owned()).unwrap();
    let error = |status, code: &str| Answer::json(status, &json!({ "error": code }));
    for (pushed, token, expected) in [
        (
            error(401, "invalid_request"),
            error(401, "unauthorized_client"),
            Problem,
        ),
        (
            error(400, "invalid_request"),
            error(401, "invalid_client"),
            Problem,
        ),
        (error(400, "invalid_scope"), error(400, "invalid_grant"), Fits),
        (
            error(401, "invalid_client"),
            error(401, "invalid_client"),
            Problem,
        ),
    ] {
        let told = format!("{pushed:?} {token:?}");
        provider.script(|script| {
            script.offer_par = true;
            script.answers.insert(Endpoint::Par, pushed);
            script.answers.insert(Endpoint::Token, token);
        });
        let findings = try_client(&party, &redirect_uri, None, 1_800_000_000).await;
        let [(_, credentials), (_, request)] = &findings[..] else {
            panic!("{findings:?}");
        };
        assert_eq!(credentials.verdict, expected, "{told}: {credentials:?}");
        let setting = setting_of(credentials);
        let doubted = expected == Problem;
        assert_eq!(setting, doubted.then_some("OIDC_CLIENT_SECRET"), "{told}");
        assert_ne!(request.verdict, Fits, "{told}: {request:?}");
    }
}

#[tokio::test]
async fn metadata_and_endpoints_at_configured_addresses_are_what_is_judged() {
    let provider = ScriptedProvider::start();
    let issuer = "http://127.0.0.1:1";
    provider.script(|script| {
        script.metadata.insert("issuer".into(), json!(issuer));
        script
            .metadata
            .insert("jwks_uri".into(), json!("http://127.0.0.1:1/keys"));
    });
    let address = |endpoint| provider.url(endpoint).parse().unwrap();
    let settings = ProviderSettings {
        metadata_url: Some(address(Endpoint::Discovery)),
        endpoints: vec![("jwks_uri", address(Endpoint::Jwks))],
        credentials: Credentials {
            auth: ClientAuth::SecretBasic(ClientSecret::new(CLIENT_SECRET.to_owned())),
            ..Credentials::default()
        },
        ..ProviderSettings::new(issuer, CLIENT_ID)
    };
    let (checks, party) = examine(&settings, ALWAYS, 1_800_000_000).await;
    assert!(party.is_some(), "{checks:?}");
}

#[tokio::test]
async fn a_refusal_at_the_redirect_uri_is_described_and_does_not_blame_that_uri() {
    let provider = ScriptedProvider::start();
    let mut settings = ProviderSettings::new(provider.issuer(), CLIENT_ID);
    settings.credentials.auth = ClientAuth::SecretBasic(ClientSecret::new(CLIENT_SECRET.to_owned()));
    let party = RelyingParty::new(settings).unwrap();
    let callback = "http://127.0.0.1:3000/api/auth/callback";
    let redirect_uri = RedirectUrl::new(callback.to_owned()).unwrap();
    let back = format!("{callback}?error=invalid_request&error_description=no+resource%1B%5B2J%0Aknown");
    let described = json!({ "error": "invalid_request", "error_description": "no resource\u{1b}[2J\nknown" });
    for (pushes, blames_uri) in [(false, false), (true, true)] {
        provider.script(|script| {
            script.offer_par = pushes;
            script
                .answers
                .insert(Endpoint::Authorize, Answer::redirect(&back));
            script
                .answers
                .insert(Endpoint::Par, Answer::json(400, &described));
        });
        let party = party.with_settings(|_| {}).unwrap();
        let findings = try_client(&party, &redirect_uri, None, 1_800_000_000).await;
        let (_, request) = findings.iter().find(|(id, _)| *id == "sign_in_request").unwrap();
        assert!(
            request.found.contains("invalid_request (no resource [2J known)"),
            "{request:?}"
        );
        let blamed = request
            .advice
            .as_ref()
            .is_some_and(|advice| advice.contains(callback));
        assert_eq!(blamed, blames_uri, "{request:?}");
    }
}

#[test]
fn proofs_of_possession_are_judged_by_the_algorithm_of_the_key_there_is() {
    // The example of RFC 8410, section 10.3.
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    let settings = ProviderSettings {
        credentials: Credentials {
            dpop_key: Some(oidc::DpopKey::from_pem(pem).unwrap()),
            ..Credentials::default()
        },
        ..settings()
    };
    for (listed, verdict) in [
        (json!(["EdDSA"]), Fits),
        (json!(["ES256", "RS256"]), Problem),
        (Value::Null, Problem),
    ] {
        let changes = json!({ "dpop_signing_alg_values_supported": listed });
        let finding = run_check(&settings, &changes, "bound_tokens");
        assert_eq!(finding.verdict, verdict, "{listed}");
    }
}
