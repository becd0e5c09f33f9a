//! The table of provider settings; the help texts are the manual.

use chassis::settings::{Service, Setting, Topic, setting};

/// What the settings of a provider begin with, in every service.
pub const PREFIX: &str = "OIDC_";

/// The setting that names the file of several providers.
pub const PROVIDERS: &str = "OIDC_PROVIDERS";

/// The setting for the address of the metadata.
pub(crate) const METADATA_URL: &str = "OIDC_METADATA_URL";

/// The setting for addresses that replace those of the metadata.
pub(crate) const ENDPOINTS: &str = "OIDC_ENDPOINTS";

/// The setting for what people call the provider.
pub(crate) const PROVIDER_NAME: &str = "OIDC_PROVIDER_NAME";

/// Whether a setting belongs to one provider, and not to the process.
pub(crate) fn is_of_one_provider(setting: &Setting) -> bool {
    setting.name.starts_with(PREFIX) && setting.name != PROVIDERS
}

/// The settings of one provider are read as if they were the variables of a service that has nothing else.
pub(crate) static ONE_PROVIDER: Service = Service {
    name: "a provider",
    prefix: PREFIX,
    shared_prefix: None,
    about: "One provider.",
    first_settings: &[],
    topics: &[&TOPIC],
};

/// Everything about the provider and this client's registration with it.
pub static TOPIC: Topic = Topic {
    title: "Identity provider",
    settings: &[
        setting(
            "OIDC_ISSUER_URL",
            "",
            "URL",
            "Issuer identifier, byte for byte as the provider writes it. Required; https outside loopback.",
        ),
        setting(
            "OIDC_TENANTS",
            "",
            "LIST",
            "Whose people may sign in where OIDC_ISSUER_URL is an address for many tenants, such as https://login.microsoftonline.com/organizations/v2.0: the ids of tenants, or * for all. The issuer of a token then has to be the address of an allowed tenant, which the claim tid names too; the issuer of the session is that address.",
        ),
        setting(
            METADATA_URL,
            "",
            "URL",
            "Where the provider's metadata are, if not at OIDC_ISSUER_URL with /.well-known/openid-configuration: the address that pods reach, where browsers use another. The issuer in the metadata still has to equal OIDC_ISSUER_URL.",
        ),
        setting(
            ENDPOINTS,
            "",
            "LIST",
            "Addresses of the provider for pods, each as MEMBER=URL, such as token_endpoint=https://login.internal/token; https outside loopback. The members of the metadata are authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint and end_session_endpoint. groups is where a person's groups are read with the person's access token, if the ID token leaves them out because there are too many (_claim_names): Microsoft Graph at https://login.microsoftonline.com, and groups=off for nowhere.",
        ),
        setting(
            PROVIDER_NAME,
            "",
            "TEXT",
            "What people call the provider, for pages that name it: at most 64 characters. Without it they read the issuer's host.",
        ),
        setting(
            "OIDC_CLIENT_ID",
            "",
            "TEXT",
            "Client identifier registered with the provider. Required.",
        ),
        setting(
            "OIDC_TRUSTED_AUDIENCES",
            "",
            "LIST",
            "Audiences that ID tokens and logout tokens may name beside OIDC_CLIENT_ID, separated by commas. A token whose azp is OIDC_CLIENT_ID may name any, so most providers need none.",
        ),
        Setting {
            name: "OIDC_CLIENT_SECRET",
            default: "",
            value: "TEXT",
            secret: true,
            help: "Client secret, at least 8 characters, for the methods client_secret_basic and client_secret_post.",
        },
        setting(
            "OIDC_CLIENT_AUTH_METHOD",
            "client_secret_basic",
            "client_secret_basic|client_secret_post|private_key_jwt|tls_client_auth|none",
            "How this client proves who it is. Unless it is set, client_secret_post is used at a provider whose metadata list that and not client_secret_basic.",
        ),
        setting(
            "OIDC_CLIENT_KEY_FILE",
            "",
            "LIST",
            "PEM private keys (PKCS#8: RSA, P-256, P-384, P-521 or Ed25519) for private_key_jwt, signed requests and tls_client_auth. The first signs: an RSA key with the strongest algorithm that the metadata list, or RS256. The public halves of all are published at /.well-known/vestibule/client-jwks.json, so that a new key can be known before it is used.",
        ),
        setting(
            "OIDC_CLIENT_CERT_FILE",
            "",
            "FILE",
            "PEM certificate chain for tls_client_auth.",
        ),
        setting(
            "OIDC_SIGNED_REQUESTS",
            "false",
            "BOOL",
            "Whether authorization requests are signed (RFC 9101), by the first key of OIDC_CLIENT_KEY_FILE.",
        ),
        setting(
            "OIDC_SCOPE",
            "openid profile email",
            "LIST",
            "Scope to ask for, separated by spaces; openid must be among it.",
        ),
        setting(
            "OIDC_AUDIENCE",
            "",
            "TEXT",
            "The audience parameter of authorization requests.",
        ),
        setting(
            "OIDC_RESOURCE",
            "",
            "LIST",
            "Resources access tokens are asked for (RFC 8707), absolute URLs without a fragment. Several are asked for as one token for all, which not every provider issues; with OIDC_API_TOKENS=refresh all are asked for at the sign-in, and the session's own token is for the first.",
        ),
        setting(
            "OIDC_API_TOKENS",
            "exchange",
            "exchange|refresh",
            "How tokens for single APIs are requested: exchange trades the session's access token for one (RFC 8693); refresh names the API in a refresh (resource, RFC 8707), for which OIDC_RESOURCE and OIDC_SCOPE have to name all that is asked for later. The same for both services.",
        ),
        setting(
            "OIDC_ORGANIZATION",
            "",
            "TEXT",
            "Organization every login must belong to: org_… is compared with org_id, anything else with org_name.",
        ),
        setting(
            "OIDC_RESPONSE_MODE",
            "query",
            "query|form_post",
            "How the provider hands back the answer. form_post needs an https base URL or localhost.",
        ),
        setting(
            "OIDC_ID_TOKEN_SIGNING_ALG",
            "auto",
            "LIST",
            "The algorithms ID tokens, logout tokens and signed userinfo may have. auto: those of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA that the provider's metadata lists. Or one or several by name, then no other; HS256, HS384 and HS512, under a client secret of 32, 48 and 64 bytes, only by name. Never none.",
        ),
        setting(
            "OIDC_ACCESS_TOKENS",
            "rfc9068",
            "rfc9068|entra|okta|cognito",
            "How the provider makes the JWT access tokens that API clients show to routes with bearer: by RFC 9068, or as Microsoft Entra ID, Okta or Amazon Cognito do.",
        ),
        setting(
            "OIDC_AUTHORIZATION_PARAMS",
            "",
            "LIST",
            "Further parameters of authorization requests, as name=value.",
        ),
        setting(
            "OIDC_PAR",
            "auto",
            "auto|require|off",
            "Pushed authorization requests (RFC 9126): when the provider offers them, always, or never. With auto, sign-ins go on without them if the provider's answer is none of RFC 9126 and its metadata do not require them; the log warns once.",
        ),
        setting(
            "OIDC_DPOP",
            "off",
            "on|off",
            "Sender-constrained tokens (RFC 9449): tokens are bound to OIDC_DPOP_KEY_FILE, and worth nothing without it.",
        ),
        setting(
            "OIDC_DPOP_KEY_FILE",
            "",
            "FILE",
            "PEM private key (PKCS#8: RSA, P-256, P-384, P-521 or Ed25519) tokens are bound to, of a kind that dpop_signing_alg_values_supported lists. Required by OIDC_DPOP=on; the same file for every replica of both services.",
        ),
        setting(
            "OIDC_CLOCK_TOLERANCE",
            "60",
            "SECONDS",
            "By how much the provider's clock may differ from ours; 0 is none, 300 the most.",
        ),
        setting(
            "OIDC_HTTP_TIMEOUT_MS",
            "5000",
            "MS",
            "Bound on each exchange with the provider, and on how long a caller waits for a refresh.",
        ),
        setting(
            "OIDC_CA_FILE",
            "",
            "FILE",
            "PEM certificates of the authorities trusted for the provider, instead of the public ones.",
        ),
        setting(
            PROVIDERS,
            "",
            "FILE",
            "Several providers instead of one (TOML): a [[provider]] table for each, with an id and the settings above in lower case without OIDC_. Takes the place of all of them; the same file for both services. Read at the start.",
        ),
        Setting {
            name: "HTTPS_PROXY",
            default: "",
            value: "URL",
            secret: true,
            help: "Forward proxy for calls to the provider, such as http://user:password@proxy.example:3128; also read as https_proxy. Loopback is reached without it.",
        },
        setting(
            "NO_PROXY",
            "",
            "LIST",
            "Who is reached without HTTPS_PROXY; also read as no_proxy. A domain, with or without a leading dot, stands for itself and all below it; addresses, networks such as 10.0.0.0/8, and * are understood.",
        ),
    ],
};
