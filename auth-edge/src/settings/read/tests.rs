//! Valid and invalid settings. Every mistake is reported at once, and no message contains a secret.

use chassis::secret::Secret;
use chassis::settings::Source;
use oidc::PROTOCOL_CLAIMS;

use super::*;
use crate::sessions::cookies::SameSite;
use crate::sessions::device_binding::DeviceBound;
use crate::settings::{SERVICE, secrets_are_usable};

const GOOD: [(&str, &str); 5] = [
    ("EDGE_BASE_URL", "https://app.example"),
    ("EDGE_SECRET", "0123456789abcdef0123456789abcdef"),
    ("OIDC_ISSUER_URL", "https://op.example"),
    ("OIDC_CLIENT_ID", "client"),
    (
        "OIDC_CLIENT_SECRET",
        "a client secret of thirty-two or more characters",
    ),
];

fn result(changes: &[(&str, &str)]) -> Result<(EdgeSettings, usize), String> {
    let mut pairs: Vec<(&str, &str)> = GOOD.to_vec();
    pairs.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    pairs.extend(changes);
    let source = Source::from_pairs(&SERVICE, &pairs);
    let mut reader = Reader::new(&source);
    let settings = read(&mut reader);
    reader
        .finish(settings)
        .map(|(settings, warnings)| (settings, warnings.len()))
        .map_err(|wrong| wrong.to_string())
}

#[test]
fn the_defaults_are_those_of_the_manual() {
    let (settings, warnings) = result(&[]).unwrap();
    assert_eq!(warnings, 0);
    assert_eq!(settings.listen.to_string(), "127.0.0.1:3000");
    assert_eq!(
        (settings.cookie.name.as_str(), settings.cookie.same_site),
        ("session", SameSite::Lax)
    );
    assert_eq!(
        settings.callback_path(&settings.providers.all[0]),
        "/api/auth/callback"
    );
    assert_eq!(
        settings.sign_in.post_logout_redirect.as_str(),
        "https://app.example/"
    );
    assert_eq!(
        (
            settings.sign_in.transaction_duration_secs,
            settings.rate_limit_login
        ),
        (3600, 60)
    );
    assert!(
        settings.sign_in.store_id_token
            && !settings.access_token_endpoint
            && !settings.sign_in.frontchannel_logout
    );
    assert_eq!(settings.sign_in.claim_filter, PROTOCOL_CLAIMS);
}

#[test]
fn sessions_are_bound_to_devices_where_browsers_can() {
    const HTTP: (&str, &str) = ("EDGE_BASE_URL", "http://127.0.0.1:3000");
    const DOMAIN: (&str, &str) = ("EDGE_COOKIE_DOMAIN", "example.com");
    let mode = |mode| ("EDGE_DEVICE_BOUND", mode);
    for (changes, bound) in [
        (&[][..], Some((DeviceBound::Offered, 600))),
        (&[mode("off")], Some((DeviceBound::Off, 600))),
        (&[mode("require:60")], Some((DeviceBound::Required, 60))),
        (&[HTTP], None),
        (&[DOMAIN], None),
    ] {
        let (settings, _) = result(changes).unwrap();
        let found = settings
            .device_bound
            .map(|bound| (bound.mode, bound.duration_secs));
        assert_eq!(found, bound, "{changes:?}");
        let binds = bound.is_some_and(|(mode, _)| mode != DeviceBound::Off);
        assert_eq!(settings.around_routes.binds, binds, "{changes:?}");
    }
    for (changes, named) in [
        (&[mode("always")][..], "must be one of off, offer, require"),
        (&[HTTP, mode("require")], "require needs an https"),
        (&[DOMAIN, mode("require")], "EDGE_COOKIE_DOMAIN"),
        (&[mode("offer:9")], "from 10 to 3600"),
        (&[mode("offer:3601")], "from 10 to 3600"),
        (&[mode("offer:soon")], "from 10 to 3600"),
    ] {
        let wrong = result(changes).unwrap_err();
        assert!(wrong.contains(named), "{wrong}");
    }
}

