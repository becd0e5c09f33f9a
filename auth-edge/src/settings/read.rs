//! Reads and judges the settings; every rule of behaviour, section 9, that is the edge's own.

use std::net::SocketAddr;
use std::path::PathBuf;

use chassis::settings::{Reader, Zero};
use ipnet::IpNet;
use oidc::PROTOCOL_CLAIMS;
use provider_settings::CredentialFiles;
use url::Url;

use super::{EdgeSettings, ProfileRefetch, ProviderLogout};
use crate::gateway::route_file;
use crate::gateway::route_table::RouteTable;
use crate::cookies::{CookieSettings, SameSite};
use crate::protect::forwarded::TrustedProxies;
use crate::return_to::ReturnTo;
use crate::sign_in::login::ALLOWED_PARAMETERS;

/// Shortest secret accepted, in characters.
const MIN_SECRET_CHARS: usize = 8;
/// Secrets shorter than this get a warning.
const WISE_SECRET_CHARS: usize = 32;
/// Longest cookie base name: the cookie stays within 120 bytes with prefix, ID and signature.
const MAX_COOKIE_NAME: usize = 32;
/// Longest transaction: the cookie's state must not become a way to keep something for long.
const MAX_TRANSACTION_SECS: u64 = 86_400;

/// Reads all settings of the edge.
pub fn read(reader: &mut Reader<'_>) -> EdgeSettings {
    let base_url = base_url(reader);
    let secure = base_url.scheme() == "https";
    let provider = provider_settings::read(reader);
    if !secure && provider.response_mode == oidc::ResponseMode::FormPost && !is_localhost(&base_url) {
        reader.wrong("OIDC_RESPONSE_MODE", "form_post needs an https EDGE_BASE_URL, or one on localhost");
    }
    let login_path = auth_path(reader, "EDGE_LOGIN_PATH");
    let callback_path = auth_path(reader, "EDGE_CALLBACK_PATH");
    if login_path == callback_path {
        reader.wrong("EDGE_CALLBACK_PATH", "must differ from EDGE_LOGIN_PATH");
    }
    EdgeSettings {
        listen: listen(reader),
        tls: pair(reader, "EDGE_TLS_CERT_FILE", "EDGE_TLS_KEY_FILE"),
        secrets: secrets(reader),
        secrets_file: reader.secret_file("EDGE_SECRET"),
        session_service: session_service(reader),
        session_service_ca: file(reader, "EDGE_SESSION_SVC_CA_FILE"),
        session_service_identity: pair(reader, "EDGE_SESSION_SVC_CERT_FILE", "EDGE_SESSION_SVC_KEY_FILE"),
        routes_file: reader.path("EDGE_ROUTES"),
        routes: routes(reader),
        cookie: cookie(reader, secure),
        login_path,
        callback_path,
        login_parameters: login_parameters(reader),
        post_logout_redirect: post_logout_redirect(reader, &base_url),
        logout_return_to_allowed: allowed(reader),
        provider_logout: choice(
            reader,
            "EDGE_IDP_LOGOUT",
            &[("oidc", ProviderLogout::Oidc), ("auth0", ProviderLogout::Auth0), ("off", ProviderLogout::Off)],
            ProviderLogout::Oidc,
        ),
        profile_refetch: choice(
            reader,
            "EDGE_PROFILE_REFETCH",
            &[
                ("never", ProfileRefetch::Never),
                ("on-request", ProfileRefetch::OnRequest),
                ("always", ProfileRefetch::Always),
            ],
            ProfileRefetch::OnRequest,
        ),
        userinfo_at_login: reader.flag("EDGE_USERINFO_AT_LOGIN"),
        store_id_token: reader.flag("EDGE_STORE_ID_TOKEN"),
        claim_filter: claim_filter(reader),
        transaction_duration_secs: transaction_duration(reader),
        trusted_proxies: trusted_proxies(reader),
        access_token_endpoint: reader.flag("EDGE_ACCESS_TOKEN_ENDPOINT"),
        frontchannel_logout: reader.flag("EDGE_FRONTCHANNEL_LOGOUT"),
        check_authorization: reader.flag("EDGE_CHECK_AUTHORIZATION"),
        rate_limit_login: u64::try_from(reader.count("EDGE_RATE_LIMIT_LOGIN")).unwrap_or(u64::MAX),
        credential_files: CredentialFiles::read(reader),
        provider,
        base_url,
    }
}

