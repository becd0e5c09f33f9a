//! What a session still lacks after a sign-in that was requested for it: another one would go round in circles.
//!
//! A sign-in that leads to a route requests all the route requires of one ([`super::login_parameters`]). What its session lacks all the
//! same the browser remembers for a while, under a name that holds for this session and these demands alone; a guard that
//! meets it says no instead of sending the visitor to sign in. Deliberately absent: any effect by which it could grant access.

use crate::sessions::CachedSession;
use crate::sessions::cookies::SessionId;
use crate::sign_in::SignIn;
use crate::values::return_to::ReturnTo;

/// What the session of a sign-in that leads here lacks although it was requested; `None` if nothing, or nothing a sign-in brings.
#[must_use]
pub(super) fn lacking(
    sign_in: &SignIn,
    id: &SessionId,
    session: &CachedSession,
    to: &ReturnTo,
) -> Option<String> {
    let route = sign_in.routes.route_of(to)?;
    let checked = route.requirements.check(session, sign_in.clock.now_ms());
    let missing = checked
        .and_then(|()| route.requirements.check_connection(session, &sign_in.providers))
        .err()?;
    missing
        .is_of_sign_in()
        .then(|| route.requirements.lacking_name(id))
}

/// What the browser's session lacks after a sign-in that leads here and was refused, since the provider does not tell when
/// people signed in.
#[must_use]
pub(super) fn undated(sign_in: &SignIn, id: &SessionId, to: &ReturnTo) -> Option<String> {
    let route = sign_in.routes.route_of(to)?;
    route
        .requirements
        .max_age_secs
        .map(|_| route.requirements.lacking_name(id))
}