#[test]
fn the_cookie_rotates_only_where_somebody_says_so_and_not_too_often() {
    let every = |secs| ("EDGE_COOKIE_ROTATION", secs);
    for (changes, rotates) in [(&[][..], false), (&[every("0")], false), (&[every("120")], true)] {
        let (settings, _) = result(changes).unwrap();
        assert_eq!(settings.cookie_rotation.is_some(), rotates, "{changes:?}");
    }
    for secs in ["119", "86401"] {
        let wrong = result(&[every(secs)]).unwrap_err();
        assert!(wrong.contains("from 120 to 86400"), "{wrong}");
    }
}

#[test]
fn userinfo_at_sign_in_is_auto_unless_set() {
    const NAME: &str = "EDGE_USERINFO_AT_LOGIN";
    for (changes, choice) in [
        (&[][..], UserinfoReading::Auto),
        (&[(NAME, "auto")], UserinfoReading::Auto),
        (&[(NAME, "always")], UserinfoReading::Always),
        (&[(NAME, "never")], UserinfoReading::Never),
    ] {
        let (settings, _) = result(changes).unwrap();
        assert_eq!(settings.sign_in.userinfo_at_login, choice, "{changes:?}");
    }
    assert!(result(&[(NAME, "sometimes")]).is_err_and(|wrong| wrong.contains("auto, always, never")));
}

// conformance: B-040 B-043
#[test]
fn each_wrong_setting_is_named() {
    for (name, value) in [
        ("EDGE_ANALYTICS_TOKEN", "phc_without_host"),
        ("EDGE_ANALYTICS_HOST", "https://eu.i.posthog.com/path"),
        ("EDGE_BASE_URL", ""),
        ("EDGE_BASE_URL", "/relative"),
        ("EDGE_BASE_URL", "ftp://app.example"),
        ("EDGE_BASE_URL", "https://app.example/?x"),
        ("EDGE_BASE_URL", "https://app.example/#x"),
        ("EDGE_BASE_URL", "https://app.example/app"),
        ("EDGE_SECRET", ""),
        ("EDGE_SECRET", "1234567"),
        ("EDGE_SECRET", "0123456789abcdef0123456789abcdef,short"),
        ("EDGE_COOKIE_NAME", "a b"),
        ("EDGE_COOKIE_NAME", "__Host-session"),
        ("EDGE_COOKIE_SAME_SITE", "loose"),
        ("EDGE_COOKIE_DOMAIN", "a/b"),
        ("EDGE_LOGIN_PATH", "login"),
        ("EDGE_LOGIN_PATH", "/a/../b"),
        ("EDGE_LOGIN_PATH", "/api/auth/callback"),
        ("EDGE_LOGIN_PARAMETERS", "client_id"),
        ("EDGE_LOGIN_PARAMETERS", "kc_idp_hint,request_uri=https://*"),
        ("EDGE_LOGIN_PARAMETERS", "returnTo"),
        ("EDGE_LOGIN_PARAMETERS", "hd,hd=example.com"),
        ("EDGE_POST_LOGOUT_REDIRECT", "javascript:alert(1)"),
        ("EDGE_LOGOUT_RETURN_TO_ALLOWED", "/relative"),
        ("EDGE_IDP_LOGOUT", "maybe"),
        ("EDGE_PROFILE_REFETCH", "sometimes"),
        ("EDGE_CLAIM_FILTER", "sub"),
        ("EDGE_TRANSACTION_DURATION", "0"),
        ("EDGE_TRANSACTION_DURATION", "1h"),
        ("EDGE_TRANSACTION_DURATION", "86401"),
        ("EDGE_SESSION_CACHE_SECS", "61"),
        ("EDGE_TRUSTED_PROXIES", "0.0.0.0/0"),
        ("EDGE_TRUSTED_PROXIES", "::ffff:0.0.0.0/96"),
        ("EDGE_TRUSTED_PROXIES", "somebody"),
        ("EDGE_CHECK_AUTHORIZATION", "true"),
        ("EDGE_SESSION_SVC_URL", "session-svc:50051"),
        ("EDGE_SESSION_SVC_URL", "http://session-svc:50051/#x"),
        ("EDGE_TLS_KEY_FILE", "/nowhere/key.pem"),
        ("OIDC_ISSUER_URL", "http://op.example"),
        ("OIDC_SCOPE", "profile openidx"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "none"),
        ("OIDC_PAR", "sometimes"),
        ("OIDC_DPOP", "maybe"),
        ("OIDC_RESOURCE", "orders"),
        ("OIDC_RESOURCE", "https://api.example/#orders"),
        ("OIDC_AUTHORIZATION_PARAMS", "response_type=token"),
        ("OIDC_AUTHORIZATION_PARAMS", "grant_type=password,scope=x"),
    ] {
        let wrong = result(&[(name, value)]).map(|_| ()).unwrap_err();
        assert!(wrong.contains(name), "{name}={value}: {wrong}");
    }
}

