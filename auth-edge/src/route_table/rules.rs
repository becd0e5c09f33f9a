//! Which rule answers a request.
//!
//! Invariants
//! - The most specific rule wins whatever the order in the file: one that names the host before one that names none, then the
//!   longer path, an exact path before a prefix, one that names the method before one that names none.
//! - Two rules never tie: the file is refused where they would.

use std::sync::Arc;

use axum::http::Method;

use super::{Guard, Route};
use crate::values::host_name;
use crate::values::path::RequestPath;

/// What a rule is looked for by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requested<'a> {
    /// Host and port the browser requested; empty where nobody knows.
    pub(crate) host: &'a str,
    /// The method; a WebSocket is requested by GET over every version of HTTP.
    pub(crate) method: &'a Method,
    /// The path.
    pub(crate) path: &'a RequestPath,
}

/// What the table says about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// This rule answers.
    Route(Arc<Route>),
    /// A rule that requires more would answer if letter case and closing dots did not count, and upstreams differ in
    /// whether they count.
    Ambiguous,
    /// Rules answer at this host and path, but to these methods alone.
    OtherMethods(Vec<Method>),
    /// No rule answers.
    Nothing,
}

/// Rules, the most specific first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules(Vec<Arc<Route>>);

impl Rules {
    /// Sorts rules by how specific they are.
    pub(super) fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| {
            (
                route.hosts.is_empty(),
                std::cmp::Reverse(route.segments.len()),
                route.prefix,
                route.methods.is_empty(),
            )
        });
        Self(routes.into_iter().map(Arc::new).collect())
    }

    /// All of them, the most specific first.
    pub(crate) fn all(&self) -> &[Arc<Route>] {
        &self.0
    }

    /// Those that match a request as it is, the most specific first.
    pub(crate) fn matching<'a>(&'a self, requested: Requested<'a>) -> impl Iterator<Item = &'a Arc<Route>> {
        self.0.iter().filter(move |route| {
            route.takes_host(requested.host)
                && route.takes_method(requested.method)
                && route.matches(requested.path.segments(), |rule, segment| rule == segment)
        })
    }

    /// The rule for a request.
    #[must_use]
    pub(crate) fn find(&self, requested: Requested<'_>) -> Match {
        let segments = requested.path.segments();
        let by = |same: fn(&str, &str) -> bool| {
            self.0.iter().find(|route| {
                route.takes_host(requested.host)
                    && route.takes_method(requested.method)
                    && route.matches(segments, same)
            })
        };
        let exact = by(|rule, segment| rule == segment);
        let loose = by(|rule, segment| rule == segment || are_alike(rule, segment));
        match (exact, loose) {
            (Some(exact), Some(loose)) if Arc::ptr_eq(exact, loose) => Match::Route(Arc::clone(exact)),
            (Some(exact), Some(loose)) if requires_no_more(loose, exact) => Match::Route(Arc::clone(exact)),
            (Some(exact), None) => Match::Route(Arc::clone(exact)),
            (Some(_), Some(_)) => Match::Ambiguous,
            (None, _) => self.by_other_methods(requested),
        }
    }

    /// The methods by which something answers at this host and path.
    fn by_other_methods(&self, requested: Requested<'_>) -> Match {
        let mut methods = Vec::new();
        for route in &self.0 {
            let there = route.takes_host(requested.host)
                && route.matches(requested.path.segments(), |rule, segment| rule == segment);
            for method in route.methods.iter().filter(|_| there) {
                if !methods.contains(method) {
                    methods.push(method.clone());
                }
            }
        }
        if methods.is_empty() {
            Match::Nothing
        } else {
            Match::OtherMethods(methods)
        }
    }
}

impl Route {
    fn takes_host(&self, requested: &str) -> bool {
        self.hosts.is_empty() || self.host_named_by(requested).is_some()
    }

    /// The host of this rule that an authority names, as the rule has it; `None` where the rule names none.
    pub(crate) fn host_named_by(&self, authority: &str) -> Option<&str> {
        let mut hosts = self.hosts.iter().map(String::as_str);
        hosts.find(|host| host_name::is(authority, host))
    }

    fn takes_method(&self, method: &Method) -> bool {
        self.methods.is_empty() || self.methods.contains(method)
    }

    fn matches(&self, path: &[String], same: fn(&str, &str) -> bool) -> bool {
        let long_enough = if self.prefix {
            path.len() >= self.segments.len()
        } else {
            path.len() == self.segments.len()
        };
        long_enough
            && self
                .segments
                .iter()
                .zip(path)
                .all(|(rule, segment)| same(rule, segment))
    }
}

/// Whether two segments are one to an upstream that does not care for case, or drops closing dots and spaces as Windows
/// does.
fn are_alike(rule: &str, segment: &str) -> bool {
    let (rule, segment) = (trimmed(rule), trimmed(segment));
    if rule.is_ascii() && segment.is_ascii() {
        rule.eq_ignore_ascii_case(segment)
    } else {
        rule.to_lowercase() == segment.to_lowercase()
    }
}

fn trimmed(segment: &str) -> &str {
    segment.trim_end_matches(['.', ' '])
}

fn requires_no_more(loose: &Route, exact: &Route) -> bool {
    loose.guard == Guard::Open
        || (loose.guard == exact.guard
            && loose.requirements == exact.requirements
            && loose.bearer == exact.bearer
            && loose.csrf <= exact.csrf)
}
