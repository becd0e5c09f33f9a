//! Reads and validates the settings. Every mistake is reported at once.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use chassis::settings::{Reader, Zero};
use chassis::tls;
use ipnet::IpNet;
use provider_settings::checkup::UserinfoReading;

use super::EdgeSettings;
use super::addresses::{allowed, base_url, post_logout_redirect, provider_logout};
use super::cookies::{cookie, cookie_rotation, device_bound, frame_ancestors, secrets};
use super::paths::is_plain_path;
use super::upstreams::{BODY_SILENCE, assertions, requests, routes, upstreams};
use super::{analytics, hosts, look, providers, route_warnings, session_service};
use crate::browser::profile::refetch::ProfileRefetch;
use crate::route_table::file::RouteFileContext;
use crate::sessions::device_binding::DeviceBound;
use crate::sign_in::SignInSettings;
use crate::values::allowed_parameters::AllowedParameter;
use crate::values::forwarded::TrustedProxies;
use crate::values::reserved::is_fixed;

/// Longest sign-in: the state in the cookie must expire soon.
const MAX_TRANSACTION_SECS: u64 = 86_400;

/// Longest cache time of a session: the session service learns of a session's use only after it.
const MAX_SESSION_CACHE_SECS: u64 = 60;

/// Limits of the head of forward auth answers, in bytes: at least what the identity and a cookie need, at most
/// the largest buffer of common proxies.
const CHECK_HEAD_BYTES: RangeInclusive<usize> = 2_048..=65_536;

/// Reads all settings of the edge.
pub fn read(reader: &mut Reader<'_>) -> EdgeSettings {
    let base_url = base_url(reader);
    let secure = base_url.scheme() == "https";
    let providers = provider_settings::read(reader);
    let login_path = auth_path(reader, "EDGE_LOGIN_PATH");
    providers::check(reader, &providers, &base_url, &login_path);
    let hosts = hosts::hosts(reader, &base_url, &providers);
    let ext_authz_listen = reader.socket_addr("EDGE_EXT_AUTHZ_LISTEN");
    let trusted_proxies = trusted_proxies(reader);
    let check_authorization = reader.flag("EDGE_CHECK_AUTHORIZATION");
    if check_authorization && trusted_proxies.is_empty() && ext_authz_listen.is_none() {
        reader.wrong(
            "EDGE_CHECK_AUTHORIZATION",
            "needs EDGE_TRUSTED_PROXIES or EDGE_EXT_AUTHZ_LISTEN: only these proxies receive the access token",
        );
    }
    let frame_ancestors = frame_ancestors(reader, secure);
    let cookie = cookie(reader, secure, !frame_ancestors.is_empty());
    let device_bound = device_bound(reader, &cookie);
    let aliases = reader.choice("EDGE_ALIASES", &[("none", false), ("oauth2-proxy", true)], false);
    let around_routes = RouteFileContext {
        signs: reader.path("EDGE_UPSTREAM_JWT_KEY_FILE").is_some(),
        binds: device_bound.is_some_and(|bound| bound.mode != DeviceBound::Off),
        hosts: hosts::of_rules(&base_url, &hosts, &providers),
        connections: providers.ids(),
        own_paths: providers::own_paths(&providers, &login_path, aliases),
        aliases,
    };
    let settings = EdgeSettings {
        listen: listen(reader),
        ext_authz_listen,
        tls: tls::read_pair(reader, "EDGE_TLS_CERT_FILE", "EDGE_TLS_KEY_FILE"),
        secrets: secrets(reader),
        secrets_file: reader.secret_file("EDGE_SECRET"),
        session_service: session_service::read(reader),
        session_cache: session_cache(reader),
        routes_file: reader.path("EDGE_ROUTES"),
        routes: routes(reader, &around_routes),
        around_routes,
        assertions: assertions(reader),
        upstreams: upstreams(reader),
        max_concurrent_requests: requests(),
        body_silence: BODY_SILENCE,
        cookie,
        frame_ancestors,
        device_bound,
        cookie_rotation: cookie_rotation(reader),
        sign_in: SignInSettings {
            post_logout_redirect: post_logout_redirect(reader, &base_url),
            login_path,
            login_parameters: login_parameters(reader),
            logout_return_to_allowed: allowed(reader),
            userinfo_at_login: userinfo_at_login(reader),
            store_id_token: reader.flag("EDGE_STORE_ID_TOKEN"),
            claim_filter: claim_filter(reader),
            transaction_duration_secs: transaction_duration(reader),
            frontchannel_logout: reader.flag("EDGE_FRONTCHANNEL_LOGOUT"),
            provider_logout: provider_logout(reader),
        },
        profile_refetch: reader.choice(
            "EDGE_PROFILE_REFETCH",
            &[
                ("never", ProfileRefetch::Never),
                ("on-request", ProfileRefetch::OnRequest),
                ("always", ProfileRefetch::Always),
            ],
            ProfileRefetch::OnRequest,
        ),
        trusted_proxies,
        access_token_endpoint: reader.flag("EDGE_ACCESS_TOKEN_ENDPOINT"),
        check_authorization,
        check_head_bytes: check_head_bytes(reader),
        rate_limit_login: u64::try_from(reader.count("EDGE_RATE_LIMIT_LOGIN")).unwrap_or(u64::MAX),
        look: look::read(reader),
        aliases,
        analytics: analytics::read(reader),
        providers,
        base_url,
        hosts,
    };
    route_warnings::warn(reader, &settings.routes);
    settings
}

