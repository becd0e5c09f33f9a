//! The display name of a provider: the configured name, or the host of its issuer, which users know.
//!
//! Provider metadata has no name (OpenID Connect Discovery 3, RFC 8414). `organization_name` is for OpenID
//! Federation.

use url::{Host, Url};

/// The name, unless it says nothing to users, such as an IP address or `localhost`.
#[must_use]
pub(super) fn name(configured: Option<&str>, issuer: &str) -> Option<String> {
    if let Some(name) = configured {
        return Some(name.to_owned());
    }
    let issuer = Url::parse(issuer).ok()?;
    let Some(Host::Domain(host)) = issuer.host() else {
        return None;
    };
    let is_local = host == "localhost" || host.ends_with(".localhost");
    let name = host.strip_prefix("www.").unwrap_or(host);
    (!is_local).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_the_name_given_or_the_host_and_never_an_address_in_numbers() {
        for (configured, issuer, expected) in [
            (Some("Acme"), "http://127.0.0.1:9000", Some("Acme")),
            (
                None,
                "https://login.example.com:8443/realms/a",
                Some("login.example.com"),
            ),
            (None, "https://www.example.com/", Some("example.com")),
            (None, "http://127.0.0.1:9000", None),
            (None, "http://[::1]:9000", None),
            (None, "http://localhost:9000", None),
            (None, "http://idp.localhost", None),
            (None, "https://10.0.0.1", None),
        ] {
            assert_eq!(name(configured, issuer).as_deref(), expected, "{issuer}");
        }
    }
}
