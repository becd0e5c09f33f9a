//! The name, default and manual of every setting. Names do not change: scripts depend on them.

use chassis::process_topic;
use chassis::settings::{Service, Setting, Topic, setting};

/// The program and all its settings.
pub static SERVICE: Service = Service {
    name: "auth-edge",
    prefixes: &["EDGE_"],
    shared_prefix: Some(provider_settings::PREFIX),
    about: "Signs users in at an OpenID provider, keeps their session in a cookie, and guards the applications behind it.",
    first_settings: &[
        "EDGE_LISTEN",
        "EDGE_BASE_URL",
        "EDGE_TRUSTED_PROXIES",
        "EDGE_ADMIN_LISTEN",
        "EDGE_SECRET",
        "EDGE_ROUTES",
        "EDGE_SESSION_SVC_URL",
        "OIDC_ISSUER_URL",
        "OIDC_CLIENT_ID",
        "OIDC_CLIENT_SECRET",
        "OIDC_SCOPE",
    ],
    fixed: &[],
    topics: &[
        &ADDRESSES,
        &PROCESS,
        &provider_settings::TOPIC,
        &COOKIES,
        &SIGN_IN,
        &SIGN_OUT,
        &PAGES,
        &GATEWAY,
        &SESSION_SERVICE,
        &ANALYTICS,
    ],
};

static PROCESS: Topic = process_topic!("EDGE_", "127.0.0.1:9300");

/// The addresses of the edge.
pub static ADDRESSES: Topic = Topic {
    title: "Addresses",
    settings: &[
        setting(
            "EDGE_LISTEN",
            "127.0.0.1:3000",
            "ADDRESS",
            "Address for browsers: HTTP/1.1, HTTP/2 and gRPC-Web on one port. [::]:3000 listens on every IPv4 and IPv6 address. Without IPv6, use 0.0.0.0:3000.",
        ),
        setting(
            "EDGE_BASE_URL",
            "",
            "URL",
            "Address of the product as browsers see it, such as https://app.example.com. Required. With https, the edge's cookies are Secure.",
        ),
        setting(
            "EDGE_HOSTS",
            "",
            "LIST",
            "Further hosts of the product, such as wiki.example.com. Add a port if it differs from that of EDGE_BASE_URL; the scheme is the same. Users sign in on each host separately and return to it. Register the callback of each host with the provider.",
        ),
        setting(
            "EDGE_TLS_CERT_FILE",
            "",
            "FILE",
            "PEM certificate chain for TLS on EDGE_LISTEN. Needs EDGE_TLS_KEY_FILE. Read again when it changes.",
        ),
        setting(
            "EDGE_TLS_KEY_FILE",
            "",
            "FILE",
            "PEM private key that belongs to EDGE_TLS_CERT_FILE.",
        ),
        setting(
            "EDGE_TRUSTED_PROXIES",
            "",
            "LIST",
            "Networks (CIDR) or addresses of proxies whose X-Forwarded-* headers the edge trusts. By default it trusts none.",
        ),
    ],
};

/// The cookies.
pub static COOKIES: Topic = Topic {
    title: "Cookies",
    settings: &[
        Setting {
            name: "EDGE_SECRET",
            default: "",
            value: "LIST",
            secret: true,
            help: "Secrets from which the edge derives its cookie keys, each at least 8 characters. Required. Use 32 characters or more. The first signs and seals, all verify. To change it, append the new secret on every replica, then move it to the front. Remove the old one after the longest lifetime of a session.",
        },
        setting(
            "EDGE_COOKIE_NAME",
            "session",
            "NAME",
            "Base name of the session cookie. The edge adds the prefix __Host- (https) or __Secure- (https with EDGE_COOKIE_DOMAIN).",
        ),
        setting(
            "EDGE_COOKIE_DOMAIN",
            "",
            "DOMAIN",
            "Domain attribute of the session cookie, to share it with subdomains. Needs https.",
        ),
        setting(
            "EDGE_COOKIE_SAME_SITE",
            "lax",
            "MODE",
            "SameSite attribute of the session cookie. One of: lax, strict, none. none needs https.",
        ),
        setting(
            "EDGE_FRAME_ANCESTORS",
            "",
            "LIST",
            "Origins of other sites that embed the product in a frame, such as https://portal.example.com. The cookies are then SameSite=None and Partitioned, so each of these sites has its own session. A user signs in in a pop-up window. Needs https. Excludes EDGE_DEVICE_BOUND=require and every other EDGE_COOKIE_SAME_SITE than none. docs/frames.md has an example.",
        ),
        setting(
            "EDGE_COOKIE_ROTATION",
            "0",
            "SECONDS",
            "How often the edge replaces the session cookie of browsers without device binding. Allowed are 120 to 86400 seconds, or 0 for never. If a client sends a copy of an older cookie, the edge ends the session.",
        ),
        setting(
            "EDGE_DEVICE_BOUND",
            "offer",
            "MODE",
            "Binds sessions to a key of the browser's device, so that copied cookies expire. off binds no session. offer binds a session if the browser can, and accepts other browsers. require rejects other browsers. offer:900 and require:900 set the seconds between two proofs of the key: 10 to 3600, by default 600. Needs https, no EDGE_COOKIE_DOMAIN and no EDGE_FRAME_ANCESTORS; otherwise offer has no effect.",
        ),
    ],
};

