//! Headers that only a proxy may send, because applications believe them: addresses of clients, schemes, certificates, and
//! users, by other names than those that the edge sets itself.

/// The headers, grouped by who reads or sends them. Names are folded: lower case, with `-` for every sign.
#[rustfmt::skip]
const NAMES: [&str; 39] = [
    // Rails and PHP (`HTTP_CLIENT_IP`), and what the usual packages read besides: request-ip, django-ipware, Laravel.
    "client-ip", "forwarded-for", "forwarded-for-ip", "x-forwarded", "x-cluster-client-ip", "x-proxyuser-ip",
    "x-remote-ip", "x-remote-addr", "x-originating-ip", "x-host",
    // chi (`RealIP`), Akamai, Cloudflare, Fastly, Fly.io, Google, Azure, CloudFront, Envoy.
    "true-client-ip", "cf-connecting-ip", "cf-connecting-ipv6", "cf-pseudo-ipv4", "cf-visitor", "fastly-client-ip",
    "fastly-ssl", "fly-client-ip", "x-appengine-user-ip", "x-appengine-remote-addr", "x-azure-clientip",
    "x-azure-socketip", "cloudfront-forwarded-proto", "cloudfront-viewer-address",
    // https, by ingress-nginx, Rack, Microsoft's proxies and ASP.NET behind IIS; certificates by IIS.
    "x-scheme", "x-url-scheme", "front-end-https", "x-arr-ssl", "x-arr-clientcert", "x-client-cert",
    // Where an application lies: gunicorn, uWSGI, Werkzeug and PasteDeploy.
    "script-name", "path-info", "x-script-name",
    // Files that Rack has a proxy send.
    "x-sendfile-type", "x-accel-mapping",
    // Django (`RemoteUserMiddleware`), and programs that read CGI's variables.
    "remote-user", "remote-addr", "x-remote-user", "auth-user",
];

/// Families of them: certificates (Tomcat, Spring, nginx, Apache), ASP.NET behind IIS, Azure, AWS and Google, Envoy, Cloudflare Access and Tailscale.
#[rustfmt::skip]
const FAMILIES: [&str; 11] = [
    "ssl-client-", "x-ssl-", "x-client-cert-", "ms-aspnetcore-", "x-ms-client-principal", "x-amzn-oidc-",
    "x-goog-iap-", "x-goog-authenticated-user-", "x-envoy-", "cf-access-authenticated-user-", "tailscale-user-",
];

/// Becomes `HTTP_PROXY` of CGI programs, which send what they send through it (CVE-2016-5385). No proxy sends it.
const HTTPOXY: &str = "proxy";

/// Whether a header of this folded name reaches no upstream unless a trusted proxy sent it under the name itself
/// (`is_exact`): a proxy passes on what it does not know, other spellings among it.
pub(crate) fn is_withheld(folded: &str, is_exact: bool, is_from_trusted: bool) -> bool {
    let is_for_proxies =
        || NAMES.contains(&folded) || FAMILIES.iter().any(|family| folded.starts_with(family));
    folded == HTTPOXY || (!(is_exact && is_from_trusted) && is_for_proxies())
}
