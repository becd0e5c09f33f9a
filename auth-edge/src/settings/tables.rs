//! Names, defaults and manual of every setting. Names are fixed: people script against them.

use chassis::process_topic;
use chassis::settings::{Service, Setting, Topic, setting};

/// The program and all its settings.
pub static SERVICE: Service = Service {
    name: "auth-edge",
    prefix: "EDGE_",
    shared_prefix: Some(provider_settings::PREFIX),
    about: "Signs people in at an OpenID provider, keeps their session in a cookie, and guards what lies behind.",
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

static ADDRESSES: Topic = Topic {
    title: "Addresses",
    settings: &[
        setting(
            "EDGE_LISTEN",
            "127.0.0.1:3000",
            "ADDRESS",
            "Where browsers are answered: HTTP/1.1, HTTP/2 and gRPC-Web on one port. [::]:3000 is every address of both families; 0.0.0.0:3000 where there is no IPv6.",
        ),
        setting(
            "EDGE_BASE_URL",
            "",
            "URL",
            "The product's address as browsers see it. Required. Its scheme decides whether cookies are Secure.",
        ),
        setting(
            "EDGE_HOSTS",
            "",
            "LIST",
            "Further hosts that browsers know the product by, such as wiki.example.com, each with a port where it is another than that of EDGE_BASE_URL; the scheme is the same. Each is a site of its own: people sign in there and come back there. Register its callback with the provider.",
        ),
        setting(
            "EDGE_TLS_CERT_FILE",
            "",
            "FILE",
            "PEM certificate chain for TLS on EDGE_LISTEN; re-read when it changes.",
        ),
        setting(
            "EDGE_TLS_KEY_FILE",
            "",
            "FILE",
            "PEM private key belonging to EDGE_TLS_CERT_FILE.",
        ),
        setting(
            "EDGE_TRUSTED_PROXIES",
            "",
            "LIST",
            "Networks (CIDR) of the proxies whose X-Forwarded-* headers are believed. None by default.",
        ),
    ],
};

static COOKIES: Topic = Topic {
    title: "Cookies",
    settings: &[
        Setting {
            name: "EDGE_SECRET",
            default: "",
            value: "LIST",
            secret: true,
            help: "Secrets that keys for cookies are derived from, each at least 8 characters (32 or more are wise). The first signs and seals, all verify. To change it: append the new one everywhere, move it to the front, drop the old one after the longest lifetime of a session. Required.",
        },
        setting(
            "EDGE_COOKIE_NAME",
            "session",
            "NAME",
            "Base name of the session cookie; __Host- (https) or __Secure- (https with a domain) is put before it.",
        ),
        setting(
            "EDGE_COOKIE_DOMAIN",
            "",
            "DOMAIN",
            "Domain attribute of the session cookie, to share it with sub-domains. Needs https.",
        ),
        setting(
            "EDGE_COOKIE_SAME_SITE",
            "lax",
            "lax|strict|none",
            "SameSite attribute of the session cookie; none needs https.",
        ),
        setting(
            "EDGE_COOKIE_ROTATION",
            "0",
            "SECONDS",
            "How often the session cookie of a browser that binds no session is given anew, so that a copy of an older one ends the session: 120 to 86400; 0 for never.",
        ),
        setting(
            "EDGE_DEVICE_BOUND",
            "offer",
            "off|offer|require[:SECONDS]",
            "Whether browsers bind sessions to a key of their device, so that copied cookies expire: offer leaves other browsers as they are, require refuses them. A browser proves that it holds the key a little before each SECONDS are over, 600 unless they are given (offer:900), from 10 to 3600. Needs https and no EDGE_COOKIE_DOMAIN; offer is off without.",
        ),
    ],
};

static SIGN_IN: Topic = Topic {
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
            "Query parameters of the login route that the edge passes to the provider, as NAME or NAME=PATTERN; none switches them off. A list replaces the default. In a pattern | separates alternatives and * stands for any characters: kc_idp_hint=google|github, domain_hint=*.example.com. Parameters of the protocol (client_id, scope, state, request, ...) are refused. OIDC_AUDIENCE and OIDC_ORGANIZATION, where set, win over a query.",
        ),
        setting(
            "EDGE_TRANSACTION_DURATION",
            "3600",
            "SECONDS",
            "How long somebody may take to sign in.",
        ),
        setting(
            "EDGE_USERINFO_AT_LOGIN",
            "auto",
            "auto|always|never",
            "When sign-in reads the userinfo endpoint: auto where the granted scope promises claims (profile, email, address, phone) of which the ID token has none, and where that fails the person is signed in without them; always, and where that fails nobody is signed in; or never.",
        ),
        setting(
            "EDGE_PROFILE_REFETCH",
            "on-request",
            "never|on-request|always",
            "When /api/auth/me reads userinfo anew: never, with ?refetch=true, or each time.",
        ),
        setting(
            "EDGE_STORE_ID_TOKEN",
            "true",
            "BOOL",
            "Whether sessions keep the ID token, as a hint for signing out at the provider.",
        ),
        setting(
            "EDGE_CLAIM_FILTER",
            "aud,iss,iat,exp,nbf,nonce,azp,auth_time,s_hash,at_hash,c_hash,jti,sid,typ,scope,client_id",
            "LIST",
            "Claims left out of the user; sub always stays.",
        ),
        setting(
            "EDGE_RATE_LIMIT_LOGIN",
            "60",
            "PER MINUTE",
            "Logins, and as many callbacks without a pending sign-in and as many front-channel logouts, per minute and client address. 0 switches the limit off.",
        ),
        setting(
            "EDGE_ACCESS_TOKEN_ENDPOINT",
            "false",
            "BOOL",
            "Whether /api/auth/access-token hands the access token to same-origin scripts. Better left off.",
        ),
    ],
};