#[test]
fn unusable_keys_are_named_and_a_bound_token_is_handed_to_nobody() {
    let key = {
        use base64::Engine as _;
        let algorithm = &aws_lc_rs::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let random = aws_lc_rs::rand::SystemRandom::new();
        let der = aws_lc_rs::signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let text = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    };
    let (good, bad) = (
        tempfile::NamedTempFile::new().unwrap(),
        tempfile::NamedTempFile::new().unwrap(),
    );
    std::fs::write(good.path(), key).unwrap();
    std::fs::write(bad.path(), "no key").unwrap();
    let (good, bad) = (good.path().to_str().unwrap(), bad.path().to_str().unwrap());
    let both = format!("{good},{bad}");
    for (settings, named) in [
        (vec![("OIDC_DPOP", "on")], "OIDC_DPOP_KEY_FILE"),
        (
            vec![("OIDC_DPOP", "on"), ("OIDC_DPOP_KEY_FILE", bad)],
            "OIDC_DPOP_KEY_FILE",
        ),
        (vec![("OIDC_SIGNED_REQUESTS", "true")], "OIDC_CLIENT_KEY_FILE"),
        (
            vec![("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt")],
            "OIDC_CLIENT_KEY_FILE",
        ),
        (
            vec![
                ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt"),
                ("OIDC_CLIENT_KEY_FILE", &both),
            ],
            "OIDC_CLIENT_KEY_FILE",
        ),
        (
            vec![
                ("OIDC_DPOP", "on"),
                ("OIDC_DPOP_KEY_FILE", good),
                ("EDGE_ACCESS_TOKEN_ENDPOINT", "true"),
            ],
            "EDGE_ACCESS_TOKEN_ENDPOINT",
        ),
        (
            vec![
                ("OIDC_DPOP", "on"),
                ("OIDC_DPOP_KEY_FILE", good),
                ("EDGE_CHECK_AUTHORIZATION", "true"),
                ("EDGE_TRUSTED_PROXIES", "10.0.0.1"),
            ],
            "EDGE_CHECK_AUTHORIZATION",
        ),
    ] {
        let wrong = result(&settings).map(|_| ()).unwrap_err();
        assert!(wrong.contains(named), "{settings:?}: {wrong}");
    }
    result(&[("OIDC_DPOP", "on"), ("OIDC_DPOP_KEY_FILE", good)]).unwrap();
}

#[test]
fn changed_secrets_are_judged_as_those_of_the_start() {
    let usable = |texts: &[&str]| {
        let secrets = texts.iter().map(|text| Secret::new((*text).to_owned()));
        secrets_are_usable(&secrets.collect::<Vec<_>>())
    };
    assert!(usable(&["12345678", "0123456789abcdef"]));
    for texts in [&[][..], &["1234567"], &["0123456789abcdef", "short"]] {
        assert!(!usable(texts), "{texts:?}");
    }
}

#[test]
fn all_mistakes_are_told_together_and_no_secret_with_them() {
    let wrong = result(&[
        ("EDGE_SECRET", "hunter2"),
        ("EDGE_LISTEN", "nowhere"),
        ("EDGE_COOKIE_SAME_SITE", "loose"),
    ]);
    let wrong = wrong.map(|_| ()).unwrap_err();
    for name in ["EDGE_SECRET", "EDGE_LISTEN", "EDGE_COOKIE_SAME_SITE"] {
        assert!(wrong.contains(name), "{wrong}");
    }
    assert!(!wrong.contains("hunter2"), "{wrong}");
}