fn check_head_bytes(reader: &mut Reader) -> usize {
    const NAME: &str = "EDGE_CHECK_HEAD_BYTES";
    let bytes = reader.count(NAME);
    if !CHECK_HEAD_BYTES.contains(&bytes) {
        let (least, most) = (CHECK_HEAD_BYTES.start(), CHECK_HEAD_BYTES.end());
        reader.wrong(NAME, format!("must be between {least} and {most}"));
    }
    bytes
}

fn userinfo_at_login(reader: &mut Reader) -> UserinfoReading {
    const NAME: &str = "EDGE_USERINFO_AT_LOGIN";
    let choices = [
        ("auto", UserinfoReading::Auto),
        ("always", UserinfoReading::Always),
        ("never", UserinfoReading::Never),
    ];
    reader.choice(NAME, &choices, UserinfoReading::Auto)
}

fn session_cache(reader: &mut Reader) -> Duration {
    let secs = reader.secs("EDGE_SESSION_CACHE_SECS", Zero::Allowed);
    if secs > MAX_SESSION_CACHE_SECS {
        reader.wrong(
            "EDGE_SESSION_CACHE_SECS",
            "must be at most 60: the session service learns of a session's use only after this time",
        );
    }
    Duration::from_secs(secs)
}

fn listen(reader: &mut Reader) -> SocketAddr {
    let off = reader.text("EDGE_LISTEN").eq_ignore_ascii_case("off");
    if off {
        reader.wrong(
            "EDGE_LISTEN",
            "must be an address and a port: without them the edge has no purpose",
        );
    }
    reader
        .socket_addr("EDGE_LISTEN")
        .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn auth_path(reader: &mut Reader, name: &str) -> String {
    let path = reader.required_text(name);
    if !is_plain_path(&path) {
        reader.wrong(name, "must be a plain path such as /api/auth/login");
    } else if is_fixed(&path) {
        reader.wrong(name, format!("{path:?} is another route of the edge"));
    }
    path
}

fn login_parameters(reader: &mut Reader) -> Vec<AllowedParameter> {
    const NAME: &str = "EDGE_LOGIN_PARAMETERS";
    let texts = reader.list(NAME);
    if texts == ["none"] {
        return Vec::new();
    }
    let mut allowed: Vec<AllowedParameter> = Vec::new();
    for text in texts {
        match AllowedParameter::parse(&text) {
            Ok(one) if allowed.iter().any(|known| known.name == one.name) => {
                reader.wrong(NAME, format!("names {:?} twice", one.name));
            }
            Ok(one) => allowed.push(one),
            Err(problem) => reader.wrong(NAME, problem),
        }
    }
    allowed
}

fn claim_filter(reader: &mut Reader) -> Vec<String> {
    let names = reader.list("EDGE_CLAIM_FILTER");
    if names.iter().any(|name| name == "sub") {
        reader.wrong("EDGE_CLAIM_FILTER", "must not contain sub: it names the user");
    }
    names
}

fn transaction_duration(reader: &mut Reader) -> u64 {
    let secs = reader.secs("EDGE_TRANSACTION_DURATION", Zero::Refused);
    if secs > MAX_TRANSACTION_SECS && reader.is_given("EDGE_TRANSACTION_DURATION") {
        reader.wrong("EDGE_TRANSACTION_DURATION", "must be at most 86400 seconds");
    }
    secs
}

fn trusted_proxies(reader: &mut Reader) -> Vec<IpNet> {
    let entries = reader.list("EDGE_TRUSTED_PROXIES");
    let networks: Vec<IpNet> = entries
        .iter()
        .filter_map(|entry| TrustedProxies::parse_network(entry))
        .collect();
    if networks.len() != entries.len() {
        reader.wrong(
            "EDGE_TRUSTED_PROXIES",
            "must contain only networks such as 10.0.0.0/8 or single addresses, not the whole internet",
        );
    }
    networks
}

#[cfg(test)]
mod tests;
