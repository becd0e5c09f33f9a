//! Reads and validates the settings of one provider.

use std::time::Duration;

use chassis::settings::{Reader, Zero};
use chassis::tls;
use oidc::{
    AcceptedAlgorithms, AccessTokenShape, AllowedTenants, ApiTokenGrant, BuildError, PROTOCOL_PARAMETERS,
    Par, ProviderSettings, RelyingParty, ResponseMode, TenantRule, UnknownAlgorithm,
};
use url::Url;

use crate::credentials::credentials;
use crate::table::{ENDPOINTS, METADATA_URL, PROVIDER_NAME};

/// More tolerance would make expiry meaningless.
const MAX_CLOCK_TOLERANCE_SECS: u64 = 300;

/// The longest name: buttons and sentences contain it.
const MAX_NAME_CHARS: usize = 64;

/// Reads the settings of one provider.
pub(crate) fn one(reader: &mut Reader<'_>) -> ProviderSettings {
    let issuer = issuer(reader);
    let client_id = reader.required_text("OIDC_CLIENT_ID");
    let mut settings = ProviderSettings::new(issuer, client_id);
    settings.credentials = credentials(reader);
    settings.trusted_audiences = reader.list("OIDC_TRUSTED_AUDIENCES");
    settings.tenants = tenants(reader, &settings.issuer);
    settings.groups_url = graph(&settings.issuer);
    settings.metadata_url = reader
        .url(METADATA_URL)
        .map(|url| check_url(reader, METADATA_URL, url));
    read_endpoints(reader, &mut settings);
    settings.name = name(reader);
    settings.scope = scope(reader);
    settings.audience = reader.optional_text("OIDC_AUDIENCE");
    settings.resources = resources(reader);
    let grants = [
        ("exchange", ApiTokenGrant::TokenExchange),
        ("refresh", ApiTokenGrant::Refresh),
    ];
    settings.api_token_grant = reader.choice("OIDC_API_TOKENS", &grants, ApiTokenGrant::TokenExchange);
    settings.organization = reader.optional_text("OIDC_ORGANIZATION");
    let modes = [
        ("query", ResponseMode::Query),
        ("form_post", ResponseMode::FormPost),
    ];
    settings.response_mode = reader.choice("OIDC_RESPONSE_MODE", &modes, ResponseMode::Query);
    settings.signing_algs = algorithms(reader);
    match AccessTokenShape::of_name(&reader.text("OIDC_ACCESS_TOKENS")) {
        Some(shape) => settings.access_tokens = shape,
        None => reader.wrong("OIDC_ACCESS_TOKENS", "must be rfc9068, entra, okta or cognito"),
    }
    settings.authorization_params = authorization_params(reader);
    let pushing = [("auto", Par::Auto), ("require", Par::Require), ("off", Par::Off)];
    settings.par = reader.choice("OIDC_PAR", &pushing, Par::Auto);
    settings.http_timeout = Duration::from_millis(reader.millis("OIDC_HTTP_TIMEOUT_MS", Zero::Refused));
    settings.clock_tolerance_secs = reader.secs("OIDC_CLOCK_TOLERANCE", Zero::Allowed);
    if settings.clock_tolerance_secs > MAX_CLOCK_TOLERANCE_SECS {
        reader.wrong(
            "OIDC_CLOCK_TOLERANCE",
            format!("must be at most {MAX_CLOCK_TOLERANCE_SECS} seconds"),
        );
    }
    settings.ca_file = reader
        .path("OIDC_CA_FILE")
        .filter(|path| tls::check_authorities(reader, "OIDC_CA_FILE", path));
    try_out(reader, &settings);
    settings
}

fn issuer(reader: &mut Reader<'_>) -> String {
    let issuer = reader.required_text("OIDC_ISSUER_URL");
    if let Some(url) = reader.url("OIDC_ISSUER_URL") {
        if url.query().is_some() {
            reader.wrong("OIDC_ISSUER_URL", "must not have a query");
        }
        check_url(reader, "OIDC_ISSUER_URL", url);
    }
    issuer
}

/// The member for the address of a user's groups.
const GROUPS: &str = "groups";

/// The members of the metadata whose addresses the setting may replace.
const MEMBERS: [&str; 5] = [
    "authorization_endpoint",
    "token_endpoint",
    "jwks_uri",
    "userinfo_endpoint",
    "end_session_endpoint",
];

/// Reads the addresses that replace those of the metadata, and the address of groups.
fn read_endpoints(reader: &mut Reader<'_>, settings: &mut ProviderSettings) {
    let mut seen: Vec<String> = Vec::new();
    for entry in reader.list(ENDPOINTS) {
        let (name, address) = entry.split_once('=').unwrap_or((&entry, ""));
        let (name, address) = (name.trim(), address.trim());
        if seen.iter().any(|known| known == name) {
            reader.wrong(ENDPOINTS, format!("names {name} twice"));
        }
        seen.push(name.to_owned());
        let member = MEMBERS.into_iter().find(|member| *member == name);
        match (name, member, Url::parse(address)) {
            (GROUPS, ..) if address.eq_ignore_ascii_case("off") => settings.groups_url = None,
            (GROUPS, _, Ok(url)) => settings.groups_url = Some(check_url(reader, ENDPOINTS, url)),
            (_, Some(member), Ok(url)) => settings
                .endpoints
                .push((member, check_url(reader, ENDPOINTS, url))),
            _ => {
                let members = MEMBERS.join(", ");
                reader.wrong(
                    ENDPOINTS,
                    format!("must be a list of MEMBER=URL, where MEMBER is one of {members}, {GROUPS}"),
                );
            }
        }
    }
}

