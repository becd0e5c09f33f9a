//! The route table: which request is guarded how, and where it leads; and what another proxy may pass on that asks.
//!
//! Invariants
//! - Rules are written in the very paths [`RequestPath`] gives, so a rule nobody can reach is a mistake.
//! - The most specific rule wins whatever the order in the file ([`rules`]).
//! - A name under which some rule tells an application who somebody is comes from no client, at any rule.
//!
//! Deliberately absent: headers as conditions; nothing a client can choose freely takes a guard away.

pub(crate) mod bearer;
pub(crate) mod claims;
pub(crate) mod file;
pub(crate) mod missing;
pub(crate) mod principal;
pub(crate) mod requirements;
pub(crate) mod rules;
pub(crate) mod upstream_headers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::uri::PathAndQuery;
use axum::http::{Method, Uri};
use chassis::secret::Reloading;
use url::{Position, Url};

use self::bearer::BearerRule;
use self::requirements::Requirements;
pub(crate) use self::rules::{Match, Requested, Rules};
use self::upstream_headers::{ToldNames, UpstreamHeaders};
use crate::values::allowed_parameters::CONNECTION;
use crate::values::path::RequestPath;
use crate::values::reserved::{FORM_PATH, FORM_ROUTE_PARAMETER};
use crate::values::return_to::ReturnTo;

/// The route table as it is now: its file may be changed while requests run.
pub(crate) type Routes = Reloading<RouteTable>;

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
    /// Nowhere from here: another proxy asks whether it may pass the request on.
    OtherProxy,
}

/// A server requests are passed on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// Only scheme (http or https), host and port are set.
    pub(crate) url: Url,
    /// Whether it speaks HTTP/2 without TLS, as the scheme `h2c` says; over TLS both sides agree on a version.
    pub(crate) prior_knowledge: bool,
}

impl Server {
    /// Whether it can take a request whose body goes on while it answers: over HTTP/2.
    #[must_use]
    pub(crate) fn takes_streams(&self) -> bool {
        self.prior_knowledge || self.url.scheme() == "https"
    }

    /// This path at the server, as requests name it; none if it is no address of HTTP.
    #[must_use]
    pub(crate) fn at(&self, path: PathAndQuery) -> Option<Uri> {
        let address = Uri::builder()
            .scheme(self.url.scheme())
            .authority(self.authority());
        address.path_and_query(path).build().ok()
    }

    /// Host and port as `Host` names them (RFC 9112, section 3.2); the port is left out where it is the scheme's own.
    #[must_use]
    pub(crate) fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
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
    /// The hosts it is for; none is all of them.
    pub(crate) hosts: Vec<String>,
    /// The methods it is for; none is all of them.
    pub(crate) methods: Vec<Method>,
    /// Who may pass.
    pub(crate) guard: Guard,
    /// Where it leads.
    pub(crate) upstream: Upstream,
    /// Whether the matched prefix is left out towards the upstream.
    pub(crate) strip_prefix: bool,
    /// Whether the upstream is told the host that browsers know, in place of its own.
    pub(crate) preserve_host: bool,
    /// Whether addresses of the upstream's own in its answer become ours.
    pub(crate) map_addresses: bool,
    /// Headers that tell the upstream who somebody is, under the names it reads.
    pub(crate) headers: UpstreamHeaders,
    /// The claims in the signed assertion of who it is that goes to the upstream; none where none goes.
    pub(crate) upstream_jwt: Option<Arc<[String]>>,
    /// The largest request body, in bytes, where the route has a limit of its own; 0 is none.
    pub(crate) max_body_bytes: Option<u64>,
    /// How requests that pages of other origins have sent are recognised.
    pub(crate) csrf: Csrf,
    /// Whether a request that names another method (`_method` in its query) is held to what `csrf` requires of a change.
    pub(crate) guards_method_override: bool,
    /// Whether paths pass that programs read differently, where every reading leads to this rule.
    pub(crate) encoded_path: bool,
    /// Whether a request keeps its session from ending for want of use.
    pub(crate) rolls: bool,
    /// Whether a check sends visitors to sign in without a word of the proxy.
    pub(crate) redirect: bool,
    /// What the guard requires.
    pub(crate) requirements: Requirements,
    /// Whether a form that meets a dead session is kept while its person signs in.
    pub(crate) keep_form: bool,
    /// What somebody is told whose claims are not as required.
    pub(crate) denied_message: Option<Arc<str>>,
    /// What it requires of a client that shows an access token in the place of a session; none takes no such client.
    pub(crate) bearer: Option<BearerRule>,
    /// Parameters of the authorization request when a sign-in leads here, by name.
    pub(crate) sign_in: BTreeMap<String, String>,
    /// What holds for the whole table it stands in.
    pub(crate) table: TableFacts,
}

