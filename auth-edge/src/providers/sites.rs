//! The addresses at which browsers reach the product: the base URL, further hosts, and hosts that belong to one
//! provider.
//!
//! Invariants
//! - An address is always a configured one, never one from the request.
//! - At a provider's own host only that provider signs users in, and sessions of other hosts are not valid
//!   there.
//!
//! If only the base URL is configured, every request belongs to it, and the edge does not check `Host`.

use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, header};
use percent_encoding::percent_decode_str;
use url::{Position, Url};

use crate::values::reserved::{FORM_PATH, is_reserved, lies_below, segments};
use crate::values::return_to::ReturnTo;

/// One address of the product.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The address itself.
    pub(crate) base_url: Url,
    authority: Box<str>,
    login_path: Arc<str>,
    own_paths: Arc<[String]>,
    /// The issuer of the provider that owns the host, if any: it binds sessions to the host.
    pub(crate) owner: Option<String>,
}

impl Site {
    /// Host and port of the address, as in headers.
    #[must_use]
    pub(crate) fn authority(&self) -> Option<HeaderValue> {
        // Each call copies the text: all cores would contend for the reference count of a shared value.
        HeaderValue::from_str(&self.authority).ok()
    }

    /// The host of the address without its port. The edge chooses routes by it.
    #[must_use]
    pub(crate) fn host(&self) -> &str {
        self.base_url.host_str().unwrap_or_default()
    }

    /// The absolute URL of a path of ours.
    #[must_use]
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base_url.origin().ascii_serialization())
    }

    /// The requested return address, if it is a page of this origin. The edge's own routes are not allowed, except
    /// the kept form's: a link must not sign users out, or in again, after their sign-in.
    #[must_use]
    pub(crate) fn return_to(&self, raw: &str) -> Option<ReturnTo> {
        ReturnTo::parse(&self.base_url, raw).filter(|to| !self.owns(to))
    }

    /// Whether an address is one of the edge's own routes at this site.
    #[must_use]
    pub(crate) fn owns(&self, address: &ReturnTo) -> bool {
        address.url().origin() == self.base_url.origin() && self.is_own_route(address.url().path())
    }

    /// Whether a path is an own route of the edge, in any encoding or letter case. [`FORM_PATH`] does not count.
    #[must_use]
    pub(crate) fn is_own_route(&self, path: &str) -> bool {
        if path == FORM_PATH {
            return false;
        }
        let mut moved = self.own_paths.iter();
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let folded: Vec<&str> = decoded
            .split(['/', '\\'])
            .filter(|part| !part.is_empty())
            .collect();
        let is = |own: &String| segments(own).len() == folded.len() && lies_below(own, &folded);
        is_reserved(&folded) || moved.any(is)
    }

    /// The login URL, with the return address and the provider, if named.
    #[must_use]
    pub(crate) fn login_url(&self, return_to: Option<&str>, connection: Option<&str>) -> String {
        let login = self.at(&self.login_path);
        if return_to.is_none() && connection.is_none() {
            return login;
        }
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(return_to.map(|return_to| ("returnTo", return_to)));
        query.extend_pairs(connection.map(|connection| ("connection", connection)));
        format!("{login}?{}", query.finish())
    }

    /// Moves an address from the base URL to this site. Returns other addresses unchanged.
    #[must_use]
    pub(crate) fn here(&self, main: &Site, url: &Url) -> String {
        let is_ours = url.origin() == main.base_url.origin();
        let path = &url[Position::BeforePath..];
        if is_ours { self.at(path) } else { url.to_string() }
    }
}

/// All addresses. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Sites {
    main: Arc<Site>,
    /// The sites other than the base URL.
    own: Arc<[Site]>,
}

impl Sites {
    /// `hosts`: each further host, with the issuer of the provider that it belongs to, if any. A host without
    /// a port has the base URL's port.
    #[must_use]
    pub(crate) fn new(
        base_url: &Url,
        (login_path, own_paths): (&str, Vec<String>),
        hosts: impl IntoIterator<Item = (String, Option<String>)>,
    ) -> Self {
        let login_path: Arc<str> = login_path.into();
        let own_paths: Arc<[String]> = own_paths.into();
        let site = |base_url: Url, owner| Site {
            authority: base_url[Position::BeforeHost..Position::AfterPort].into(),
            base_url,
            login_path: Arc::clone(&login_path),
            own_paths: Arc::clone(&own_paths),
            owner,
        };
        let own = hosts
            .into_iter()
            .filter_map(|(host, owner)| Some(site(address(base_url, &host)?, owner)));
        Self {
            own: own.collect(),
            main: Arc::new(site(base_url.clone(), None)),
        }
    }

    /// The base URL alone.
    #[cfg(test)]
    pub(crate) fn only(base_url: &Url, login_path: &str) -> Self {
        Self::new(base_url, (login_path, Vec::new()), [])
    }

    /// The base URL.
    #[must_use]
    pub(crate) fn main(&self) -> &Site {
        &self.main
    }

    /// The sites for the provider of this issuer: the base URL, its own hosts, and hosts without a provider.
    pub(crate) fn of_provider(&self, issuer: &str) -> Vec<&Site> {
        let counts = |site: &&Site| site.owner.as_ref().is_none_or(|owner| owner == issuer);
        let own = self.own.iter().filter(counts);
        std::iter::once(self.main()).chain(own).collect()
    }

