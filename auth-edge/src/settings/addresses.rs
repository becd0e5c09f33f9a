//! Settings with addresses: the edge's own, and the targets of a sign-out.

use chassis::settings::Reader;
use oidc::LogoutTemplate;
use url::Url;

use crate::sign_in::ProviderLogout;
use crate::values::reserved::{CALLBACK_PATH, LOGOUT_PATH};
use crate::values::return_to::ReturnTo;
use crate::values::web_url::{is_origin, is_web};

/// The value that stands in for a wrong URL, so that reading can continue.
fn placeholder_url() -> Url {
    // The constant parses. The fallback is unreachable, and avoids a panic.
    Url::parse("http://localhost/").unwrap_or_else(|_| placeholder_url())
}

pub(super) fn base_url(reader: &mut Reader) -> Url {
    reader.required_text("EDGE_BASE_URL");
    let Some(url) = reader.url("EDGE_BASE_URL") else {
        return placeholder_url();
    };
    if !matches!(url.scheme(), "http" | "https") {
        reader.wrong("EDGE_BASE_URL", "must begin with http:// or https://");
    } else if !is_origin(&url) {
        reader.wrong(
            "EDGE_BASE_URL",
            "must contain only scheme, host and port, such as https://app.example.com: the edge answers at the root of its host. \
             Remove the path, query, fragment, user name or password",
        );
    } else if url.scheme() == "http" && !is_localhost(&url) {
        reader.warn(
            "EDGE_BASE_URL",
            "is not https: anyone on the network path can read cookies and all other traffic",
        );
    }
    url
}

pub(super) fn is_localhost(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

pub(super) fn post_logout_redirect(reader: &mut Reader, base: &Url) -> Url {
    let Some(text) = reader.optional_text("EDGE_POST_LOGOUT_REDIRECT") else {
        return base.clone();
    };
    if let Some(own) = ReturnTo::parse(base, &text) {
        if [LOGOUT_PATH, CALLBACK_PATH].contains(&own.url().path()) {
            reader.wrong(
                "EDGE_POST_LOGOUT_REDIRECT",
                "must be a page for users, not the sign-out or the callback route",
            );
        }
        return own.url().clone();
    }
    match Url::parse(&text).ok().filter(is_web) {
        Some(url) => url,
        None => {
            reader.wrong(
                "EDGE_POST_LOGOUT_REDIRECT",
                "must be a path of the edge or an absolute http or https URL",
            );
            base.clone()
        }
    }
}

/// Providers whose sign-out endpoint has its own parameters, by their name in the setting.
const LOGOUT_PRESETS: [(&str, &str); 2] = [
    (
        "auth0",
        "{issuer}/v2/logout?client_id={client_id}&returnTo={return_to}",
    ),
    (
        "cognito",
        "{end_session_endpoint}?client_id={client_id}&logout_uri={return_to}",
    ),
];

/// How sign-out ends the provider's session: a name, or a template.
pub(super) fn provider_logout(reader: &mut Reader) -> ProviderLogout {
    const NAME: &str = "EDGE_IDP_LOGOUT";
    let text = reader.text(NAME);
    match text.to_ascii_lowercase().as_str() {
        "oidc" => return ProviderLogout::Oidc,
        "off" => return ProviderLogout::Off,
        _ => {}
    }
    let preset = LOGOUT_PRESETS
        .iter()
        .find(|(word, _)| text.eq_ignore_ascii_case(word));
    let template = preset.map_or(text.as_str(), |(_, template)| template);
    match template.parse::<LogoutTemplate>() {
        Ok(template) => ProviderLogout::Template(template),
        Err(error) => {
            reader.wrong(
                NAME,
                format!("must be oidc, auth0, cognito, off or a template. The template {error}"),
            );
            ProviderLogout::Oidc
        }
    }
}

pub(super) fn allowed(reader: &mut Reader) -> Vec<Url> {
    let entries = reader.list("EDGE_LOGOUT_RETURN_TO_ALLOWED");
    let urls: Vec<Url> = entries
        .iter()
        .filter_map(|entry| Url::parse(entry).ok())
        .filter(is_web)
        .collect();
    if urls.len() != entries.len() {
        reader.wrong(
            "EDGE_LOGOUT_RETURN_TO_ALLOWED",
            "must contain only absolute http or https URLs without a user name",
        );
    }
    urls
}