#[test]
fn what_needs_https_is_refused_without_it() {
    let http = ("EDGE_BASE_URL", "http://localhost:3000");
    assert!(result(&[http, ("EDGE_COOKIE_SAME_SITE", "none")]).is_err());
    assert!(result(&[http, ("EDGE_COOKIE_DOMAIN", "localhost")]).is_err());
    assert!(result(&[http, ("OIDC_RESPONSE_MODE", "form_post")]).is_ok());
    assert!(
        result(&[
            ("EDGE_BASE_URL", "http://app.example"),
            ("OIDC_RESPONSE_MODE", "form_post")
        ])
        .is_err()
    );
}

#[test]
fn sites_that_embed_the_product_are_exact_origins_and_get_partitioned_cookies() {
    let embedded = |value: &'static str| result(&[("EDGE_FRAME_ANCESTORS", value)]);
    let (settings, _) = embedded("https://portal.example,https://Teams.example:8443/").unwrap();
    assert_eq!(
        settings.frame_ancestors,
        ["https://portal.example", "https://teams.example:8443"]
    );
    assert_eq!(
        (settings.cookie.partitioned, settings.cookie.same_site),
        (true, SameSite::None)
    );
    assert!(settings.device_bound.is_none());
    for wrong in [
        "http://portal.example",
        "https://portal.example/a",
        "https://portal.example?a",
        "https://user@portal.example",
        "https://*.example",
        "https://portal.example;sandbox",
        "portal.example",
        "'self'",
        "*",
        "https:",
    ] {
        assert!(embedded(wrong).is_err(), "{wrong}");
    }
    let portal = ("EDGE_FRAME_ANCESTORS", "https://portal.example");
    for excluded in [
        ("EDGE_COOKIE_SAME_SITE", "lax"),
        ("EDGE_COOKIE_SAME_SITE", "strict"),
        ("EDGE_DEVICE_BOUND", "require"),
        ("EDGE_BASE_URL", "http://localhost:3000"),
    ] {
        assert!(result(&[portal, excluded]).is_err(), "{excluded:?}");
    }
    assert!(result(&[portal, ("EDGE_COOKIE_SAME_SITE", "none")]).is_ok());
    let many = vec!["https://portal.example"; 17].join(",");
    assert!(result(&[("EDGE_FRAME_ANCESTORS", &many)]).is_err());
}

#[test]
fn a_short_secret_and_plain_http_are_warned_about() {
    assert_eq!(result(&[("EDGE_SECRET", "12345678")]).unwrap().1, 1);
    assert_eq!(result(&[("EDGE_BASE_URL", "http://app.example")]).unwrap().1, 1);
    assert_eq!(
        result(&[("EDGE_BASE_URL", "http://localhost:3000")]).unwrap().1,
        0
    );
}

#[test]
fn login_parameters_can_be_switched_off() {
    assert!(
        result(&[("EDGE_LOGIN_PARAMETERS", "none")])
            .unwrap()
            .0
            .sign_in
            .login_parameters
            .is_empty()
    );
    assert_eq!(
        result(&[("EDGE_LOGIN_PARAMETERS", "prompt")])
            .unwrap()
            .0
            .sign_in
            .login_parameters,
        [AllowedParameter::parse("prompt").unwrap()]
    );
}

#[test]
fn no_path_of_a_setting_takes_the_place_of_another_route() {
    for path in [
        "/api/auth",
        "/api/auth/logout",
        "/api/auth/me",
        "/api/auth/Me",
        "/api/auth/401",
        "/api/auth/status",
        "/api/auth/access-token",
        "/api/auth/backchannel-logout",
        "/api/auth/frontchannel-logout",
        "/api/auth/check",
        "/.well-known/vestibule/jwks.json",
        "/.well-known/vestibule/client-jwks.json",
        "/session.v1.BrowserSessionService/GetCurrentSession",
        "/ingest/e",
    ] {
        const NAME: &str = "EDGE_LOGIN_PATH";
        let wrong = result(&[(NAME, path)]).map(|_| ()).unwrap_err();
        assert!(wrong.contains(NAME) && wrong.contains(path), "{path}: {wrong}");
    }
    for landing in [
        "/api/auth/logout",
        "/api/auth/logout?returnTo=/a",
        "https://app.example/api/auth/callback",
    ] {
        let wrong = result(&[("EDGE_POST_LOGOUT_REDIRECT", landing)]).map(|_| ());
        assert!(
            wrong.unwrap_err().contains("EDGE_POST_LOGOUT_REDIRECT"),
            "{landing}"
        );
    }
    let free = [
        ("EDGE_LOGIN_PATH", "/sign-in"),
        ("EDGE_POST_LOGOUT_REDIRECT", "/sign-in"),
    ];
    result(&free).unwrap();
}

