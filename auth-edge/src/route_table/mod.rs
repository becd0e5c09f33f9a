//! The route table: which path is guarded how, and where it leads.
//!
//! Invariants
//! - Rules are written in the very paths [`RequestPath`] gives, so a rule nobody can reach is a mistake.
//! - The most specific rule wins whatever the order in the file.
//! - Two rules never tie.
//!
//! Deliberately absent: hosts, methods and headers as conditions; nothing a client can choose freely takes a guard away.

pub(crate) mod file;
pub(crate) mod missing;
pub(crate) mod requirements;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::uri::{self, PathAndQuery, Scheme};
use axum::http::{HeaderValue, Uri};
use chassis::secret::Reloading;
use url::Url;

use self::requirements::Requirements;
use crate::http::observe::RouteName;
use crate::values::allowed_parameters::CONNECTION;
use crate::values::path::RequestPath;
use crate::values::reserved::{FORM_PATH, FORM_ROUTE_PARAMETER};
use crate::values::return_to::ReturnTo;

/// The route table as it is now: its file may be changed while requests run.
#[derive(Clone)]
pub(crate) struct Routes(Reloading<RouteTable>);

impl Routes {
    /// The routes of a table that may be replaced.
    #[must_use]
    pub(crate) fn new(table: Reloading<RouteTable>) -> Self {
        Self(table)
    }

    /// The route of a path.
    #[must_use]
    pub(crate) fn find(&self, path: &RequestPath) -> Match {
        self.0.load().find(path)
    }

    /// The route a visitor lands on after sign-in; for who comes back to a kept form, the one it was sent to.
    #[must_use]
    pub(crate) fn route_of(&self, return_to: &ReturnTo) -> Option<Arc<Route>> {
        let url = return_to.url();
        let sent_to = (url.path() == FORM_PATH)
            .then(|| url.query_pairs().find(|(name, _)| name == FORM_ROUTE_PARAMETER))
            .flatten();
        let path = sent_to.as_ref().map_or(url.path(), |(_, path)| path);
        let path = RequestPath::parse(path).ok()?;
        match self.find(&path) {
            Match::Route(route) => Some(route),
            Match::Ambiguous | Match::Nothing => None,
        }
    }
}

/// Who may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Visitors are sent to sign in.
    Page,
    /// Callers without a session get JSON.
    Api,
    /// Everybody.
    Open,
}

/// What a guarded route requires of a request that changes something, so that no page of another origin can send it: the
/// later, the more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Csrf {
    /// Nothing: the upstream sees to it.
    None,
    /// `Origin`, `Sec-Fetch-Site`, or where both are absent `Referer`, may not deny that it comes from our own origin.
    #[default]
    Origin,
    /// The `x-csrf` header has to be there too, which no foreign page can send without a preflight.
    Header,
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// Files below a directory.
    Directory(PathBuf),
    /// An HTTP server.
    Http(Server),
}

/// A server requests are passed on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// Only scheme (http or https), host and port are set.
    pub(crate) url: Url,
    /// Whether it speaks HTTP/2 without TLS, as the scheme `h2c` says; over TLS both sides agree on a version.
    pub(crate) prior_knowledge: bool,
    scheme: Option<Scheme>,
    authority: Option<Box<str>>,
}

impl Server {
    /// The server at this URL.
    #[must_use]
    pub(crate) fn new(url: Url, prior_knowledge: bool) -> Self {
        let address: Uri = url.as_str().parse().unwrap_or_default();
        Self {
            scheme: address.scheme().cloned(),
            authority: address.authority().map(|authority| authority.as_str().into()),
            url,
            prior_knowledge,
        }
    }

    /// Whether it can take a request whose body goes on while it answers: over HTTP/2.
    #[must_use]
    pub(crate) fn takes_streams(&self) -> bool {
        self.prior_knowledge || self.url.scheme() == "https"
    }

