//! Names, defaults and manual of every setting. Names are fixed: people script against them.

use chassis::process_topic;
use chassis::settings::{Service, Setting, Topic, setting};

/// The program and all its settings.
pub static SERVICE: Service = Service {
    name: "auth-edge",
    prefix: "EDGE_",
    about: "Signs people in at an OpenID provider, keeps their session in a cookie, and guards what lies behind.",
    topics: &[
        &ADDRESSES,
        &PROCESS,
        &provider_settings::TOPIC,
        &COOKIES,
        &SIGN_IN,
        &SIGN_OUT,
        &GATEWAY,
        &SESSION_SERVICE,
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
            "Where browsers are answered: HTTP/1.1, HTTP/2 and gRPC-Web on one port.",
        ),
        setting(
            "EDGE_BASE_URL",
            "",
            "URL",
            "The product's address as browsers see it. Required. Its scheme decides whether cookies are Secure.",
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
            help: "Secrets that keys for cookies are derived from, each at least 8 characters (32 or more are wise). The first signs and seals, all verify, so put a new one first and drop the old one later. Required.",
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
            "EDGE_COOKIE_TRANSIENT",
            "false",
            "BOOL",
            "Whether the session cookie ends with the browser instead of with the session.",
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
            "EDGE_CALLBACK_PATH",
            "/api/auth/callback",
            "PATH",
            "Path of the callback route, as registered with the provider.",
        ),
        setting(
            "EDGE_LOGIN_PARAMETERS",
            "organization,invitation,login_hint,prompt,ui_locales,acr_values,max_age,screen_hint",
            "LIST",
            "Query parameters of the login route that are passed to the provider: these or fewer; none switches them off.",
        ),
        setting(
            "EDGE_TRANSACTION_DURATION",
            "3600",
            "SECONDS",
            "How long somebody may take to sign in.",
        ),
        setting(
            "EDGE_USERINFO_AT_LOGIN",
            "false",
            "BOOL",
            "Whether claims from the userinfo endpoint are added at sign-in.",
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
            "aud,iss,iat,exp,nbf,nonce,azp,auth_time,s_hash,at_hash,c_hash",
            "LIST",
            "Claims left out of the user; sub always stays.",
        ),
        setting(
            "EDGE_RATE_LIMIT_LOGIN",
            "60",
            "PER MINUTE",
            "Logins, and as many callbacks, per minute and client address. 0 switches the limit off.",
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
            "Where a visitor lands after signing out: a path of ours or an absolute URL, as registered with the provider. The base URL by default.",
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
            "oidc|auth0|off",
            "Whether signing out also ends the provider's session: by RP-initiated logout, by Auth0's /v2/logout, or not.",
        ),
        setting(
            "EDGE_FRONTCHANNEL_LOGOUT",
            "false",
            "BOOL",
            "Whether /api/auth/frontchannel-logout exists.",
        ),
    ],
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
            "Whether forward auth (/api/auth/check) answers with the access token.",
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
    ],
};
