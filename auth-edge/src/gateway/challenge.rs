//! What `WWW-Authenticate` requires of a program (RFC 6750, section 3; RFC 9470, section 3).

use axum::http::HeaderValue;

use crate::route_table::requirements::Requirements;

/// The error of RFC 9470, section 3.
pub(super) const STEP_UP: &str = "insufficient_user_authentication";

/// A sign-in that is younger, or of another class: all that the route requires, so that one sign-in is enough.
pub(super) fn step_up(requirements: &Requirements) -> Option<HeaderValue> {
    let mut challenge =
        format!("Bearer error=\"{STEP_UP}\", error_description=\"A different sign-in is needed\"");
    for (name, value) in step_up_parameters(requirements) {
        challenge.push_str(&format!(", {name}=\"{value}\""));
    }
    HeaderValue::try_from(challenge).ok()
}

/// What of a sign-in is required, as parameters of a challenge.
pub(super) fn step_up_parameters(requirements: &Requirements) -> Vec<(&'static str, String)> {
    let mut parameters = Vec::new();
    if !requirements.acr.is_empty() {
        parameters.push(("acr_values", requirements.acr.join(" ")));
    }
    parameters.extend(
        requirements
            .max_age_secs
            .map(|secs| ("max_age", secs.to_string())),
    );
    parameters
}

/// Scopes nobody granted. Scope tokens hold neither quotes nor backslashes (RFC 6749, section 3.3).
pub(super) fn scopes(scopes: &[String]) -> Option<HeaderValue> {
    let scopes = scopes.join(" ");
    HeaderValue::try_from(format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_names_all_the_route_asks_of_a_sign_in() {
        let requirements = Requirements {
            acr: vec!["gold".to_owned(), "urn:silver".to_owned()],
            max_age_secs: Some(900),
            ..Requirements::default()
        };
        assert_eq!(
            step_up(&requirements).unwrap(),
            "Bearer error=\"insufficient_user_authentication\", error_description=\"A different sign-in is needed\", \
             acr_values=\"gold urn:silver\", max_age=\"900\""
        );
        assert_eq!(
            scopes(&["orders:read".to_owned(), "orders:write".to_owned()]).unwrap(),
            "Bearer error=\"insufficient_scope\", scope=\"orders:read orders:write\""
        );
    }
}