    /// This path at the server, as requests name it; none if it is no address of HTTP.
    #[must_use]
    pub(crate) fn at(&self, path: PathAndQuery) -> Option<Uri> {
        let mut parts = uri::Parts::default();
        parts.scheme = self.scheme.clone();
        // A copy of its own: one that is shared is counted by all cores.
        parts.authority = self.authority()?.parse().ok();
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).ok()
    }

    /// Host and port as `Host` names them (RFC 9112, section 3.2); the port is left out where it is the scheme's own.
    #[must_use]
    pub(crate) fn host(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.authority()?).ok()
    }

    fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Scheme, host and port, as assertions name the server they are for.
    #[must_use]
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The path as written, for logs and metrics.
    pub(crate) name: Arc<str>,
    /// Decoded segments of the path.
    pub(crate) segments: Vec<String>,
    /// Whether paths below match too.
    pub(crate) prefix: bool,
    /// Who may pass.
    pub(crate) guard: Guard,
    /// Where it leads.
    pub(crate) upstream: Upstream,
    /// Whether the matched prefix is left out towards the upstream.
    pub(crate) strip_prefix: bool,
    /// Whether a signed assertion of who it is goes to the upstream.
    pub(crate) upstream_jwt: bool,
    /// The largest request body, in bytes, where the route has a limit of its own; 0 is none.
    pub(crate) max_body_bytes: Option<u64>,
    /// How requests that pages of other origins have sent are recognised.
    pub(crate) csrf: Csrf,
    /// What the guard requires.
    pub(crate) requirements: Requirements,
    /// Whether a form that meets a dead session is kept while its person signs in.
    pub(crate) keep_form: bool,
    /// Parameters of the authorization request when a sign-in leads here, by name.
    pub(crate) sign_in: BTreeMap<String, String>,
}

impl RouteName for Route {
    fn route_name(&self) -> &str {
        &self.name
    }
}

impl Route {
    /// The provider to sign in at for this route, by its id, where the route names one.
    #[must_use]
    pub(crate) fn connection(&self) -> Option<&str> {
        let by_sign_in = self.sign_in.get(CONNECTION);
        self.requirements
            .connection
            .as_ref()
            .or(by_sign_in)
            .map(String::as_str)
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

    /// How many leading segments the upstream does not see.
    #[must_use]
    pub(crate) fn stripped(&self) -> usize {
        if self.strip_prefix { self.segments.len() } else { 0 }
    }
}

/// What the table says about a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// This rule answers.
    Route(Arc<Route>),
    /// A rule that requires more would answer if letter case and closing dots did not count, and upstreams differ in
    /// whether they count.
    Ambiguous,
    /// No rule answers.
    Nothing,
}

/// All rules, the most specific first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteTable {
    routes: Vec<Arc<Route>>,
}

impl RouteTable {
    /// Sorts rules by how specific they are: longer before shorter, exact before prefix.
    pub(super) fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| (std::cmp::Reverse(route.segments.len()), route.prefix));
        Self {
            routes: routes.into_iter().map(Arc::new).collect(),
        }
    }

    /// All rules, the most specific first.
    #[cfg(test)]
    pub(crate) fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// The rules that match a path as it is, the most specific first.
    pub(super) fn matching<'a>(&'a self, path: &'a RequestPath) -> impl Iterator<Item = &'a Arc<Route>> {
        let matches = |route: &&Arc<Route>| route.matches(path.segments(), |rule, segment| rule == segment);
        self.routes.iter().filter(matches)
    }

    /// The rule for a path.
    #[must_use]
    pub(crate) fn find(&self, path: &RequestPath) -> Match {
        let by = |same: fn(&str, &str) -> bool| {
            self.routes
                .iter()
                .find(|route| route.matches(path.segments(), same))
        };
        let exact = by(|rule, segment| rule == segment);
        let loose = by(|rule, segment| rule == segment || are_alike(rule, segment));
        match (exact, loose) {
            (Some(exact), Some(loose)) if Arc::ptr_eq(exact, loose) => Match::Route(Arc::clone(exact)),
            (Some(exact), Some(loose)) if requires_no_more(loose, exact) => Match::Route(Arc::clone(exact)),
            (Some(exact), None) => Match::Route(Arc::clone(exact)),
            (Some(_), Some(_)) => Match::Ambiguous,
            (None, _) => Match::Nothing,
        }
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
            && loose.csrf <= exact.csrf)
}
