//! The paths that are the edge's own, whatever the route table says: `routes.rs` serves them, and no setting and no route of
//! a file may take one.

/// Where all of the edge's own routes lie.
pub(crate) const BASE_PATH: &str = "/api/auth";

/// Where the edge publishes what machines look for (RFC 8615).
const WELL_KNOWN_PATH: &str = "/.well-known/vestibule";

/// Where clients of routes with `bearer` find out where to get a token (RFC 9728, section 3.1); the path of the route follows.
/// What is below it for other paths is the route table's.
pub(crate) const RESOURCE_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Where the provider answers a sign-in; a listed provider's callback lies below it, at its id.
pub(crate) const CALLBACK_PATH: &str = "/api/auth/callback";

/// Where people sign out.
pub(crate) const LOGOUT_PATH: &str = "/api/auth/logout";

/// Where other proxies ask whether somebody may pass.
pub(crate) const CHECK_PATH: &str = "/api/auth/check";

/// Who is signed in.
pub(crate) const ME_PATH: &str = "/api/auth/me";

/// Where a form that was kept over a sign-in is offered again.
pub(crate) const FORM_PATH: &str = "/api/auth/form";

/// The parameter of that path which names where the form was sent to.
pub(crate) const FORM_ROUTE_PARAMETER: &str = "for";

/// The unauthorized answer, for proxies that send people there.
pub(crate) const UNAUTHORIZED_PATH: &str = "/api/auth/401";

/// Whether somebody is signed in, and for how long.
pub(crate) const STATUS_PATH: &str = "/api/auth/status";

/// Where a person waits until their browser has bound its session, or is told that it has not.
pub(crate) const DEVICE_PATH: &str = "/api/auth/device";

/// That page, which leads on to `return_to` as soon as the session is bound.
pub(crate) fn device_page(return_to: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("returnTo", return_to);
    format!("{DEVICE_PATH}?{}", query.finish())
}

/// Where a browser binds its session to a key of its device.
pub(crate) const DEVICE_REGISTER_PATH: &str = "/api/auth/device/register";

/// Where it proves to hold that key.
pub(crate) const DEVICE_REFRESH_PATH: &str = "/api/auth/device/refresh";

/// The access token, where it is switched on.
pub(crate) const ACCESS_TOKEN_PATH: &str = "/api/auth/access-token";

/// Where the provider says who is signed out (OpenID Connect Back-Channel Logout 1.0).
pub(crate) const BACK_CHANNEL_PATH: &str = "/api/auth/backchannel-logout";

/// Where transmitters of security events send them (RFC 8935).
pub(crate) const EVENTS_PATH: &str = "/api/auth/events";

/// Where the provider signs this browser out (OpenID Connect Front-Channel Logout 1.0).
pub(crate) const FRONT_CHANNEL_PATH: &str = "/api/auth/frontchannel-logout";

/// The logo of the edge's own pages.
pub(crate) const LOGO_PATH: &str = "/api/auth/logo";

/// Below it lie the calls of `BrowserSessionService`.
const GRPC_WEB_PREFIX: &str = "/session.v1.BrowserSessionService";

/// Below it lies what passes to the analytics server.
pub(crate) const ANALYTICS_PREFIX: &str = "/ingest";

/// Routes that stay where they are, whatever the settings say.
const FIXED: [&str; 16] = [
    LOGO_PATH,
    BASE_PATH,
    CALLBACK_PATH,
    FORM_PATH,
    LOGOUT_PATH,
    ME_PATH,
    UNAUTHORIZED_PATH,
    STATUS_PATH,
    ACCESS_TOKEN_PATH,
    DEVICE_PATH,
    DEVICE_REGISTER_PATH,
    DEVICE_REFRESH_PATH,
    BACK_CHANNEL_PATH,
    EVENTS_PATH,
    FRONT_CHANNEL_PATH,
    CHECK_PATH,
];

/// Below these everything is taken.
const TAKEN_BELOW: [&str; 3] = [WELL_KNOWN_PATH, GRPC_WEB_PREFIX, ANALYTICS_PREFIX];

/// Whether a path of these segments, decoded and normalised, lies among the edge's own routes, in whatever letter case: the
/// gateway answers 404 to it instead of passing on to an upstream what looks like ours.
#[must_use]
pub(crate) fn is_reserved<S: AsRef<str>>(segments: &[S]) -> bool {
    lie_below(&[BASE_PATH, WELL_KNOWN_PATH], segments)
}

/// Whether a path belongs to a route that no setting moves, switched on or not: nothing else can be put there.
#[must_use]
pub(crate) fn is_fixed(path: &str) -> bool {
    FIXED.iter().any(|fixed| fixed.eq_ignore_ascii_case(path)) || lie_below(&TAKEN_BELOW, &segments(path))
}

/// The segments of a path of ours, which is written as it is matched.
#[must_use]
pub(crate) fn segments(path: &str) -> Vec<&str> {
    path.split('/').skip(1).collect()
}

fn lie_below<S: AsRef<str>>(bases: &[&str], segments: &[S]) -> bool {
    bases.iter().any(|base| lies_below(base, segments))
}

/// Whether a path of these segments is this path or lies below it, in whatever letter case.
pub(crate) fn lies_below<S: AsRef<str>>(base: &str, segments: &[S]) -> bool {
    let mut requested = segments.iter().map(AsRef::as_ref);
    base.split('/').skip(1).all(|part| {
        requested
            .next()
            .is_some_and(|segment: &str| segment.eq_ignore_ascii_case(part))
    })
}
