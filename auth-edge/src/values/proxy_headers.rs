//! Headers that only a proxy may send, because applications trust them: client addresses, schemes,
//! certificates and users, under other names than the edge's own.

/// The headers, grouped by their readers or senders. Names are folded: lower case, with `-` for every sign.
#[rustfmt::skip]
const NAMES: [&str; 39] = [
    // Rails and PHP (`HTTP_CLIENT_IP`), and other usual packages: request-ip, django-ipware, Laravel.
    "client-ip", "forwarded-for", "forwarded-for-ip", "x-forwarded", "x-cluster-client-ip", "x-proxyuser-ip",
    "x-remote-ip", "x-remote-addr", "x-originating-ip", "x-host",
    // chi (`RealIP`), Akamai, Cloudflare, Fastly, Fly.io, Google, Azure, CloudFront, Envoy.
    "true-client-ip", "cf-connecting-ip", "cf-connecting-ipv6", "cf-pseudo-ipv4", "cf-visitor", "fastly-client-ip",
    "fastly-ssl", "fly-client-ip", "x-appengine-user-ip", "x-appengine-remote-addr", "x-azure-clientip",
    "x-azure-socketip", "cloudfront-forwarded-proto", "cloudfront-viewer-address",
    // https, by ingress-nginx, Rack, Microsoft's proxies and ASP.NET behind IIS; certificates by IIS.
    "x-scheme", "x-url-scheme", "front-end-https", "x-arr-ssl", "x-arr-clientcert", "x-client-cert",
    // The path of an application: gunicorn, uWSGI, Werkzeug and PasteDeploy.
    "script-name", "path-info", "x-script-name",
    // Rack: files that it makes a proxy send.
    "x-sendfile-type", "x-accel-mapping",
    // Django (`RemoteUserMiddleware`), and programs that read CGI variables.
    "remote-user", "remote-addr", "x-remote-user", "auth-user",
];

/// Prefixes: certificates (Tomcat, Spring, nginx, Apache), IIS, Azure, AWS, Google, Envoy and others.
#[rustfmt::skip]
const FAMILIES: [&str; 11] = [
    "ssl-client-", "x-ssl-", "x-client-cert-", "ms-aspnetcore-", "x-ms-client-principal", "x-amzn-oidc-",
    "x-goog-iap-", "x-goog-authenticated-user-", "x-envoy-", "cf-access-authenticated-user-", "tailscale-user-",
];

/// CGI servers turn it into `HTTP_PROXY`, and programs then use that address as their proxy (CVE-2016-5385).
const HTTPOXY: &str = "proxy";

/// Whether the edge removes a header of this folded name. A trusted proxy may send it, but only under its
/// exact name (`is_exact`): a proxy forwards unknown headers, including other spellings.
pub(crate) fn is_withheld(folded: &str, is_exact: bool, is_from_trusted: bool) -> bool {
    let is_for_proxies =
        || NAMES.contains(&folded) || FAMILIES.iter().any(|family| folded.starts_with(family));
    folded == HTTPOXY || (!(is_exact && is_from_trusted) && is_for_proxies())
}
