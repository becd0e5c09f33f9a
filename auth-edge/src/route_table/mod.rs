//! The route table: the guard and the upstream of each request, and the checks for other proxies.
//!
//! Invariants
//! - Rules use the normal form of [`RequestPath`], so the reader rejects a rule that no request can reach.
//! - The most specific rule wins, regardless of the order in the file ([`rules`]).
//! - If a rule sets an identity header, no client may send a header of that name to any rule.
//!
//! Deliberately absent: headers as conditions. Nothing that a client chooses freely removes a guard.

pub(crate) mod allow;
pub(crate) mod bearer;
pub(crate) mod claims;
pub(crate) mod decision;
pub(crate) mod file;
pub(crate) mod operator;
pub(crate) mod principal;
pub(crate) mod requirements;
pub(crate) mod rules;
pub(crate) mod unmet_requirement;
pub(crate) mod upstream_headers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::uri::PathAndQuery;
use axum::http::{Method, Uri};
use chassis::secret::Reloading;
use url::{Position, Url};

use self::allow::AllowList;
use self::bearer::BearerRule;
use self::operator::OperatorRule;
use self::requirements::Requirements;
pub(crate) use self::rules::{Match, RouteQuery, Rules};
use self::upstream_headers::{IdentityHeaderNames, UpstreamHeaders};
use crate::values::allowed_parameters::CONNECTION;
use crate::values::path::RequestPath;
use crate::values::reserved::{FORM_PATH, FORM_ROUTE_PARAMETER};
use crate::values::return_to::ReturnTo;

/// The current route table: its file may change while requests run.
pub(crate) type Routes = Reloading<RouteTable>;

/// The callers that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Visitors are redirected to the login.
    Page,
    /// Callers without a session receive JSON.
    Api,
    /// All callers.
    Open,
}

/// The proof of origin that a guarded route requires of an unsafe request, so that pages of other origins
/// cannot send it. Later variants require more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Csrf {
    /// Nothing: the upstream checks it.
    None,
    /// `Origin` and `Sec-Fetch-Site`, or `Referer` if both are absent, must not name another origin.
    #[default]
    Origin,
    /// Also requires the `x-csrf` header, which no page of another origin can send without a preflight.
    Header,
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// Files below a directory.
    Directory(PathBuf),
    /// An HTTP server.
    Http(Server),
    /// None: another proxy asks whether it may forward the request.
    OtherProxy,
}

/// A server that requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// Only scheme (http or https), host and port are set.
    pub(crate) url: Url,
    /// Whether it speaks HTTP/2 without TLS (scheme `h2c`); over TLS both sides negotiate.
    pub(crate) prior_knowledge: bool,
}

impl Server {
    /// Whether it accepts a request whose body continues during the answer: over HTTP/2.
    #[must_use]
    pub(crate) fn takes_streams(&self) -> bool {
        self.prior_knowledge || self.url.scheme() == "https"
    }

    /// This path at the server as a URI; `None` if the URI is invalid.
    #[must_use]
    pub(crate) fn at(&self, path: PathAndQuery) -> Option<Uri> {
        let address = Uri::builder()
            .scheme(self.url.scheme())
            .authority(self.authority());
        address.path_and_query(path).build().ok()
    }

    /// Host and port for `Host` (RFC 9112, section 3.2), without the scheme's default port.
    #[must_use]
    pub(crate) fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Scheme, host and port: the audience of assertions for this server.
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
    /// The hosts of the rule; empty means all.
    pub(crate) hosts: Vec<String>,
    /// The methods of the rule; empty means all.
    pub(crate) methods: Vec<Method>,
    /// The callers that may pass.
    pub(crate) guard: Guard,
    /// The target of the route.
    pub(crate) upstream: Upstream,
    /// Whether the matched prefix is removed before forwarding.
    pub(crate) strip_prefix: bool,
    /// Whether the upstream receives the public host instead of its own.
    pub(crate) preserve_host: bool,
    /// Whether the upstream's own addresses in its answer become ours.
    pub(crate) map_addresses: bool,
    /// Identity headers for the upstream, under the names it reads.
    pub(crate) headers: UpstreamHeaders,
    /// The claims in the signed assertion for the upstream; `None` if the route sends none.
    pub(crate) upstream_jwt: Option<Arc<[String]>>,
    /// The route's own limit of a request body, in bytes; 0 means no limit.
    pub(crate) max_body_bytes: Option<u64>,
    /// How the guard detects requests from pages of other origins.
    pub(crate) csrf: Csrf,
    /// Whether `csrf` also checks a request that names another method (`_method` in its query).
    pub(crate) guards_method_override: bool,
    /// Whether ambiguous paths pass, if every reading leads to this rule.
    pub(crate) encoded_path: bool,
    /// Whether a request counts as use of its session.
    pub(crate) rolls: bool,
    /// Whether a check redirects visitors to the login without a parameter of the proxy.
    pub(crate) redirect: bool,
    /// The guard's requirements.
    pub(crate) requirements: Requirements,
    /// Whether a form is kept during the sign-in if its session has ended.
    pub(crate) keep_form: bool,
    /// The message for users whose claims do not match.
    pub(crate) denied_message: Option<Arc<str>>,
    /// The requirements for clients with their own access token; `None` if the route accepts no tokens.
    pub(crate) bearer: Option<BearerRule>,
    /// Parameters of the authorization request for sign-ins that return to this route, by name.
    pub(crate) sign_in: BTreeMap<String, String>,
    /// Facts about the whole table.
    pub(crate) table: TableFacts,
}