#[test]
fn what_the_file_of_providers_says_has_to_fit_the_edge() {
    use std::io::Write as _;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let table = |id: &str, further: &str| {
        format!(
            "[[provider]]\nid = \"{id}\"\nissuer_url = \"https://{id}.example\"\nclient_id = \"edge\"\n\
             client_auth_method = \"none\"\n{further}\n"
        )
    };
    let further = "hosts = [\"a.example\"]\ncallback_path = \"/api/auth/me\"";
    let callback = "callback_path = \"/api/auth/callback/c\"";
    let tables = [table("a", further), table("b", callback), table("c", "")].concat();
    write!(file, "default = \"a\"\n{tables}").unwrap();
    let source = Source::from_pairs(
        &SERVICE,
        &[
            GOOD[0],
            GOOD[1],
            ("EDGE_COOKIE_DOMAIN", "example"),
            ("OIDC_PROVIDERS", file.path().to_str().unwrap()),
        ],
    );
    let mut reader = Reader::new(&source);
    let settings = read(&mut reader);
    let wrong = reader.finish(settings).unwrap_err().to_string();
    for expected in [
        "provider \"a\": the callback \"/api/auth/me\"",
        "provider \"c\": the callback \"/api/auth/callback/c\"",
        "EDGE_COOKIE_DOMAIN (--cookie-domain): cannot be set with hosts",
    ] {
        assert!(wrong.contains(expected), "{expected}: {wrong}");
    }
}

#[test]
fn a_look_that_cannot_be_used_is_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let (style, logo) = (folder.path().join("style.css"), folder.path().join("logo.png"));
    std::fs::write(&style, "@import url(other.css)").unwrap();
    std::fs::write(&logo, "GIF89a").unwrap();
    let wrong = result(&[("EDGE_PAGES_DIR", folder.path().to_str().unwrap())]).unwrap_err();
    for text in [
        "EDGE_PAGES_DIR",
        "style.css holds \"@import\"",
        "the logo is neither SVG, PNG, JPEG nor WebP",
    ] {
        assert!(wrong.contains(text), "{text}: {wrong}");
    }
    let wrong = result(&[("EDGE_PAGES_DIR", "/no/such/folder")]).unwrap_err();
    assert!(wrong.contains("has neither style.css nor logo.svg"), "{wrong}");
}

#[test]
fn further_hosts_are_names_that_are_there_once() {
    let hosts = |value: &str| result(&[("EDGE_HOSTS", value)]).map(|(settings, _)| settings.hosts);
    assert_eq!(hosts("").unwrap(), Vec::<String>::new());
    assert_eq!(
        hosts("Wiki.example, https://b.example/, c.example:8443").unwrap(),
        ["wiki.example", "b.example", "c.example:8443"]
    );
    for (value, why) in [
        ("http://b.example", "the scheme is https"),
        ("b.example/x", "is not a host"),
        ("*.example", "is not a host"),
        ("b.example.", "is not a host"),
        ("b.example.:443", "is not a host"),
        ("b.example:", "is not a host"),
        ("b.example:port", "is not a host"),
        ("u@b.example", "is not a host"),
        ("app.example", "appears twice"),
        ("b.example, B.example:443", "appears twice"),
    ] {
        let wrong = hosts(value).unwrap_err();
        assert!(
            wrong.contains("EDGE_HOSTS") && wrong.contains(why),
            "{value}: {wrong}"
        );
    }
    let domain = [
        ("EDGE_HOSTS", "wiki.example.com,b.example"),
        ("EDGE_COOKIE_DOMAIN", "example.com"),
    ];
    let wrong = result(&domain).unwrap_err();
    assert!(
        wrong.contains("\"b.example\" is not below") && !wrong.contains("wiki"),
        "{wrong}"
    );
}