/// Sign-in and profile.
pub static SIGN_IN: Topic = Topic {
    title: "Sign-in and profile",
    settings: &[
        setting(
            "EDGE_LOGIN_PATH",
            "/api/auth/login",
            "PATH",
            "Path of the login route.",
        ),
        setting(
            "EDGE_LOGIN_PARAMETERS",
            "organization,invitation,login_hint,prompt,ui_locales,acr_values,max_age,screen_hint",
            "LIST",
            "Query parameters of the login route that the edge passes to the provider. The value none passes no parameter. Each is NAME or NAME=PATTERN. A list replaces the default. In a pattern, | separates alternatives and * matches any characters: kc_idp_hint=google|github, domain_hint=*.example.com. Protocol parameters (client_id, scope, state, request, ...) are not allowed. OIDC_AUDIENCE and OIDC_ORGANIZATION, if set, override the query.",
        ),
        setting(
            "EDGE_TRANSACTION_DURATION",
            "3600",
            "SECONDS",
            "Longest time that a user may take to sign in, at most 86400 seconds.",
        ),
        setting(
            "EDGE_USERINFO_AT_LOGIN",
            "auto",
            "MODE",
            "When sign-in reads the userinfo endpoint. One of: auto, always, never. auto reads it if a granted scope (profile, email, address, phone) promises claims and the ID token has none of them. If auto cannot read userinfo, it signs the user in without these claims. If always cannot read it, the sign-in fails.",
        ),
        setting(
            "EDGE_PROFILE_REFETCH",
            "on-request",
            "MODE",
            "When /api/auth/me reads userinfo again. One of: never, on-request, always. on-request reads it for ?refetch=true.",
        ),
        setting(
            "EDGE_STORE_ID_TOKEN",
            "true",
            "BOOL",
            "Keeps the ID token in the session, as a hint for sign-out at the provider.",
        ),
        setting(
            "EDGE_CLAIM_FILTER",
            "aud,iss,iat,exp,nbf,nonce,azp,auth_time,s_hash,at_hash,c_hash,jti,sid,typ,scope,client_id",
            "LIST",
            "Claims that the edge removes from the user. sub cannot be removed.",
        ),
        setting(
            "EDGE_RATE_LIMIT_LOGIN",
            "60",
            "COUNT",
            "Logins per minute and client address; 0 for no limit. Callbacks without a pending sign-in and front-channel logouts each have a limit of the same size.",
        ),
        setting(
            "EDGE_ACCESS_TOKEN_ENDPOINT",
            "false",
            "BOOL",
            "Lets same-origin scripts read the access token at /api/auth/access-token. Leave it off if you can.",
        ),
    ],
};

/// Sign-out.
pub static SIGN_OUT: Topic = Topic {
    title: "Sign-out",
    settings: &[
        setting(
            "EDGE_POST_LOGOUT_REDIRECT",
            "",
            "URL",
            "Where users land after sign-out: a path of the edge or an absolute URL. Register it with the provider as the post-logout redirect URI. The default is the base URL with its final slash: https://YOUR-HOST/.",
        ),
        setting(
            "EDGE_LOGOUT_RETURN_TO_ALLOWED",
            "",
            "LIST",
            "Absolute URLs outside the edge's origin that returnTo may name at sign-out. The whole URL must match.",
        ),
        setting(
            "EDGE_IDP_LOGOUT",
            "oidc",
            "MODE",
            "Whether sign-out also ends the provider's session, and how. oidc uses RP-initiated logout, auth0 Auth0's /v2/logout, cognito Cognito's parameters; off leaves the session alone. For other providers, give a template: {end_session_endpoint}?TargetResource={return_to}. A template begins with an https URL, {issuer} or {end_session_endpoint}. Its parameter values may contain {client_id} and {return_to}.",
        ),
        setting(
            "EDGE_FRONTCHANNEL_LOGOUT",
            "false",
            "BOOL",
            "Serves /api/auth/frontchannel-logout, where the provider can end sessions through the browser.",
        ),
    ],
};

