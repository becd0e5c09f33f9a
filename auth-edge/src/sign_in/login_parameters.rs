//! The parameters that one login adds to the authorization request, from its address and its route.
//!
//! Invariants
//! - Only the allow-list is read from the query.
//! - A request cannot weaken what a route requires.
//! - No parameter of the protocol can be set.
//!
//! Deliberately absent: the configured parameters of all logins, which `oidc` adds.

use session_proto::v1::SignInDemand;

use crate::http::request;
use crate::route_table::Route;
use crate::values::allowed_parameters::{AllowedParameter, CONNECTION, STANDARD_PARAMETERS, fits};

/// Most encoded bytes of a visitor's values. The redirect also holds the rest of the authorization request
/// and the transaction's cookie, in a head of 4 KiB ([`crate::http::answer_head`]).
const MAX_VISITOR_BYTES: usize = 768;

/// The parameters that this login adds to the authorization request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoginParameters {
    /// Parameters, each name once.
    pub(crate) extra: Vec<(String, String)>,
    /// Largest age of the authentication, in seconds.
    pub(crate) max_age: Option<u64>,
    /// Organization requested by this login.
    pub(crate) organization: Option<String>,
    /// Whether the provider has to ask the user, even if a user is signed in there.
    pub(crate) needs_account_prompt: bool,
    /// Whether the visitor's address, not the route, requests a silent sign-in.
    pub(crate) is_silent_by_query: bool,
}

impl LoginParameters {
    /// Reads the allowed parameters of the query (the first of repeated ones) and those of the route. Omits
    /// values that do not fit.
    #[must_use]
    pub(crate) fn of(
        query: &str,
        allowed: &[AllowedParameter],
        route: Option<&Route>,
        organization_is_configured: bool,
    ) -> Self {
        let mut wanted = Self::default();
        let mut room = MAX_VISITOR_BYTES;
        for name in names(allowed, route) {
            let rule = allowed.iter().find(|allowed| allowed.name == name);
            let requested = rule.and_then(|rule| {
                request::first_parameter(query, name)
                    .filter(|value| rule.allows(value) && takes_room(&mut room, value))
            });
            let demanded = route.and_then(|route| demanded(route, name));
            let by_visitor = requested.is_some();
            let Some(value) = stricter(name, requested, demanded) else {
                continue;
            };
            match name {
                "max_age" => wanted.max_age = value.parse().ok(),
                // A visitor must not bypass the configured organization by naming another.
                "organization" if organization_is_configured => {}
                "organization" => {
                    wanted.organization = Some(value.clone());
                    wanted.extra.push((name.to_owned(), value));
                }
                _ => {
                    wanted.is_silent_by_query |= by_visitor && name == "prompt" && is_silent(&value);
                    wanted.extra.push((name.to_owned(), value));
                }
            }
        }
        if wanted.silent() && wanted.max_age == Some(0) {
            // "Do not ask" and "ask again" contradict each other (OpenID Connect Core, section 3.1.2.3).
            wanted.max_age = None;
        }
        wanted
    }

    /// Whether no interaction is allowed (`prompt=none`).
    #[must_use]
    pub(crate) fn silent(&self) -> bool {
        self.get("prompt").is_some_and(is_silent)
    }

    /// The authentication context classes requested.
    #[must_use]
    pub(crate) fn acr_values(&self) -> Option<&str> {
        self.get("acr_values")
    }

    /// Lets the provider ask the user.
    pub(crate) fn allow_interaction(&mut self) {
        self.extra.retain(|(name, _)| name != "prompt");
    }