/// What reading goes on with after the mistake has been noted.
fn placeholder_url() -> Url {
    // A constant that parses; the fallback is never reached and keeps this free of panics.
    Url::parse("http://localhost/").unwrap_or_else(|_| placeholder_url())
}

fn base_url(reader: &mut Reader) -> Url {
    reader.required_text("EDGE_BASE_URL");
    let Some(url) = reader.url("EDGE_BASE_URL") else { return placeholder_url() };
    let plain = url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") {
        reader.wrong("EDGE_BASE_URL", "must begin with http:// or https://");
    } else if !plain || !url.username().is_empty() || url.password().is_some() {
        reader.wrong("EDGE_BASE_URL", "must have neither user name, password, query nor fragment");
    } else if url.scheme() == "http" && !is_localhost(&url) {
        reader.warn("EDGE_BASE_URL", "is not https: cookies and everything else can be read on the way");
    }
    url
}

fn is_localhost(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn listen(reader: &mut Reader) -> SocketAddr {
    let off = reader.text("EDGE_LISTEN").eq_ignore_ascii_case("off");
    if off {
        reader.wrong("EDGE_LISTEN", "must be an address and a port; the edge has nothing to do without one");
    }
    reader.socket_addr("EDGE_LISTEN").unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn secrets(reader: &mut Reader) -> Vec<chassis::secret::Secret<String>> {
    reader.required_text("EDGE_SECRET");
    let secrets = reader.secrets("EDGE_SECRET");
    let shortest = secrets.iter().map(|secret| secret.expose().chars().count()).min();
    match shortest {
        Some(chars) if chars < MIN_SECRET_CHARS => {
            reader.wrong("EDGE_SECRET", "holds a secret of fewer than 8 characters; make one with `openssl rand -hex 32`");
        }
        Some(chars) if chars < WISE_SECRET_CHARS => {
            reader.warn("EDGE_SECRET", "holds a secret of fewer than 32 characters; make one with `openssl rand -hex 32`");
        }
        _ => {}
    }
    secrets
}

/// Whether changed secrets may be taken into use: as at the start.
#[must_use]
pub fn secrets_are_usable(secrets: &[chassis::secret::Secret<String>]) -> bool {
    !secrets.is_empty() && secrets.iter().all(|secret| secret.expose().chars().count() >= MIN_SECRET_CHARS)
}

fn cookie(reader: &mut Reader, secure: bool) -> CookieSettings {
    let name = reader.required_text("EDGE_COOKIE_NAME");
    let token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.len() > MAX_COOKIE_NAME || !name.bytes().all(token) {
        reader.wrong("EDGE_COOKIE_NAME", "must be at most 32 letters, digits and _ - .");
    } else if ["__host-", "__secure-"].iter().any(|prefix| name.to_ascii_lowercase().starts_with(prefix)) {
        reader.wrong("EDGE_COOKIE_NAME", "must be without prefix; the edge puts __Host- or __Secure- before it");
    }
    let domain = reader.optional_text("EDGE_COOKIE_DOMAIN").map(|domain| domain.trim_start_matches('.').to_owned());
    if let Some(domain) = &domain {
        let host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        if domain.is_empty() || !domain.bytes().all(host) {
            reader.wrong("EDGE_COOKIE_DOMAIN", "must be a host name such as example.com");
        }
        if !secure {
            reader.wrong("EDGE_COOKIE_DOMAIN", "needs an https EDGE_BASE_URL");
        }
    }
    let same_site = choice(
        reader,
        "EDGE_COOKIE_SAME_SITE",
        &[("lax", SameSite::Lax), ("strict", SameSite::Strict), ("none", SameSite::None)],
        SameSite::Lax,
    );
    if same_site == SameSite::None && !secure {
        reader.wrong("EDGE_COOKIE_SAME_SITE", "none needs an https EDGE_BASE_URL");
    }
    CookieSettings { name, domain, same_site, transient: reader.flag("EDGE_COOKIE_TRANSIENT"), secure }
}

fn auth_path(reader: &mut Reader, name: &str) -> String {
    let path = reader.required_text(name);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
    let segments = path.split('/').skip(1);
    let whole = segments.clone().count() > 0 && segments.clone().all(|s| !s.is_empty() && s != "." && s != "..");
    if !path.starts_with('/') || !path.bytes().all(plain) || !whole {
        reader.wrong(name, "must be a plain path such as /api/auth/login");
    }
    path
}

fn login_parameters(reader: &mut Reader) -> Vec<String> {
    let names = reader.list("EDGE_LOGIN_PARAMETERS");
    if names == ["none"] {
        return Vec::new();
    }
    if names.iter().any(|name| !ALLOWED_PARAMETERS.contains(&name.as_str())) {
        let text = format!("may hold only {}, or none", ALLOWED_PARAMETERS.join(", "));
        reader.wrong("EDGE_LOGIN_PARAMETERS", text);
    }
    names
}

fn post_logout_redirect(reader: &mut Reader, base: &Url) -> Url {
    let Some(text) = reader.optional_text("EDGE_POST_LOGOUT_REDIRECT") else { return base.clone() };
    if let Some(own) = ReturnTo::parse(base, &text) {
        return own.url().clone();
    }
    match Url::parse(&text).ok().filter(is_web) {
        Some(url) => url,
        None => {
            reader.wrong("EDGE_POST_LOGOUT_REDIRECT", "must be a path of ours or an absolute http or https URL");
            base.clone()
        }
    }
}

fn allowed(reader: &mut Reader) -> Vec<Url> {
    let entries = reader.list("EDGE_LOGOUT_RETURN_TO_ALLOWED");
    let urls: Vec<Url> = entries.iter().filter_map(|entry| Url::parse(entry).ok()).filter(is_web).collect();
    if urls.len() != entries.len() {
        reader.wrong("EDGE_LOGOUT_RETURN_TO_ALLOWED", "must hold absolute http or https URLs without user name");
    }
    urls
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty() && url.password().is_none()
}

fn claim_filter(reader: &mut Reader) -> Vec<String> {
    let names = reader.list("EDGE_CLAIM_FILTER");
    if names.iter().any(|name| name == "sub") {
        reader.wrong("EDGE_CLAIM_FILTER", "must not hold sub: it names the person");
    }
    if names.is_empty() { PROTOCOL_CLAIMS.iter().map(|name| (*name).to_owned()).collect() } else { names }
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
    let networks: Vec<IpNet> = entries.iter().filter_map(|entry| TrustedProxies::parse_network(entry)).collect();
    if networks.len() != entries.len() {
        reader.wrong(
            "EDGE_TRUSTED_PROXIES",
            "must hold networks such as 10.0.0.0/8 or single addresses; the whole internet cannot be trusted",
        );
    }
    networks
}

fn session_service(reader: &mut Reader) -> Vec<String> {
    let addresses = reader.list("EDGE_SESSION_SVC_URL");
    let fits = |text: &String| {
        Url::parse(text).is_ok_and(|url| is_web(&url) && matches!(url.path(), "" | "/") && url.query().is_none())
    };
    if addresses.is_empty() || !addresses.iter().all(fits) {
        reader.wrong("EDGE_SESSION_SVC_URL", "must hold URLs such as http://session-svc:50051");
    }
    addresses
}

fn file(reader: &mut Reader, name: &str) -> Option<PathBuf> {
    let path = reader.path(name)?;
    if !path.is_file() {
        reader.wrong(name, "names a file that is not there");
    }
    Some(path)
}

fn pair(reader: &mut Reader, certificate: &str, key: &str) -> Option<(PathBuf, PathBuf)> {
    match (file(reader, certificate), file(reader, key)) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (Some(_), None) => {
            reader.wrong(key, format!("is required with {certificate}"));
            None
        }
        (None, Some(_)) => {
            reader.wrong(certificate, format!("is required with {key}"));
            None
        }
        (None, None) => None,
    }
}

fn choice<T: Copy>(reader: &mut Reader, name: &str, choices: &[(&str, T)], otherwise: T) -> T {
    let text = reader.text(name).to_ascii_lowercase();
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
        return *value;
    }
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    reader.wrong(name, format!("must be one of {}", words.join(", ")));
    otherwise
}

/// The route table; its mistakes are mistakes of the setting.
fn routes(reader: &mut Reader<'_>) -> RouteTable {
    let Some(path) = reader.path("EDGE_ROUTES") else { return RouteTable::default() };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            reader.wrong("EDGE_ROUTES", format!("the file {} cannot be read: {error}", path.display()));
            return RouteTable::default();
        }
    };
    route_file::parse(&text).unwrap_or_else(|mistakes| {
        for mistake in mistakes {
            reader.wrong("EDGE_ROUTES", format!("{}, {mistake}", path.display()));
        }
        RouteTable::default()
    })
}
