//! Challenges in `WWW-Authenticate` for programs (RFC 6750, section 3; RFC 9470, section 3).

use axum::http::HeaderValue;

use crate::route_table::requirements::Requirements;

/// The error of RFC 9470, section 3.
pub(super) const STEP_UP: &str = "insufficient_user_authentication";

/// A challenge with this scheme and these parameters. No value may hold a quote or a backslash.
pub(super) fn challenge(scheme: &str, parameters: &[(&str, String)]) -> Option<HeaderValue> {
    let listed = parameters
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""));
    let challenge = format!("{scheme} {}", listed.collect::<Vec<_>>().join(", "));
    HeaderValue::try_from(challenge.trim_end()).ok()
}

/// Asks for a more recent or stronger sign-in. Lists all requirements, so one sign-in is enough.
pub(super) fn step_up(requirements: &Requirements) -> Option<HeaderValue> {
    let mut parameters = vec![
        ("error", STEP_UP.to_owned()),
        ("error_description", "A different sign-in is needed".to_owned()),
    ];
    parameters.extend(step_up_parameters(requirements));
    challenge("Bearer", &parameters)
}

/// The sign-in requirements as parameters of a challenge.
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

/// Names scopes that the token lacks. Scope tokens hold no quotes or backslashes (RFC 6749, section 3.3).
pub(super) fn scopes(scopes: &[String]) -> Option<HeaderValue> {
    let error = "insufficient_scope".to_owned();
    challenge("Bearer", &[("error", error), ("scope", scopes.join(" "))])
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