    /// Requires a new authentication in the demanded class. This overrides all other parameters.
    pub(crate) fn require_new_sign_in(&mut self, demand: &SignInDemand) {
        self.max_age = Some(0);
        self.extra
            .retain(|(name, value)| name != "prompt" || !is_silent(value));
        self.is_silent_by_query = false;
        if fits("acr_values", &demand.acr) {
            self.extra.retain(|(name, _)| name != "acr_values");
            self.extra.push(("acr_values".to_owned(), demand.acr.clone()));
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.extra.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The parameters that a login may have: the standard ones, those of the settings, those of the route.
fn names<'a>(allowed: &'a [AllowedParameter], route: Option<&'a Route>) -> Vec<&'a str> {
    let mut names = STANDARD_PARAMETERS.to_vec();
    let of_route = route.into_iter().flat_map(|route| route.sign_in.keys());
    let of_route = of_route.filter(|name| *name != CONNECTION);
    for name in allowed.iter().map(|allowed| &allowed.name).chain(of_route) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// What the route requires of this parameter: its table's `sign_in`, and what its guard requires of sessions.
fn demanded(route: &Route, name: &str) -> Option<String> {
    let preset = route.sign_in.get(name).cloned();
    let requested = match name {
        "max_age" => route.requirements.max_age_secs.map(|secs| secs.to_string()),
        "acr_values" if !route.requirements.acr.is_empty() => Some(route.requirements.acr.join(" ")),
        "organization" => route.requirements.organization.clone(),
        _ => None,
    };
    match name {
        "max_age" => stricter(name, preset, requested),
        _ => preset.or(requested),
    }
    .filter(|value| fits(name, value))
}

/// Subtracts the encoded length of the value from `room`, if it fits.
fn takes_room(room: &mut usize, value: &str) -> bool {
    let encoded: usize = url::form_urlencoded::byte_serialize(value.as_bytes())
        .map(str::len)
        .sum();
    let left = room.checked_sub(encoded);
    *room = left.unwrap_or(*room);
    left.is_some()
}

fn is_silent(prompt: &str) -> bool {
    prompt.split(' ').any(|word| word == "none")
}

/// The route's value, unless the visitor requests a stricter one.
fn stricter(name: &str, requested: Option<String>, demanded: Option<String>) -> Option<String> {
    let (requested, demanded) = match (requested, demanded) {
        (Some(requested), Some(demanded)) => (requested, demanded),
        (requested, demanded) => return demanded.or(requested),
    };
    let more = match name {
        "max_age" => requested.parse::<u64>().ok() < demanded.parse::<u64>().ok(),
        "prompt" => is_silent(&demanded),
        _ => false,
    };
    Some(if more { requested } else { demanded })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::route_table::file::{self, RouteFileContext};
    use crate::route_table::requirements::Requirements;

    fn rules(texts: &[&str]) -> Vec<AllowedParameter> {
        let rules = texts.iter().map(|text| AllowedParameter::parse(text));
        rules.collect::<Result<_, _>>().unwrap()
    }

    fn all() -> Vec<AllowedParameter> {
        rules(&STANDARD_PARAMETERS)
    }

    fn of(query: &str) -> LoginParameters {
        LoginParameters::of(query, &all(), None, false)
    }

    fn route(demands: &[(&str, &str)]) -> Route {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let table = "[[route]]\npath = \"/a\"\nguard = \"page\"\nupstream = \"dir:.\"\n";
        let table = file::parse(table, &RouteFileContext::default()).unwrap();
        Route {
            sign_in: demands.iter().map(pair).collect::<BTreeMap<_, _>>(),
            ..Route::clone(&table.routes.all()[0])
        }
    }

    fn on_route(query: &str, demands: &[(&str, &str)]) -> LoginParameters {
        LoginParameters::of(query, &all(), Some(&route(demands)), false)
    }

    // conformance: B-001
    #[test]
    fn no_query_parameter_can_set_a_protocol_parameter() {
        let hostile = "client_id=x&redirect_uri=x&state=x&nonce=x&code_challenge=x&response_type=token&scope=x\
                       &response_mode=x&request=x&request_uri=x&audience=x&code_challenge_method=plain&resource=x";
        assert_eq!(of(hostile), LoginParameters::default());
    }

    #[test]
    fn what_has_no_room_beside_the_others_is_left_out() {
        let long = "a".repeat(500);
        let query = format!("screen_hint=signup&login_hint={long}&invitation={long}&ui_locales=de");
        let names: Vec<String> = of(&query).extra.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["invitation", "ui_locales", "screen_hint"]);
    }

    #[test]
    fn the_first_of_repeated_parameters_wins() {
        assert_eq!(
            of("login_hint=a&login_hint=b").extra,
            [("login_hint".to_owned(), "a".to_owned())]
        );
    }

    #[test]
    fn configuration_narrows_or_switches_off_the_list() {
        let narrowed = LoginParameters::of("login_hint=a&prompt=login", &rules(&["prompt"]), None, false);
        assert_eq!(narrowed.extra.len(), 1);
        let off = LoginParameters::of("login_hint=a&prompt=login", &[], None, false);
        assert_eq!(off, LoginParameters::default());
    }

    #[test]
    fn an_operator_allows_any_parameter_by_query_and_a_route_sets_any() {
        let allowed = rules(&["kc_idp_hint=google|github", "session_transfer_token"]);
        let wanted = |query, route| LoginParameters::of(query, &allowed, route, false).extra;
        let pairs = |pairs: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(owned).collect::<Vec<_>>()
        };
        let query = "kc_idp_hint=google&session_transfer_token=t&hd=example.com&login_hint=a";
        assert_eq!(
            wanted(query, None),
            pairs(&[("kc_idp_hint", "google"), ("session_transfer_token", "t")])
        );
        assert_eq!(wanted("kc_idp_hint=evil", None), []);
        let route = route(&[
            ("domain_hint", "example.com"),
            ("kc_idp_hint", "github"),
            ("connection", "a"),
        ]);
        assert_eq!(
            wanted("kc_idp_hint=google&domain_hint=evil.example", Some(&route)),
            pairs(&[("kc_idp_hint", "github"), ("domain_hint", "example.com")])
        );
    }

    #[test]
    fn a_configured_organization_cannot_be_got_around() {
        let configured = LoginParameters::of("organization=org_evil", &all(), None, true);
        assert_eq!(configured, LoginParameters::default());
        assert_eq!(of("organization=org_a").organization.as_deref(), Some("org_a"));
    }

    // conformance: A-003
    #[test]
    fn values_that_do_not_fit_are_left_out() {
        let long = format!("login_hint={}", "a".repeat(513));
        let classes = format!("acr_values={}", "a".repeat(201));
        for query in [
            &long,
            &classes,
            "login_hint=a%0d%0ab",
            "login_hint=",
            "max_age=-1",
            "max_age=soon",
        ] {
            assert_eq!(of(query), LoginParameters::default(), "{query}");
        }
        assert_eq!(of("max_age=0").max_age, Some(0));
        assert_eq!(of("max_age=0&prompt=none").max_age, None);
    }

    #[test]
    fn what_a_guard_asks_of_the_session_is_requested_of_the_sign_in_that_leads_to_it() {
        let route = Route {
            requirements: Requirements {
                max_age_secs: Some(900),
                acr: vec!["gold".to_owned(), "silver".to_owned()],
                organization: Some("org_a".to_owned()),
                ..Requirements::default()
            },
            ..route(&[("max_age", "1000")])
        };
        for query in ["", "max_age=9999&acr_values=bronze&organization=org_b"] {
            for allowed in [all(), Vec::new()] {
                let wanted = LoginParameters::of(query, &allowed, Some(&route), false);
                assert_eq!(
                    (
                        wanted.max_age,
                        wanted.acr_values(),
                        wanted.organization.as_deref()
                    ),
                    (Some(900), Some("gold silver"), Some("org_a")),
                    "{query}"
                );
            }
        }
    }

    #[test]
    fn what_a_route_demands_cannot_be_requested_away_but_more_can_be_requested() {
        let demands = [("acr_values", "gold"), ("max_age", "600"), ("prompt", "login")];
        for query in ["", "acr_values=bronze&max_age=9999&prompt=none"] {
            let wanted = on_route(query, &demands);
            assert_eq!(
                (wanted.acr_values(), wanted.max_age, wanted.silent()),
                (Some("gold"), Some(600), false),
                "{query}"
            );
        }
        assert_eq!(on_route("max_age=60", &demands).max_age, Some(60));
        let silent = [("prompt", "none")];
        assert!(on_route("", &silent).silent() && !on_route("", &silent).is_silent_by_query);
        assert!(!on_route("prompt=login", &silent).silent());
        assert!(of("prompt=none").is_silent_by_query);
    }
}
