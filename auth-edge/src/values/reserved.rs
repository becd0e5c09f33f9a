//! The edge's own paths: `routes.rs` serves them, and no setting or route of a file may take one.

/// The base of all the edge's own routes.
pub(crate) const BASE_PATH: &str = "/api/auth";

/// The base of the edge's published metadata (RFC 8615).
const WELL_KNOWN_PATH: &str = "/.well-known/vestibule";

/// The metadata of routes with `bearer`: where to get a token (RFC 9728, section 3.1). The path of the route
/// follows. Other paths below it follow the route table.
pub(crate) const RESOURCE_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The callback of sign-ins. A listed provider's callback is below it, at its id.
pub(crate) const CALLBACK_PATH: &str = "/api/auth/callback";

/// The sign-out route.
pub(crate) const LOGOUT_PATH: &str = "/api/auth/logout";

/// The forward-auth route of other proxies.
pub(crate) const CHECK_PATH: &str = "/api/auth/check";

/// The same route at the address of oauth2-proxy (`EDGE_ALIASES`).
pub(crate) const ALIAS_CHECK_PATH: &str = "/oauth2/auth";

/// The profile of the signed-in user.
pub(crate) const ME_PATH: &str = "/api/auth/me";

/// The page that offers a kept form again.
pub(crate) const FORM_PATH: &str = "/api/auth/form";

/// The parameter of that path that names the form's target.
pub(crate) const FORM_ROUTE_PARAMETER: &str = "for";

/// The unauthorized answer, for proxies that redirect there.
pub(crate) const UNAUTHORIZED_PATH: &str = "/api/auth/401";

/// Whether a user is signed in, and for how long.
pub(crate) const STATUS_PATH: &str = "/api/auth/status";

/// The page that waits until the browser has bound its session, or reports that it did not.
pub(crate) const DEVICE_PATH: &str = "/api/auth/device";

/// The URL of that page. It continues to `return_to` as soon as the session is bound.
pub(crate) fn device_page(return_to: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("returnTo", return_to);
    format!("{DEVICE_PATH}?{}", query.finish())
}

/// The route that binds a session to a key of the browser's device.
pub(crate) const DEVICE_REGISTER_PATH: &str = "/api/auth/device/register";

/// The route that verifies proofs of that key.
pub(crate) const DEVICE_REFRESH_PATH: &str = "/api/auth/device/refresh";

/// Where the page in a frame begins a sign-in.
pub(crate) const FRAME_LOGIN_PATH: &str = "/api/auth/frame/login";

/// Where the page in a frame finishes a sign-in with the answer that the pop-up window received.
pub(crate) const FRAME_CALLBACK_PATH: &str = "/api/auth/frame/callback";

/// The access token, if enabled.
pub(crate) const ACCESS_TOKEN_PATH: &str = "/api/auth/access-token";

/// The provider's logout messages (OpenID Connect Back-Channel Logout 1.0).
pub(crate) const BACK_CHANNEL_PATH: &str = "/api/auth/backchannel-logout";

/// The receiver of security events (RFC 8935).
pub(crate) const EVENTS_PATH: &str = "/api/auth/events";

/// The receiver of Global Token Revocation requests.
pub(crate) const REVOCATION_PATH: &str = "/api/auth/global-token-revocation";

/// The provider's sign-out of this browser (OpenID Connect Front-Channel Logout 1.0).
pub(crate) const FRONT_CHANNEL_PATH: &str = "/api/auth/frontchannel-logout";

/// The logo of the edge's own pages.
pub(crate) const LOGO_PATH: &str = "/api/auth/logo";

/// The base of the calls of `BrowserSessionService`.
const GRPC_WEB_PREFIX: &str = "/session.v1.BrowserSessionService";

/// The base of the calls of `OperatorSessionService`.
const OPERATORS_PREFIX: &str = "/session.v1.OperatorSessionService";

/// The base of the paths that are forwarded to the analytics server.
pub(crate) const ANALYTICS_PREFIX: &str = "/ingest";

/// Routes that no setting moves.
const FIXED: [&str; 19] = [
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
    FRAME_LOGIN_PATH,
    FRAME_CALLBACK_PATH,
    BACK_CHANNEL_PATH,
    EVENTS_PATH,
    REVOCATION_PATH,
    FRONT_CHANNEL_PATH,
    CHECK_PATH,
];

/// All paths below these are reserved.
const TAKEN_BELOW: [&str; 4] = [
    WELL_KNOWN_PATH,
    GRPC_WEB_PREFIX,
    OPERATORS_PREFIX,
    ANALYTICS_PREFIX,
];

/// Whether a path of these segments, decoded and normalised, is one of the edge's own routes, in any letter
/// case. The gateway answers 404 to it, and does not forward it.
#[must_use]
pub(crate) fn is_reserved<S: AsRef<str>>(segments: &[S]) -> bool {
    lie_below(&[BASE_PATH, WELL_KNOWN_PATH], segments)
}

/// Whether a path belongs to a route that no setting moves, enabled or not: nothing else can use it.
#[must_use]
pub(crate) fn is_fixed(path: &str) -> bool {
    FIXED.iter().any(|fixed| fixed.eq_ignore_ascii_case(path)) || lie_below(&TAKEN_BELOW, &segments(path))
}

/// The segments of one of our paths, in the form that is matched.
#[must_use]
pub(crate) fn segments(path: &str) -> Vec<&str> {
    path.split('/').skip(1).collect()
}

fn lie_below<S: AsRef<str>>(bases: &[&str], segments: &[S]) -> bool {
    bases.iter().any(|base| lies_below(base, segments))
}

/// Whether a path of these segments is this path or below it, in any letter case.
pub(crate) fn lies_below<S: AsRef<str>>(base: &str, segments: &[S]) -> bool {
    let mut requested = segments.iter().map(AsRef::as_ref);
    base.split('/').skip(1).all(|part| {
        requested
            .next()
            .is_some_and(|segment: &str| segment.eq_ignore_ascii_case(part))
    })
}