/// Validates an address of the provider. A query is allowed, because some providers need it.
fn check_url(reader: &mut Reader<'_>, name: &str, url: Url) -> Url {
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        reader.wrong(name, "must contain neither credentials nor a fragment");
    } else if !oidc::endpoint_is_secure(&url) {
        reader.wrong(name, "must use https; http is allowed on loopback only");
    }
    url
}

/// The rule for a provider with many tenants.
fn tenants(reader: &mut Reader<'_>, issuer: &str) -> Option<TenantRule> {
    const NAME: &str = "OIDC_TENANTS";
    let ids = reader.list(NAME);
    if ids.is_empty() {
        return None;
    }
    let plain = |id: &String| id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let allowed = if ids == ["*"] {
        AllowedTenants::Any
    } else {
        if !ids.iter().all(plain) {
            reader.wrong(
                NAME,
                "must be * or tenant ids, such as 9188040d-6c67-4c5b-b112-36a304b66dad",
            );
        }
        AllowedTenants::Listed(ids)
    };
    let rule = TenantRule::new(issuer, allowed);
    if rule.is_none() {
        reader.wrong(
            NAME,
            "needs an OIDC_ISSUER_URL for many tenants, such as https://login.microsoftonline.com/organizations/v2.0. Remove it for a single tenant",
        );
    }
    rule
}

/// Microsoft Graph, which lists the user's groups for an access token that Entra ID issued without a resource.
const GRAPH: &str =
    "https://graph.microsoft.com/v1.0/me/transitiveMemberOf/microsoft.graph.group?$select=id&$top=999";

/// The default address of a user's groups: Microsoft Graph for Entra ID, none for other providers.
fn graph(issuer: &str) -> Option<Url> {
    let is_entra = Url::parse(issuer).is_ok_and(|url| url.host_str() == Some("login.microsoftonline.com"));
    is_entra.then(|| Url::parse(GRAPH).ok()).flatten()
}

fn scope(reader: &mut Reader<'_>) -> String {
    let scope = reader.text("OIDC_SCOPE");
    if !scope.split(' ').any(|member| member == "openid") {
        reader.wrong(
            "OIDC_SCOPE",
            "must contain openid as one of its space-separated members",
        );
    }
    scope
}

fn algorithms(reader: &mut Reader<'_>) -> AcceptedAlgorithms {
    const NAME: &str = "OIDC_ID_TOKEN_SIGNING_ALG";
    let names = reader.list(NAME);
    if names.iter().all(|name| name == "auto") && names.len() < 2 {
        return AcceptedAlgorithms::Auto;
    }
    match names.iter().map(|name| name.parse()).collect() {
        Ok(named) => AcceptedAlgorithms::Named(named),
        Err(UnknownAlgorithm) => {
            reader.wrong(
                NAME,
                format!("must be only auto, or names except none: one of them {UnknownAlgorithm}"),
            );
            AcceptedAlgorithms::Auto
        }
    }
}

fn name(reader: &mut Reader<'_>) -> Option<String> {
    let name = reader.optional_text(PROVIDER_NAME)?;
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        reader.wrong(
            PROVIDER_NAME,
            format!("must be one line of at most {MAX_NAME_CHARS} characters"),
        );
    }
    Some(name)
}

fn authorization_params(reader: &mut Reader<'_>) -> Vec<(String, String)> {
    let mut params = Vec::new();
    for member in reader.list("OIDC_AUTHORIZATION_PARAMS") {
        match member.split_once('=') {
            Some((name, _)) if PROTOCOL_PARAMETERS.contains(&name) => {
                reader.wrong(
                    "OIDC_AUTHORIZATION_PARAMS",
                    format!("must not contain {name}, which the protocol sets"),
                );
            }
            Some(("max_age", value)) if value.parse::<u64>().is_err() => {
                reader.wrong("OIDC_AUTHORIZATION_PARAMS", "max_age must be whole seconds");
            }
            Some((name, value)) if !name.is_empty() => params.push((name.to_owned(), value.to_owned())),
            Some(_) | None => {
                reader.wrong(
                    "OIDC_AUTHORIZATION_PARAMS",
                    "must be a list of name=value separated by commas",
                );
            }
        }
    }
    params
}

fn resources(reader: &mut Reader<'_>) -> Vec<String> {
    let resources = reader.list("OIDC_RESOURCE");
    if !resources.iter().all(|text| oidc::is_resource(text)) {
        reader.wrong("OIDC_RESOURCE", "must be absolute URLs without a fragment");
    }
    resources
}

/// Builds a relying party, so that unusable files are reported as mistakes and do not stop the start later.
fn try_out(reader: &mut Reader<'_>, settings: &ProviderSettings) {
    let Err(error) = RelyingParty::new(settings.clone()) else {
        return;
    };
    let name = match error {
        // The issuer was validated above.
        BuildError::Issuer | BuildError::InsecureIssuer => return,
        BuildError::SymmetricSecret { .. } => "OIDC_ID_TOKEN_SIGNING_ALG",
        BuildError::CaFile(_) => "OIDC_CA_FILE",
        BuildError::ClientCertificate | BuildError::ClientFile { .. } => "OIDC_CLIENT_CERT_FILE",
        BuildError::HttpClient(_) => "OIDC_ISSUER_URL",
    };
    reader.wrong(name, error.to_string());
}