/// Facts that hold for every rule of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableFacts {
    /// The names of identity headers: the edge removes them from client requests.
    pub(crate) identity_names: IdentityHeaderNames,
    /// Whether rules differ by method: then no client header may name another method.
    pub(crate) by_method: bool,
    /// Whether a rule keeps forms: then guarded pages set the cookie that names the user.
    pub(crate) keeps_forms: bool,
}

impl Route {
    /// The id of the provider for sign-ins to this route, if the route names one.
    #[must_use]
    pub(crate) fn connection(&self) -> Option<&str> {
        let by_sign_in = self.sign_in.get(CONNECTION);
        self.requirements
            .connection
            .as_ref()
            .or(by_sign_in)
            .map(String::as_str)
    }

    /// How many leading segments are removed before forwarding.
    #[must_use]
    pub(crate) fn stripped(&self) -> usize {
        if self.strip_prefix { self.segments.len() } else { 0 }
    }
}

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteTable {
    /// For requests to the edge itself.
    pub(crate) routes: Rules,
    /// For requests that other proxies ask about.
    pub(crate) checks: Rules,
    /// The facts about the rules of both kinds.
    pub(crate) facts: TableFacts,
    /// Whether the check rules differ by method.
    pub(crate) checks_by_method: bool,
    /// Who may pass where no rule says otherwise.
    pub(crate) allow: Option<Arc<AllowList>>,
    /// Who may find and end the sessions of all people; `None` for no one.
    pub(crate) operator: Option<Arc<OperatorRule>>,
}

impl RouteTable {
    /// A table of these rules, of both kinds.
    pub(super) fn new(
        mut routes: Vec<Route>,
        checks: Vec<Route>,
        allow: Option<Arc<AllowList>>,
        operator: Option<Arc<OperatorRule>>,
    ) -> Self {
        let all = || routes.iter().chain(&checks);
        let facts = TableFacts {
            identity_names: IdentityHeaderNames::of(all().map(|route| &route.headers)),
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
            allow,
            operator,
        }
    }

    /// The files of addresses that the lists name.
    #[must_use]
    pub(crate) fn address_files(&self) -> Vec<PathBuf> {
        let rules = self.routes.all().iter().chain(self.checks.all());
        let lists = rules.filter_map(|route| route.requirements.allow.as_ref());
        let of_operators = self.operator.iter().filter_map(|rule| rule.right.allow.as_ref());
        let files: BTreeSet<&PathBuf> = lists
            .chain(&self.allow)
            .chain(of_operators)
            .filter_map(|list| list.file.as_ref())
            .collect();
        files.into_iter().cloned().collect()
    }

    /// Whether a guarded rule accepts every account of the provider.
    #[must_use]
    pub(crate) fn is_open_to_all_accounts(&self) -> bool {
        let mut rules = self.routes.all().iter().chain(self.checks.all());
        rules.any(|route| {
            let requirements = &route.requirements;
            route.guard != Guard::Open
                && requirements.allow.is_none()
                && requirements.claims.is_empty()
                && requirements.organization.is_none()
                && requirements.token.scopes.is_empty()
        })
    }

    /// The rule for a request that another proxy asks about. If check rules differ by method, a request
    /// without a method matches no rule.
    #[must_use]
    pub(crate) fn find_check(&self, host: &str, method: Option<&Method>, path: &RequestPath) -> Match {
        if self.checks_by_method && method.is_none() {
            return Match::Ambiguous;
        }
        let method = method.unwrap_or(&Method::GET);
        self.checks.find(RouteQuery { host, method, path })
    }

    /// The rule of a return address: one of the edge's own rules, or else a check rule. For a kept form it is
    /// the rule of the form's target.
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
        let requested = RouteQuery {
            host: url.host_str().unwrap_or_default(),
            method,
            path: &RequestPath::read(path).ok()?,
        };
        let rules = [&self.routes, &self.checks];
        rules.into_iter().find_map(|rules| rules.find(requested).route())
    }
}
