//! The table of provider settings; the help texts are the manual.

use chassis::settings::{Service, Setting, Topic, setting};

/// The prefix of a provider's settings, in every service.
pub const PREFIX: &str = "OIDC_";

/// The setting that names the file of several providers.
pub const PROVIDERS: &str = "OIDC_PROVIDERS";

/// The setting for the address of the metadata.
pub(crate) const METADATA_URL: &str = "OIDC_METADATA_URL";

/// The setting for addresses that replace those of the metadata.
pub(crate) const ENDPOINTS: &str = "OIDC_ENDPOINTS";

/// The setting for the name that users know the provider by.
pub(crate) const PROVIDER_NAME: &str = "OIDC_PROVIDER_NAME";

/// Whether a setting belongs to one provider, and not to the process.
pub(crate) fn is_of_one_provider(setting: &Setting) -> bool {
    setting.name.starts_with(PREFIX) && setting.name != PROVIDERS
}

/// Reads the settings of one provider as if they were the variables of a service without other settings.
pub(crate) static ONE_PROVIDER: Service = Service {
    name: "a provider",
    prefixes: &[PREFIX],
    shared_prefix: None,
    about: "One provider.",
    first_settings: &[],
    fixed: &[],
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
            "Issuer identifier of the provider, exactly as its metadata write it. Required. Must be https, except on loopback.",
        ),
        setting(
            "OIDC_TENANTS",
            "",
            "LIST",
            "Tenants whose users may sign in: tenant ids, or * for all. Only for an OIDC_ISSUER_URL for many tenants, such as https://login.microsoftonline.com/organizations/v2.0. The issuer of a token must be the address of an allowed tenant, and the claim tid must name the same tenant. The session's issuer is that address.",
        ),
        setting(
            METADATA_URL,
            "",
            "URL",
            "Address of the provider's metadata, if not below OIDC_ISSUER_URL. The default is OIDC_ISSUER_URL with /.well-known/openid-configuration. Set it if pods reach the provider at another address than browsers. The issuer in the metadata must still equal OIDC_ISSUER_URL.",
        ),
        setting(
            ENDPOINTS,
            "",
            "LIST",
            "Addresses that pods use instead of those in the provider's metadata, each as MEMBER=URL. Example: token_endpoint=https://login.internal/token. Must be https, except on loopback. Members: authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint, end_session_endpoint and groups. If an ID token omits the user's groups because there are too many (_claim_names), the edge reads them at the address groups, with the user's access token. For https://login.microsoftonline.com this address is Microsoft Graph by default; with groups=off the edge reads no groups.",
        ),
        setting(
            PROVIDER_NAME,
            "",
            "TEXT",
            "Name of the provider on pages for users, at most 64 characters. The default is the issuer's host.",
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
            "Further audiences that ID tokens and logout tokens may name, next to OIDC_CLIENT_ID. Most providers need none: a token whose azp is OIDC_CLIENT_ID may name any audience.",
        ),
        Setting {
            name: "OIDC_CLIENT_SECRET",
            default: "",
            value: "TEXT",
            secret: true,
            help: "Client secret for client_secret_basic and client_secret_post, at least 8 characters.",
        },
        setting(
            "OIDC_CLIENT_AUTH_METHOD",
            "client_secret_basic",
            "METHOD",
            "How this client authenticates at the provider. One of: client_secret_basic, client_secret_post, private_key_jwt, spiffe_jwt, tls_client_auth, none. If it is not set and the provider's metadata list client_secret_post without client_secret_basic, the client uses client_secret_post.",
        ),
        setting(
            "OIDC_CLIENT_KEY_FILE",
            "",
            "LIST",
            "PEM private keys for private_key_jwt, signed requests and tls_client_auth. Each is PKCS#8: RSA, P-256, P-384, P-521 or Ed25519. The first signs; an RSA key uses the strongest algorithm that the metadata list, or RS256. The edge publishes the public keys at /.well-known/vestibule/client-jwks.json, so that the provider knows a new key before its first use.",
        ),
        setting(
            "OIDC_CLIENT_ASSERTION_FILE",
            "",
            "FILE",
            "File with a JWT that authenticates this client without a secret: a projected ServiceAccount token, an Entra workload identity or a SPIFFE JWT-SVID. Read for each request. The method is then private_key_jwt; for a JWT-SVID, providers may require spiffe_jwt.",
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
            "Signs authorization requests (RFC 9101) with the first key of OIDC_CLIENT_KEY_FILE.",
        ),
        setting(
            "OIDC_SCOPE",
            "openid profile email",
            "LIST",
            "Scopes to request, separated by spaces. Must contain openid.",
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
            "Resources to request access tokens for (RFC 8707): absolute URLs without a fragment. If there are several, the edge requests one token for all of them at sign-in, which not every provider issues. With OIDC_API_TOKENS=refresh, the sign-in request names all of them, and the session's own token is for the first.",
        ),
        setting(
            "OIDC_API_TOKENS",
            "exchange",
            "METHOD",
            "How the services request a token for a single API. One of: exchange, refresh. exchange trades the session's access token for one (RFC 8693). refresh names the API in a refresh (resource, RFC 8707). For refresh, OIDC_RESOURCE and OIDC_SCOPE must contain all APIs and scopes that routes request later. Set the same value for both services.",
        ),
        setting(
            "OIDC_ORGANIZATION",
            "",
            "TEXT",
            "Organization that every login must belong to. A value that starts with org_ must equal the claim org_id, any other value the claim org_name.",
        ),
        setting(
            "OIDC_RESPONSE_MODE",
            "query",
            "MODE",
            "How the provider returns the sign-in answer. One of: query, form_post. form_post needs an https base URL, or localhost.",
        ),
        setting(
            "OIDC_ID_TOKEN_SIGNING_ALG",
            "auto",
            "LIST",
            "Accepted signature algorithms of ID tokens, logout tokens and signed userinfo: auto, or names. auto accepts those of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA that the metadata list. With names, the services accept only these. HS256, HS384 and HS512 must be named here, and need a client secret of at least 32, 48 and 64 bytes. none is not allowed.",
        ),
        setting(
            "OIDC_ACCESS_TOKENS",
            "rfc9068",
            "FORMAT",
            "Format of the JWT access tokens that API clients send to routes with bearer. One of: rfc9068, entra, okta, cognito. entra is Microsoft Entra ID, cognito Amazon Cognito.",
        ),
        setting(
            "OIDC_AUTHORIZATION_PARAMS",
            "",
            "LIST",
            "Further parameters of authorization requests, as name=value. Parameters that the protocol sets are not allowed.",
        ),
        setting(
            "OIDC_PAR",
            "auto",
            "MODE",
            "Whether to push authorization requests (RFC 9126). One of: auto, require, off. auto pushes if the provider offers it. If the provider's answer does not follow RFC 9126 and its metadata do not require pushing, auto signs users in without pushing, and logs one warning.",
        ),
        setting(
            "OIDC_DPOP",
            "off",
            "MODE",
            "Binds tokens to OIDC_DPOP_KEY_FILE (DPoP, RFC 9449), so that a stolen token is useless. One of: on, off.",
        ),
        setting(
            "OIDC_DPOP_KEY_FILE",
            "",
            "FILE",
            "PEM private key that tokens are bound to. Required with OIDC_DPOP=on. PKCS#8: RSA, P-256, P-384, P-521 or Ed25519, of a kind that dpop_signing_alg_values_supported lists. Use the same file for every replica of both services.",
        ),
        setting(
            "OIDC_CLOCK_TOLERANCE",
            "60",
            "SECONDS",
            "Largest accepted difference between the provider's clock and the local one, 0 to 300 seconds.",
        ),
        setting(
            "OIDC_HTTP_TIMEOUT_MS",
            "5000",
            "MS",
            "Time limit of each exchange with the provider, and of a caller's wait for a refresh.",
        ),
        setting(
            "OIDC_CA_FILE",
            "",
            "FILE",
            "PEM certificates of the authorities to trust for the provider, instead of the public ones.",
        ),
        setting(
            PROVIDERS,
            "",
            "FILE",
            "Several providers instead of one (TOML file). Each provider has a [[provider]] table with an id and the settings above, in lower case without OIDC_. The file replaces all of those settings. Use the same file for both services. Read only at start.",
        ),
        Setting {
            name: "HTTPS_PROXY",
            default: "",
            value: "URL",
            secret: true,
            help: "Forward proxy for calls to the provider; also read as https_proxy. Example: http://user:password@proxy.example:3128. Loopback is reached directly.",
        },
        setting(
            "NO_PROXY",
            "",
            "LIST",
            "Hosts to reach without HTTPS_PROXY; also read as no_proxy. A domain, with or without a leading dot, includes its subdomains. Addresses, networks such as 10.0.0.0/8, and * for all hosts are also valid.",
        ),
    ],
};