/// The edge's own pages.
pub static PAGES: Topic = Topic {
    title: "Pages",
    settings: &[setting(
        "EDGE_PAGES_DIR",
        "",
        "DIRECTORY",
        "Folder with a style and a logo for the edge's own pages (errors, questions). style.css, at most 64 KiB, is loaded after the built-in style sheet. logo.svg, logo.png, logo.jpg or logo.webp, at most 256 KiB, is shown at the top of each page. Read only at start. docs/look.md has an example.",
    )],
};

/// The gateway.
pub static GATEWAY: Topic = Topic {
    title: "Gateway",
    settings: &[
        setting(
            "EDGE_ROUTES",
            "",
            "FILE",
            "Route table (TOML): which paths are guarded, how, and where they lead. Read again when it changes. Without it, the edge proxies no path.",
        ),
        setting(
            "EDGE_CHECK_AUTHORIZATION",
            "false",
            "BOOL",
            "Adds the access token to forward auth answers. Envoy receives it over EDGE_EXT_AUTHZ_LISTEN. A proxy of EDGE_TRUSTED_PROXIES receives it at /api/auth/check if it sends the address of the original request. Set at least one of these two settings.",
        ),
        setting(
            "EDGE_CHECK_HEAD_BYTES",
            "4096",
            "BYTES",
            "Longest head of an answer of /api/auth/check, in bytes: 2048 to 65536. If headers do not fit, the edge omits the longest first and logs its name. The default is what nginx reads (proxy_buffer_size); raise both together. Envoy's gRPC has no such limit.",
        ),
        setting(
            "EDGE_EXT_AUTHZ_LISTEN",
            "off",
            "ADDRESS",
            "Address for Envoy's external authorization over gRPC, or off. Uses TLS if EDGE_TLS_CERT_FILE is set. Do not expose it to the public.",
        ),
        setting(
            "EDGE_ALIASES",
            "none",
            "PRODUCT",
            "Also answers the addresses of another product, so that proxies and applications keep their configuration. One of: none, oauth2-proxy. oauth2-proxy adds /oauth2/start, sign_in, sign_out, auth and userinfo. The callback is then /oauth2/callback. Applications receive X-Forwarded-User, -Email, -Groups and -Preferred-Username from routes without headers of their own, and X-Auth-Request-User and so on from checks.",
        ),
        setting(
            "EDGE_UPSTREAM_JWT_KEY_FILE",
            "",
            "FILE",
            "PEM P-256 keys (PKCS#8) that sign assertions for routes with upstream_jwt. The first signs. The edge publishes all at /.well-known/vestibule/jwks.json. Read again when it changes.",
        ),
        setting(
            "EDGE_UPSTREAM_CA_FILE",
            "",
            "FILE",
            "PEM certificates of authorities to trust for https upstreams, in addition to the public ones.",
        ),
        setting(
            "EDGE_UPSTREAM_TIMEOUT",
            "60",
            "SECONDS",
            "Longest time from the last byte of a request to the start of the upstream's answer.",
        ),
    ],
};

static SESSION_SERVICE: Topic = Topic {
    title: "Session service",
    settings: &[
        setting(
            "EDGE_SESSION_SVC_URL",
            "http://127.0.0.1:50051",
            "LIST",
            "Addresses of the session service (http:// or https://). The edge resolves each name regularly and uses all its addresses.",
        ),
        setting(
            "EDGE_SESSION_SVC_CA_FILE",
            "",
            "FILE",
            "PEM certificates of the authority to trust for the session service. Needed for https.",
        ),
        setting(
            "EDGE_SESSION_SVC_CERT_FILE",
            "",
            "FILE",
            "PEM certificate chain that identifies the edge to the session service (mutual TLS).",
        ),
        setting(
            "EDGE_SESSION_SVC_KEY_FILE",
            "",
            "FILE",
            "PEM private key that belongs to EDGE_SESSION_SVC_CERT_FILE.",
        ),
        setting(
            "EDGE_SESSION_CACHE_SECS",
            "5",
            "SECONDS",
            "How long the edge caches a session, at most 60; 0 turns the cache off. The edge uses the cache only while it receives heartbeats from every replica of the session service. These replicas report at once when a session ends or changes.",
        ),
    ],
};

/// Product analytics.
pub static ANALYTICS: Topic = Topic {
    title: "Product analytics",
    settings: &[
        setting(
            "EDGE_ANALYTICS_HOST",
            "",
            "URL",
            "Scheme and host of a PostHog-compatible server; without it, analytics is off. With it, the web app asks users whether it may record page usage, and sends the records through /ingest. If analytics is off, pages load no analytics code and send nothing.",
        ),
        setting(
            "EDGE_ANALYTICS_TOKEN",
            "",
            "TOKEN",
            "Project token for EDGE_ANALYTICS_HOST, which browsers can see. Required with it.",
        ),
    ],
};