    /// The site of a request, by its `Host`; the base URL if `Host` is not one of ours.
    #[must_use]
    pub(crate) fn of(&self, headers: &HeaderMap) -> &Site {
        match headers.get(header::HOST) {
            Some(host) if self.has_hosts() => self.find_by_host(host).unwrap_or(&self.main),
            _ => &self.main,
        }
    }

    /// Whether a URL is at one of these sites: scheme, host and port are equal.
    #[must_use]
    pub(crate) fn include(&self, url: &Url) -> bool {
        // `blob:` URLs report the origin of the URL inside.
        let is =
            |site: &Site| url.scheme() == site.base_url.scheme() && url.origin() == site.base_url.origin();
        std::iter::once(self.main()).chain(self.own.iter()).any(is)
    }

    /// Whether other hosts than the base URL's are configured.
    #[must_use]
    pub(crate) fn has_hosts(&self) -> bool {
        !self.own.is_empty()
    }

    fn find_by_host(&self, host: &HeaderValue) -> Option<&Site> {
        let authority = Authority::try_from(host.as_bytes()).ok()?;
        // Browsers send neither userinfo nor an empty port.
        if authority.as_str().contains('@') || authority.as_str().ends_with(':') {
            return None;
        }
        // A name with a trailing dot is the same name (RFC 1034, section 3.1).
        let name = authority.host();
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_port = |url: &Url| match authority.port_u16() {
            // Browsers omit the scheme's default port.
            None => url.port().is_none(),
            port => url.port_or_known_default() == port,
        };
        let mut own = self.own.iter();
        own.find(|site| site.host().eq_ignore_ascii_case(name) && is_port(&site.base_url))
    }
}

/// The base URL with another host.
fn address(base_url: &Url, host: &str) -> Option<Url> {
    let mut url = Url::parse(&format!("{}://{host}/", base_url.scheme())).ok()?;
    if !host.contains(':') {
        url.set_port(base_url.port()).ok()?;
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(base: &str, hosts: &[&str]) -> Sites {
        let owner = |provider| format!("https://{provider}.example");
        let hosts = hosts
            .iter()
            .enumerate()
            .map(|(at, host)| ((*host).to_owned(), Some(owner(at))));
        let own = ["/login", "/signed-in"].map(str::to_owned).to_vec();
        Sites::new(&Url::parse(base).unwrap(), ("/login", own), hosts)
    }

    fn at<'a>(sites: &'a Sites, host: &'static str) -> (String, Option<&'a str>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        let site = sites.of(&headers);
        (site.at(""), site.owner.as_deref())
    }

    #[test]
    fn a_request_is_at_the_host_it_names_and_at_the_base_url_otherwise() {
        let sites = sites("https://app.example/", &["a.example", "b.example:8443"]);
        for (host, is_at) in [
            ("a.example", ("https://a.example", Some("https://0.example"))),
            ("A.Example:443", ("https://a.example", Some("https://0.example"))),
            ("a.example.", ("https://a.example", Some("https://0.example"))),
            ("A.example.:443", ("https://a.example", Some("https://0.example"))),
            ("a.example..", ("https://app.example", None)),
            (
                "b.example:8443",
                ("https://b.example:8443", Some("https://1.example")),
            ),
            ("b.example", ("https://app.example", None)),
            ("app.example", ("https://app.example", None)),
            ("a.example.evil.example", ("https://app.example", None)),
        ] {
            assert_eq!(at(&sites, host), (is_at.0.to_owned(), is_at.1), "{host}");
        }
    }

    #[test]
    fn a_host_without_a_port_has_that_of_the_base_url() {
        let sites = sites("http://app.localhost:3000/", &["a.localhost"]);
        assert_eq!(
            at(&sites, "a.localhost:3000"),
            ("http://a.localhost:3000".to_owned(), Some("https://0.example"))
        );
        assert_eq!(at(&sites, "a.localhost").1, None);
    }

    #[test]
    fn an_address_of_ours_is_told_as_it_is_here() {
        let sites = sites("https://app.example/", &["a.example"]);
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("a.example"));
        let here = |url: &str| sites.of(&headers).here(sites.main(), &Url::parse(url).unwrap());
        assert_eq!(here("https://app.example/out?a=b"), "https://a.example/out?a=b");
        assert_eq!(here("https://www.example/"), "https://www.example/");
    }

    #[test]
    fn no_return_address_leads_to_a_route_of_the_edge_but_to_a_kept_form() {
        let sites = sites("https://app.example", &[]);
        let leads = |raw: &str| sites.main().return_to(raw).is_some();
        for own in [
            "/api/auth/logout",
            "/api/auth/logout?returnTo=/",
            "https://app.example/api/auth/login#x",
            "/api/auth",
            "/API/Auth/Logout",
            "/api/auth/%6Cogout",
            "/api//auth/logout",
            "/a/../api/auth/me",
            "/api%2Fauth/logout",
            "/api/auth/device?returnTo=/",
            "/api/auth/frontchannel-logout",
            "/.well-known/vestibule/jwks.json",
            "/login",
            "/login/",
            "/signed-in?code=x",
        ] {
            assert!(!leads(own), "{own}");
        }
        for page in [
            "/",
            "/api/authors",
            "/api/auth/form?for=%2Forders",
            "/login/help",
            "/a?b=/api/auth/logout",
        ] {
            assert!(leads(page), "{page}");
        }
    }
}