/// What holds for every rule of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableFacts {
    /// The names by which applications are told who somebody is: no client's go on.
    pub(crate) told: ToldNames,
    /// Whether rules tell methods apart: then no header of a client's may name another one.
    pub(crate) by_method: bool,
    /// Whether a rule keeps forms: then guarded pages remember whose they would be.
    pub(crate) keeps_forms: bool,
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

    /// How many leading segments the upstream does not see.
    #[must_use]
    pub(crate) fn stripped(&self) -> usize {
        if self.strip_prefix { self.segments.len() } else { 0 }
    }
}

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteTable {
    /// For what the edge itself is asked for.
    pub(crate) routes: Rules,
    /// For what other proxies ask about.
    pub(crate) checks: Rules,
    /// What holds for both.
    pub(crate) facts: TableFacts,
    /// Whether the rules for what other proxies ask about tell methods apart.
    pub(crate) checks_by_method: bool,
}

impl RouteTable {
    /// The table of these rules, of both kinds.
    pub(super) fn new(mut routes: Vec<Route>, checks: Vec<Route>) -> Self {
        let all = || routes.iter().chain(&checks);
        let facts = TableFacts {
            told: ToldNames::of(all().map(|route| &route.headers)),
            by_method: routes.iter().any(|route| !route.methods.is_empty()),
            keeps_forms: routes.iter().any(|route| route.keep_form),
        };
        for route in &mut routes {
            route.table = facts.clone();
        }
        Self {
            checks_by_method: checks.iter().any(|route| !route.methods.is_empty()),
            facts,
            routes: Rules::new(routes),
            checks: Rules::new(checks),
        }
    }

    /// The rule for a request that another proxy asks about. A method that nobody tells is that of no rule, where rules tell
    /// methods apart.
    #[must_use]
    pub(crate) fn find_check(&self, host: &str, method: Option<&Method>, path: &RequestPath) -> Match {
        if self.checks_by_method && method.is_none() {
            return Match::Ambiguous;
        }
        let method = method.unwrap_or(&Method::GET);
        self.checks.find(Requested { host, method, path })
    }

    /// The rule a visitor lands on after sign-in, for who comes back to a kept form the one it was sent to: one of the edge's
    /// own, or else one another proxy asks about.
    #[must_use]
    pub(crate) fn route_of(&self, return_to: &ReturnTo) -> Option<Arc<Route>> {
        let url = return_to.url();
        let sent_to = (url.path() == FORM_PATH)
            .then(|| url.query_pairs().find(|(name, _)| name == FORM_ROUTE_PARAMETER))
            .flatten();
        let (method, path) = match &sent_to {
            Some((_, path)) => (&Method::POST, &**path),
            None => (&Method::GET, url.path()),
        };
        let requested = Requested {
            host: url.host_str().unwrap_or_default(),
            method,
            path: &RequestPath::read(path).ok()?,
        };
        let rules = [&self.routes, &self.checks];
        rules.into_iter().find_map(|rules| rules.find(requested).route())
    }
}