static SIGN_OUT: Topic = Topic {
    title: "Sign-out",
    settings: &[
        setting(
            "EDGE_POST_LOGOUT_REDIRECT",
            "",
            "URL",
            "Where a visitor lands after signing out: a path of ours or an absolute URL, registered with the provider as the post-logout redirect URI. The base URL by default, with its closing slash: https://YOUR-HOST/.",
        ),
        setting(
            "EDGE_LOGOUT_RETURN_TO_ALLOWED",
            "",
            "LIST",
            "Absolute URLs outside our own origin that returnTo may name at sign-out; each is compared as a whole.",
        ),
        setting(
            "EDGE_IDP_LOGOUT",
            "oidc",
            "oidc|auth0|cognito|off|TEMPLATE",
            "Whether signing out also ends the provider's session: oidc by RP-initiated logout, auth0 by Auth0's /v2/logout, cognito by Cognito's parameters, off not at all. Or a template for an endpoint with other parameters: {end_session_endpoint}?TargetResource={return_to}. It begins with an https URL, with {issuer} or with {end_session_endpoint}; values of its parameters may hold {client_id} and {return_to}.",
        ),
        setting(
            "EDGE_FRONTCHANNEL_LOGOUT",
            "false",
            "BOOL",
            "Whether /api/auth/frontchannel-logout exists.",
        ),
    ],
};

static PAGES: Topic = Topic {
    title: "Pages",
    settings: &[setting(
        "EDGE_PAGES_DIR",
        "",
        "DIRECTORY",
        "A folder with the look of the edge's own pages (errors, questions): style.css, a style sheet after the built-in one, at most 64 KiB; logo.svg, logo.png, logo.jpg or logo.webp for the top, at most 256 KiB. Read at the start. docs/look.md has an example.",
    )],
};

static GATEWAY: Topic = Topic {
    title: "Gateway",
    settings: &[
        setting(
            "EDGE_ROUTES",
            "",
            "FILE",
            "The route table (TOML): which paths are guarded, how, and where they are proxied. Re-read when it changes.",
        ),
        setting(
            "EDGE_CHECK_AUTHORIZATION",
            "false",
            "BOOL",
            "Whether forward auth answers with the access token: to Envoy (EDGE_EXT_AUTHZ_LISTEN), and at /api/auth/check to EDGE_TRUSTED_PROXIES that say what was asked for. One of the two has to be set.",
        ),
        setting(
            "EDGE_CHECK_HEAD_BYTES",
            "4096",
            "BYTES",
            "The longest head of an answer of /api/auth/check. What has no room is left out, the longest header first, and the log names it. 4096 is what nginx reads by default (proxy_buffer_size): raise both together. Envoy's gRPC has no such limit.",
        ),
        setting(
            "EDGE_EXT_AUTHZ_LISTEN",
            "off",
            "ADDRESS",
            "Where Envoy's external authorization is answered by gRPC, with TLS if EDGE_TLS_CERT_FILE is set; off switches it off. Keep it inside.",
        ),
        setting(
            "EDGE_UPSTREAM_JWT_KEY_FILE",
            "",
            "FILE",
            "PEM P-256 keys (PKCS#8) that sign assertions for routes with upstream_jwt. The first signs, all are published at /.well-known/vestibule/jwks.json. Re-read when it changes.",
        ),
        setting(
            "EDGE_UPSTREAM_CA_FILE",
            "",
            "FILE",
            "PEM authorities that certificates of https upstreams may come from, besides the public ones.",
        ),
        setting(
            "EDGE_UPSTREAM_TIMEOUT",
            "60",
            "SECONDS",
            "Time until an upstream's answer begins, counted from the last byte of the request.",
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
            "Addresses of the session service (http:// or https://). Each name is resolved again and again and all its addresses are used.",
        ),
        setting(
            "EDGE_SESSION_SVC_CA_FILE",
            "",
            "FILE",
            "PEM authority that its certificate has to come from.",
        ),
        setting(
            "EDGE_SESSION_SVC_CERT_FILE",
            "",
            "FILE",
            "PEM certificate by which the edge shows who it is.",
        ),
        setting(
            "EDGE_SESSION_SVC_KEY_FILE",
            "",
            "FILE",
            "PEM private key belonging to EDGE_SESSION_SVC_CERT_FILE.",
        ),
        setting(
            "EDGE_SESSION_CACHE_SECS",
            "5",
            "SECONDS",
            "How long a session is remembered, at most 60. It is used only while every replica of the session service is heard, which tells at once when a session ends or changes. 0 asks each time.",
        ),
    ],
};

static ANALYTICS: Topic = Topic {
    title: "Product analytics",
    settings: &[
        setting(
            "EDGE_ANALYTICS_HOST",
            "",
            "URL",
            "Scheme and host of a PostHog-compatible server. With it the web app asks people whether it may record how its pages are used, and sends that through /ingest. Off without it: no request, no code.",
        ),
        setting(
            "EDGE_ANALYTICS_TOKEN",
            "",
            "TOKEN",
            "The project's token there, which browsers see. Required with EDGE_ANALYTICS_HOST.",
        ),
    ],
};
