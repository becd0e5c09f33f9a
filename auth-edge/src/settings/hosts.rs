//! Further hosts of the edge, next to the base URL's. Users sign in on each of them separately.

use std::collections::BTreeSet;

use chassis::settings::Reader;
use provider_settings::ConfiguredProviders;
use url::Url;

use crate::values::host_name;

const HOSTS: &str = "EDGE_HOSTS";

/// Reads names, with a port if it differs from the base URL's, or origins of the base URL's scheme.
pub(super) fn hosts(reader: &mut Reader<'_>, base_url: &Url, providers: &ConfiguredProviders) -> Vec<String> {
    let entries = reader.list(HOSTS);
    let of_providers = providers.all.iter().flat_map(|provider| &provider.hosts);
    let mut seen: BTreeSet<String> = of_providers
        .filter_map(|host| origin(base_url, host))
        .chain([base_url.origin().ascii_serialization()])
        .collect();
    let mut hosts = Vec::new();
    for entry in entries {
        let prefix = format!("{}://", base_url.scheme());
        let host = entry.strip_prefix(&prefix).unwrap_or(&entry);
        let host = host.strip_suffix('/').unwrap_or(host).to_ascii_lowercase();
        let Some(origin) = origin(base_url, &host).filter(|_| is_plain(&host)) else {
            reader.wrong(
                HOSTS,
                format!(
                    "{entry:?} is not a host: write names such as wiki.example.com, with a port if it differs from that of \
                     EDGE_BASE_URL; the scheme is {}",
                    base_url.scheme()
                ),
            );
            continue;
        };
        if !seen.insert(origin) {
            reader.wrong(
                HOSTS,
                format!("{entry:?} appears twice: here, in EDGE_BASE_URL or in the hosts of a provider"),
            );
        }
        hosts.push(host);
    }
    if let Some(domain) = reader.optional_text("EDGE_COOKIE_DOMAIN") {
        let domain = domain.trim_start_matches('.').to_ascii_lowercase();
        for host in hosts.iter().filter_map(|host| host_name::parse(host)) {
            if host != domain && !host.ends_with(&format!(".{domain}")) {
                reader.wrong(
                    HOSTS,
                    format!("{host:?} is not below EDGE_COOKIE_DOMAIN: browsers reject its cookie"),
                );
            }
        }
    }
    hosts
}

/// The hosts of the edge without ports, as the route table names them.
pub(super) fn of_rules(base_url: &Url, hosts: &[String], providers: &ConfiguredProviders) -> Vec<String> {
    let of_providers = providers.all.iter().flat_map(|provider| &provider.hosts);
    let named = hosts.iter().chain(of_providers).map(String::as_str);
    base_url
        .host_str()
        .into_iter()
        .chain(named)
        .filter_map(host_name::parse)
        .collect()
}

/// Whether the text is a name, with at most a port.
fn is_plain(host: &str) -> bool {
    let name = host_name::parse(host);
    let rest = name.as_deref().and_then(|name| host.strip_prefix(name));
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| !port.is_empty()))
}

/// The origin of a host. A host without a port has the base URL's port.
fn origin(base_url: &Url, host: &str) -> Option<String> {
    let mut url = Url::parse(&format!("{}://{host}/", base_url.scheme())).ok()?;
    if !host.trim_end_matches(']').contains(':') {
        url.set_port(base_url.port()).ok()?;
    }
    Some(url.origin().ascii_serialization())
}
