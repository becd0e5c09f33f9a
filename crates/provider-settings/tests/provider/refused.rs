//! Settings that would weaken a sign-in are refused by name, and their neighbours are not.

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
        ("OIDC_TOKEN_ENDPOINT", "http://op.example/token"),
        ("OIDC_AUTHORIZATION_ENDPOINT", "https://user@op.example/authorize"),
        ("OIDC_JWKS_URI", "https://op.example/keys#a"),
        ("OIDC_CLIENT_SECRET", "seven77"),
        ("OIDC_SCOPE", "profile email"),
        ("OIDC_SCOPE", "openidx profile"),
        ("OIDC_CLOCK_TOLERANCE", "301"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "none"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "None"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "ES256K"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "RS256,none"),
        ("OIDC_ID_TOKEN_SIGNING_ALG", "auto,HS256"),
        ("OIDC_ASSERTION_AUDIENCE", "both"),
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
        ("OIDC_ASSERTION_AUDIENCE", "token-endpoint"),
        ("OIDC_PROVIDER_NAME", "Acme"),
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

#[test]
fn an_rsa_key_signs_with_what_is_named_and_no_other_key_can_be_told() {
    use std::io::Write as _;
    let rsa = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../dev/scripted-provider/keys/rsa-0.pem"
    );
    let mut ed25519 = tempfile::NamedTempFile::new().unwrap();
    // RFC 8410, section 10.3.
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    ed25519.write_all(pem.as_bytes()).unwrap();
    let ed25519 = ed25519.path().to_str().unwrap();
    let signs = |key: &str, algorithm: &str| {
        let settings = [
            GOOD[0],
            GOOD[1],
            ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt"),
            ("OIDC_CLIENT_KEY_FILE", key),
            ("OIDC_CLIENT_KEY_ALG", algorithm),
        ];
        let (party, _) = party(&settings)?;
        let keys = party.client_jwks().unwrap_or_default();
        Ok::<_, String>(keys["keys"][0]["alg"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(signs(rsa, "PS256").as_deref(), Ok("PS256"));
    assert_eq!(signs(rsa, "").as_deref(), Ok(""), "the metadata choose");
    for (key, algorithm) in [(ed25519, "PS256"), (rsa, "ES256"), (rsa, "HS256"), (rsa, "none")] {
        let wrong = signs(key, algorithm).unwrap_err();
        assert!(wrong.contains("OIDC_CLIENT_KEY_ALG"), "{algorithm}: {wrong}");
    }
}
