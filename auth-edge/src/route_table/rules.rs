//! Finds the rule for a request.
//!
//! Invariants
//! - The most specific rule wins, regardless of the order in the file. A rule with a host comes first, then the
//!   longer path, an exact path before a prefix, then a rule with a method.
//! - If the specific rules do not name the method, no less specific rule with weaker requirements matches.
//! - Two rules never tie: such a file is rejected.
//! - An ambiguous path matches only a rule with `encoded_path`, and only if every reading leads to it.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::http::Method;

use super::requirements::Requirements;
use super::{Guard, Route};
use crate::values::host_name;
use crate::values::path::RequestPath;

/// The properties of a request that select a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteQuery<'a> {
    /// Host and port that the browser requested; empty if unknown.
    pub(crate) host: &'a str,
    /// The method. A WebSocket counts as GET in every version of HTTP.
    pub(crate) method: &'a Method,
    /// The path.
    pub(crate) path: &'a RequestPath,
}

/// The result for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// This rule matches.
    Route(Arc<Route>),
    /// If letter case and trailing dots were ignored, a stricter rule would match or take precedence. Upstreams
    /// differ in whether they ignore them.
    Ambiguous,
    /// Rules match this host and path, but only for these methods; the rule for other methods requires less.
    OtherMethods(Vec<Method>),
    /// No rule matches.
    Nothing,
}

impl Match {
    /// The matching rule.
    pub(crate) fn route(self) -> Option<Arc<Route>> {
        match self {
            Self::Route(route) => Some(route),
            Self::Ambiguous | Self::OtherMethods(_) | Self::Nothing => None,
        }
    }
}

/// Rules, the most specific first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules(Vec<Arc<Route>>);

impl Rules {
    /// Sorts rules by how specific they are.
    pub(super) fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| (route.place(), route.methods.is_empty()));
        Self(routes.into_iter().map(Arc::new).collect())
    }

    /// All rules, the most specific first.
    pub(crate) fn all(&self) -> &[Arc<Route>] {
        &self.0
    }

    /// The rule for a request.
    #[must_use]
    pub(crate) fn find(&self, requested: RouteQuery<'_>) -> Match {
        let found = self.find_reading(requested, requested.path.segments());
        if !requested.path.is_ambiguous() {
            return found;
        }
        let leads_there = |segments: &[String]| self.find_reading(requested, segments) == found;
        match &found {
            Match::Route(route) if route.encoded_path && requested.path.readings().all(leads_there) => found,
            _ => Match::Ambiguous,
        }
    }

    /// The rule for one reading of a request's path.
    fn find_reading(&self, requested: RouteQuery<'_>, segments: &[String]) -> Match {
        let Some(found) = self.first(requested, segments, is_same) else {
            return match allowed(self.rules_at(requested, segments, is_same)) {
                methods if methods.is_empty() => Match::Nothing,
                methods => Match::OtherMethods(methods),
            };
        };
        let loose = self.first(requested, segments, are_alike).unwrap_or(found);
        let requires_more = |route: &Arc<Route>| !requires_no_more(route, found);
        // If the nearer rules do not name the method, no wider rule with weaker requirements matches.
        let is_nearer = |than: &Arc<Route>, same| {
            let mut nearer = self.nearer(than, requested, segments, same);
            nearer.any(requires_more)
        };
        if is_nearer(found, is_same) {
            Match::OtherMethods(allowed(self.nearer(found, requested, segments, is_same)))
        } else if requires_more(loose) || is_nearer(loose, are_alike) {
            Match::Ambiguous
        } else {
            Match::Route(Arc::clone(found))
        }
    }

    /// The most specific rule that matches a request.
    fn first<'a>(
        &'a self,
        requested: RouteQuery<'a>,
        segments: &'a [String],
        same: Same,
    ) -> Option<&'a Arc<Route>> {
        self.rules_at(requested, segments, same)
            .find(|route| route.takes_method(requested.method))
    }

    /// The rules for other methods at a host and path more specific than this rule's.
    fn nearer<'a>(
        &'a self,
        than: &Route,
        requested: RouteQuery<'a>,
        segments: &'a [String],
        same: Same,
    ) -> impl Iterator<Item = &'a Arc<Route>> {
        let place = than.place();
        self.0
            .iter()
            .take_while(move |route| route.place() < place)
            .filter(move |route| {
                !route.takes_method(requested.method) && route.is_at(requested.host, segments, same)
            })
    }

    /// The rules for a host and path, for any method.
    fn rules_at<'a>(
        &'a self,
        requested: RouteQuery<'a>,
        segments: &'a [String],
        same: Same,
    ) -> impl Iterator<Item = &'a Arc<Route>> {
        self.0
            .iter()
            .filter(move |route| route.is_at(requested.host, segments, same))
    }
}

/// Whether a rule's segment equals a path's segment.
type Same = fn(&str, &str) -> bool;

/// The methods of these rules, each once.
fn allowed<'a>(routes: impl Iterator<Item = &'a Arc<Route>>) -> Vec<Method> {
    let mut methods = Vec::new();
    for method in routes.flat_map(|route| &route.methods) {
        if !methods.contains(method) {
            methods.push(method.clone());
        }
    }
    methods
}

impl Route {
    /// How specific host and path are: a smaller key is more specific.
    fn place(&self) -> (bool, Reverse<usize>, bool) {
        (self.hosts.is_empty(), Reverse(self.segments.len()), self.prefix)
    }

    fn is_at(&self, host: &str, segments: &[String], same: Same) -> bool {
        (self.hosts.is_empty() || self.host_named_by(host).is_some()) && self.matches(segments, same)
    }

    /// The rule's own spelling of the host in an authority; `None` if the rule names no host.
    pub(crate) fn host_named_by(&self, authority: &str) -> Option<&str> {
        let mut hosts = self.hosts.iter().map(String::as_str);
        hosts.find(|host| host_name::is(authority, host))
    }

    fn takes_method(&self, method: &Method) -> bool {
        self.methods.is_empty() || self.methods.contains(method)
    }

    fn matches(&self, path: &[String], same: Same) -> bool {
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

fn is_same(rule: &str, segment: &str) -> bool {
    rule == segment
}

/// Whether two segments are equal for an upstream that ignores case, or trailing dots and spaces as Windows
/// does.
fn are_alike(rule: &str, segment: &str) -> bool {
    if rule == segment {
        return true;
    }
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

/// Whether every request that passes one rule would also pass the other. `Page` and `Api` count as equal.
fn requires_no_more(other: &Route, passed: &Route) -> bool {
    // The usual case: no other rule is near.
    if std::ptr::eq(other, passed) {
        return true;
    }
    let asks_no_more =
        other.requirements == passed.requirements || other.requirements == Requirements::default();
    other.guard == Guard::Open
        || (passed.guard != Guard::Open
            && asks_no_more
            // Without `bearer` no token passes.
            && (passed.bearer.is_none() || other.bearer == passed.bearer)
            && other.csrf <= passed.csrf)
}
