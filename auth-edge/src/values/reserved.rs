//! The paths that are the edge's own, whatever the route table says.

/// Where all of the edge's own routes lie.
pub(crate) const BASE_PATH: &str = "/api/auth";

/// Where the edge publishes what machines look for (RFC 8615).
const WELL_KNOWN_PATH: &str = "/.well-known/vestibule";

/// Where people sign out.
pub(crate) const LOGOUT_PATH: &str = "/api/auth/logout";

/// Where other proxies ask whether somebody may pass.
pub(crate) const CHECK_PATH: &str = "/api/auth/check";

/// Below it lie the calls of `BrowserSessionService`.
const GRPC_WEB_PREFIX: &str = "/session.v1.BrowserSessionService";

/// Below it lies what passes to the analytics server.
pub(crate) const ANALYTICS_PREFIX: &str = "/ingest";

/// Routes that stay where they are, whatever the settings say.
const FIXED: [&str; 9] = [
    BASE_PATH,
    LOGOUT_PATH,
    "/api/auth/me",
    "/api/auth/401",
    "/api/auth/status",
    "/api/auth/access-token",
    "/api/auth/backchannel-logout",
    "/api/auth/frontchannel-logout",
    CHECK_PATH,
];

/// Below these everything is taken.
const TAKEN_BELOW: [&str; 3] = [WELL_KNOWN_PATH, GRPC_WEB_PREFIX, ANALYTICS_PREFIX];

/// Whether a path of these segments, decoded and normalised, lies among the edge's own routes, in whatever letter case: the gateway
/// answers 404 to it instead of passing on to an upstream what looks like ours.
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
    bases.iter().any(|base| {
        let mut requested = segments.iter().map(AsRef::as_ref);
        base.split('/').skip(1).all(|part| {
            requested
                .next()
                .is_some_and(|segment: &str| segment.eq_ignore_ascii_case(part))
        })
    })
}
