//! Settings that would weaken a sign-in are rejected by name; similar valid ones are accepted.

use crate::support::party;

const GOOD: [(&str, &str); 3] = [
    ("OIDC_ISSUER_URL", "https://op.example"),
    ("OIDC_CLIENT_ID", "client"),
    ("OIDC_CLIENT_SECRET", "a-secret-of-more-than-32-characters"),
];

fn read(name: &str, value: &str) -> Result<(), String> {
    let others = GOOD.iter().filter(|(known, _)| *known != name);
    let settings: Vec<_> = others.copied().chain([(name, value)]).collect();
    party(&settings).map(|_| ())
}

#[test]
fn what_would_weaken_a_sign_in_is_refused_by_name() {
    for (name, value) in [
        ("OIDC_ISSUER_URL", "http://op.example"),
        ("OIDC_ISSUER_URL", "http://localhost.op.example"),
        ("OIDC_ISSUER_URL", "https://user@op.example"),
        ("OIDC_ISSUER_URL", "https://user:password@op.example"),
        ("OIDC_ISSUER_URL", "https://op.example?tenant=a"),
        ("OIDC_ISSUER_URL", "https://op.example#a"),
        ("OIDC_ISSUER_URL", "op.example"),
        ("OIDC_METADATA_URL", "http://op.example/metadata"),
        ("OIDC_METADATA_URL", "/metadata"),
        ("OIDC_ENDPOINTS", "token_endpoint=http://op.example/token"),
        (
            "OIDC_ENDPOINTS",
            "authorization_endpoint=https://user@op.example/authorize",
        ),
        ("OIDC_ENDPOINTS", "jwks_uri=https://op.example/keys#a"),
        ("OIDC_ENDPOINTS", "issuer=https://op.example/"),
        ("OIDC_ENDPOINTS", "https://op.example/token"),
        (
            "OIDC_ENDPOINTS",
            "jwks_uri=https://op.example/a,jwks_uri=https://op.example/b",
        ),
        ("OIDC_CLIENT_SECRET", "seven77"),
        ("OIDC_SCOPE", "profile email"),
        ("OIDC_SCOPE", "openidx profile"),
        ("OIDC_CLOCK_TOLERANCE", "301"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "none"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "None"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "ES256K"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "RS256,none"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "auto,HS256"),
        ("OIDC_PROVIDER_NAME", "two\nlines"),
        (
            "OIDC_AUTHORIZATION_PARAMS",
            "prompt=login,redirect_uri=https://evil.example",
        ),
        ("OIDC_AUTHORIZATION_PARAMS", "request_uri=https://evil.example"),
        ("OIDC_AUTHORIZATION_PARAMS", "max_age=soon"),
        ("OIDC_RESOURCE", "https://api.example#a"),
        ("OIDC_RESOURCE", "api"),
        ("OIDC_API_TOKENS", "audience"),
        ("OIDC_HTTP_TIMEOUT_MS", "0"),
    ] {
        let message = read(name, value).map_err(|message| message.contains(name));
        assert_eq!(message, Err(true), "{name}={value}");
    }
}

#[test]
fn what_stands_next_to_it_is_taken() {
    for (name, value) in [
        ("OIDC_ISSUER_URL", "http://localhost:9000"),
        ("OIDC_ISSUER_URL", "https://op.example/tenant"),
        ("OIDC_CLIENT_SECRET", "eight888"),
        ("OIDC_SCOPE", "email openid"),
        ("OIDC_CLOCK_TOLERANCE", "300"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "auto"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "ES512, RS256"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "HS256"),
        ("OIDC_PROVIDER_NAME", "Acme"),
        (
            "OIDC_ENDPOINTS",
            "token_endpoint=https://op.example/token, end_session_endpoint=https://op.example/out?pool=1",
        ),
        ("OIDC_AUTHORIZATION_PARAMS", "prompt=login,max_age=60"),
        ("OIDC_RESOURCE", "https://api.example/a"),
        ("OIDC_API_TOKENS", "refresh"),
    ] {
        assert_eq!(read(name, value), Ok(()), "{name}={value}");
    }
}

#[test]
fn a_short_secret_signs_no_tokens() {
    let settings = |secret| {
        [
            GOOD[0],
            GOOD[1],
            ("OIDC_CLIENT_SECRET", secret),
            ("OIDC_ID_TOKEN_SIGNING_ALG", "HS256"),
        ]
    };
    let short = party(&settings("a-secret-of-31-characters-only!")).map(|_| ());
    assert!(short.is_err_and(|message| message.contains("OIDC_ID_TOKEN_SIGNING_ALG")));
    assert!(party(&settings("a-secret-of-32-characters-at-all")).is_ok());
}
