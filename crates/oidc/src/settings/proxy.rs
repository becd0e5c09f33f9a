//! The forward proxy for requests to the provider, and the hosts that bypass it.
//!
//! Invariants: a loopback URL never uses the proxy, which would reach its own loopback. So no plain http goes
//! through it. The proxy's credentials are in no `Debug` output, error or log line.

use std::fmt;
use std::sync::Arc;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use crate::settings::endpoint::is_loopback;

/// A tunnelling proxy (RFC 9110, section 9.3.6), and the hosts that bypass it.
#[derive(Clone)]
pub struct ForwardProxy {
    url: Url,
    /// A domain, with or without a leading dot, includes its subdomains; `*` is every host. Addresses and
    /// networks match only URLs with an address.
    no_proxy: String,
    matcher: Arc<Matcher>,
}

/// The text is not the URL of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be the URL of a proxy such as http://proxy.example:3128, with http or https and without a path"
)]
pub struct NoProxyUrl;

impl ForwardProxy {
    /// Parses a proxy's URL, with user and password if necessary; `http://` is optional. `no_proxy` lists the
    /// hosts that bypass it, separated by commas.
    ///
    /// # Errors
    /// The text is not such a URL.
    pub fn new(url: &str, no_proxy: &str) -> Result<Self, NoProxyUrl> {
        let url = if url.contains("://") {
            Url::parse(url)
        } else {
            Url::parse(&format!("http://{url}"))
        };
        let url = url.map_err(|_| NoProxyUrl)?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if !bare || !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(NoProxyUrl);
        }
        let matcher = Matcher::builder().https(url.as_str()).no(no_proxy).build();
        Ok(Self {
            url,
            no_proxy: no_proxy.to_owned(),
            matcher: Arc::new(matcher),
        })
    }

    /// Host and port of the proxy for a URL, without credentials; `None` for a direct connection.
    #[must_use]
    pub fn authority_for(&self, url: &Url) -> Option<String> {
        let proxy = self.for_url(url)?;
        let port = proxy.port_or_known_default().unwrap_or_default();
        Some(format!("{}:{port}", proxy.host_str().unwrap_or_default()))
    }

    /// The proxy for this URL; `None` for a direct connection.
    pub(crate) fn for_url(&self, url: &Url) -> Option<Url> {
        let is_direct = is_loopback(url) || self.no_proxy.split(',').any(|member| member.trim() == "*");
        let target = Uri::try_from(url.as_str()).ok().filter(|_| !is_direct)?;
        self.matcher.intercept(&target).map(|_| self.url.clone())
    }
}

impl fmt::Debug for ForwardProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardProxy")
            .field("host", &self.url.host_str())
            .field("no_proxy", &self.no_proxy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn straight(no_proxy: &str, url: &str) -> bool {
        let proxy = ForwardProxy::new("proxy.example:3128", no_proxy).unwrap();
        proxy.for_url(&Url::parse(url).unwrap()).is_none()
    }

    #[test]
    fn the_members_of_no_proxy_hold_what_operators_expect() {
        for (direct, url, expected) in [
            ("*", "https://op.example/", true),
            ("*", "https://10.1.2.3/", true),
            ("op.example", "https://op.example/", true),
            ("op.example", "https://login.op.example:8443/", true),
            ("op.example", "https://shop.example/", false),
            ("OP.example", "https://op.example/", true),
            (".op.example", "https://op.example/", true),
            (".op.example", "https://shop.example/", false),
            (".op.example", "https://login.op.example/", true),
            ("10.0.0.0/8", "https://10.1.2.3/", true),
            ("10.0.0.0/8", "https://11.1.2.3/", false),
            ("10.1.2.3", "https://10.1.2.3/", true),
            ("fd00::/8", "https://[fd00::1]/", true),
            ("2.3", "https://10.1.2.3/", false),
            ("other.example,op.example", "https://op.example/", true),
        ] {
            assert_eq!(straight(direct, url), expected, "{direct} {url}");
        }
    }

    #[test]
    fn loopback_and_plain_http_never_go_through_a_proxy() {
        for url in [
            "https://localhost:9000/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://op.localhost/",
            "http://localhost/",
            "http://op.example/",
        ] {
            assert!(straight("none.example", url), "{url}");
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused() {
        for url in [
            "",
            "socks5://proxy.example",
            "http://",
            "http://proxy.example/path",
            "http://proxy.example?a",
            "ftp://proxy.example",
        ] {
            assert_eq!(ForwardProxy::new(url, "").map(|_| ()), Err(NoProxyUrl), "{url}");
        }
    }

    #[test]
    fn the_password_is_not_shown() {
        let proxy = ForwardProxy::new("http://user:pa55word@proxy.example:3128", "").unwrap();
        let shown = format!("{proxy:?}");
        assert!(
            shown.contains("proxy.example") && !shown.contains("pa55word"),
            "{shown}"
        );
    }
}
