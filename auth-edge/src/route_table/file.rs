//! Reads the route table's file.
//!
//! Invariant: every mistake is named at once, with its line; a table with a mistake is no table at all.

mod bearer;
mod requirements;
mod selectors;
mod upstream_headers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use chassis::settings::toml_file::{self, FileMistakes, Table, Value};
use url::Url;

use crate::route_table::requirements::Requirements;
use crate::route_table::{Csrf, Guard, Route, RouteTable, Server, TableFacts, Upstream};
use crate::values::path::RequestPath;
use crate::values::reserved::is_reserved;

/// The most rules of one table: each request looks at all of them in the worst case.
const MAX_ROUTES: usize = 1_000;

/// What else is configured, as far as routes may ask for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteFileContext<'a> {
    /// Whether there are keys to sign assertions with.
    pub(crate) signs: bool,
    /// Whether sessions are bound to devices.
    pub(crate) binds: bool,
    /// The hosts of the edge, as rules name them; `None` leaves them unjudged.
    pub(crate) hosts: Option<&'a [String]>,
    /// The ids of the providers of `OIDC_PROVIDERS`; `None` leaves them unjudged.
    pub(crate) connections: Option<&'a [String]>,
    /// Where the edge itself answers, outside the paths that are always its own: sign-in and its callbacks, if they were
    /// moved.
    pub(crate) own_paths: &'a [String],
}

/// Whether a rule is for what the edge itself is asked for, or for what another proxy asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `[[route]]`
    Route,
    /// `[[check]]`
    Check,
}

/// Reads a table.
///
/// # Errors
/// Every mistake, in the order of the file.
pub(crate) fn parse(text: &str, around: RouteFileContext<'_>) -> Result<RouteTable, FileMistakes> {
    toml_file::parse(text, |file| {
        let read = |kind, name| {
            let mut seen: Vec<Route> = Vec::new();
            file.tables(name, MAX_ROUTES, |table| {
                let route = route(table, kind, around)?;
                if seen.iter().any(|other| is_tied(other, &route)) {
                    table.wrong(format!(
                        "path {:?} is there twice for one host and method: keep one of the two",
                        route.name
                    ));
                }
                seen.push(route.clone());
                Some(route)
            })
        };
        let routes = read(Kind::Route, "route");
        RouteTable::new(routes, read(Kind::Check, "check"))
    })
}

/// Whether a request could be answered by either of two rules, of which none is the more specific.
fn is_tied(one: &Route, other: &Route) -> bool {
    let shares = |one: &[String], other: &[String]| {
        if one.is_empty() || other.is_empty() {
            one.is_empty() && other.is_empty()
        } else {
            one.iter().any(|name| other.contains(name))
        }
    };
    let names = |route: &Route| -> Vec<String> { route.methods.iter().map(ToString::to_string).collect() };
    one.prefix == other.prefix
        && one.segments == other.segments
        && shares(&one.hosts, &other.hosts)
        && shares(&names(one), &names(other))
}

fn route(table: &Table<'_>, kind: Kind, around: RouteFileContext<'_>) -> Option<Route> {
    let is_check = kind == Kind::Check;
    let path = if is_check {
        // What the edge answers itself is not asked about.
        let everything = || Some(("/*".to_owned(), Vec::new(), true));
        table
            .get("path")
            .map_or_else(everything, |value| path(value, around))
    } else {
        table.required("path").and_then(|value| path(value, around))
    };
    // Other proxies may ask about hosts that the edge does not serve.
    let hosts = if is_check {
        RouteFileContext {
            hosts: None,
            ..around
        }
    } else {
        around
    };
    let hosts = selectors::hosts(table, hosts);
    let methods = selectors::methods(table);
    let guard = table
        .required("guard")
        .and_then(|value| value.one_of(&[("page", Guard::Page), ("api", Guard::Api), ("none", Guard::Open)]));
    let requirements = requirements::requirements(table, around);
    let bearer = bearer::bearer(table, &requirements, around);
    let headers = upstream_headers::upstream_headers(table);
    let denied_message = table.get("denied_message").and_then(denied_message);
    let upstream_jwt = table.flag("upstream_jwt");
    let encoded_path = table.flag("encoded_path");
    let says_rolls = table.get("rolls").is_some();
    let rolls = !says_rolls || table.flag("rolls");
    let own = if is_check {
        Passage {
            upstream: Some(Upstream::OtherProxy),
            redirect: table.flag("redirect"),
            ..Passage::default()
        }
    } else {
        passage(table, around)
    };

    let open = guard == Some(Guard::Open);
    let folder = matches!(own.upstream, Some(Upstream::Directory(_)));
    let over_h2c = matches!(&own.upstream, Some(Upstream::Http(server)) if server.prior_knowledge);
    for (contradicts, text) in [
        (
            open && requirements != Requirements::default(),
            "guard = \"none\" asks for nothing: write guard = \"page\" or \"api\" where a session is needed",
        ),
        (
            open && own.csrf.is_some_and(|csrf| csrf != Csrf::None),
            "csrf needs guard = \"page\" or \"api\": without a session there is nothing to forge",
        ),
        (
            own.guards_method_override && (open || own.csrf == Some(Csrf::None)),
            "guard_method_override needs a guard and another csrf than \"none\": nothing else is asked of a change",
        ),
        (
            own.redirect && guard.is_some_and(|guard| guard != Guard::Page),
            "redirect needs guard = \"page\": no visitors are sent to sign in from anything else",
        ),
        (
            says_rolls && open,
            "rolls needs guard = \"page\" or \"api\": without a session nothing is kept alive",
        ),
        (
            encoded_path && folder,
            "encoded_path needs an http upstream: files are looked up by one reading",
        ),
        (
            encoded_path && path.as_ref().is_some_and(|(_, _, prefix)| !prefix),
            "encoded_path needs a path that ends with \"/*\": no exact path has two readings",
        ),
        (
            open && bearer.is_some(),
            "bearer needs guard = \"page\" or \"api\": guard = \"none\" lets everybody pass without a token",
        ),
        (
            is_check && hosts.is_empty() && bearer.as_ref().is_some_and(|rule| rule.audience.is_none()),
            "bearer of a check needs host = \"…\" of the application, or an audience of its own: with neither, the client would choose by the host it names which tokens count",
        ),
        (
            folder && bearer.as_ref().is_some_and(|rule| rule.pass_authorization),
            "pass_authorization needs an http upstream: files take no token",
        ),
        (
            upstream_jwt && !around.signs,
            "upstream_jwt needs keys: set EDGE_UPSTREAM_JWT_KEY_FILE",
        ),
        (
            upstream_jwt && open,
            "upstream_jwt needs guard = \"page\" or \"api\": without a session there is nobody to assert",
        ),
        (
            upstream_jwt && folder,
            "upstream_jwt needs an http upstream: files take no assertion",
        ),
        (
            own.keep_form && guard.is_some_and(|guard| guard != Guard::Page),
            "keep_form needs guard = \"page\": nobody is sent to sign in elsewhere",
        ),
        (
            own.keep_form && folder,
            "keep_form needs an http upstream: files take no forms",
        ),
        (
            own.keep_form && own.csrf == Some(Csrf::Header),
            "keep_form needs another csrf than \"header\": a plain form sends no header",
        ),
        (
            requirements.token_for().names_api() && !requirements.access_token && !is_check,
            "audience and resource name the API whose token goes to the upstream: write access_token = true beside them",
        ),
        (
            requirements.access_token && folder,
            "access_token needs an http upstream: files take no token",
        ),
        (
            requirements.access_token && is_check,
            "a check hands out the access token by EDGE_CHECK_AUTHORIZATION, not by access_token",
        ),
        (
            !headers.all.is_empty() && open,
            "headers needs guard = \"page\" or \"api\": without a session there is nobody to tell of",
        ),
        (
            !headers.all.is_empty() && folder,
            "headers needs an http upstream: files take none",
        ),
        (
            own.preserve_host && folder,
            "preserve_host needs an http upstream: files have no host",
        ),
        (
            own.preserve_host && over_h2c,
            "preserve_host needs \"http://\" or \"https://\": over h2c the host is part of the address",
        ),
        (
            requirements.device_bound && !around.binds,
            "device_bound needs sessions that are bound: set EDGE_DEVICE_BOUND to offer or require, with an https EDGE_BASE_URL and no EDGE_COOKIE_DOMAIN",
        ),
        (
            requirements.device_bound && bearer.as_ref().is_some_and(|rule| !rule.dpop_required),
            "device_bound beside bearer needs dpop_required = true there: a copied token would pass where a copied cookie does not",
        ),
        (
            denied_message.is_some() && requirements.claims.is_empty(),
            "denied_message is for claims: there are none here",
        ),
    ] {
        if contradicts {
            table.wrong(text);
        }
    }
    let (path, segments, prefix) = path?;
    Some(Route {
        name: format!("{}{path}", hosts.join(",")).into(),
        segments,
        prefix,
        hosts,
        methods,
        guard: guard?,
        upstream: own.upstream?,
        strip_prefix: own.strip_prefix,
        preserve_host: own.preserve_host,
        map_addresses: own.map_addresses,
        headers,
        upstream_jwt,
        max_body_bytes: own.max_body_bytes,
        csrf: own.csrf.unwrap_or_default(),
        guards_method_override: own.guards_method_override,
        encoded_path,
        rolls,
        redirect: own.redirect,
        requirements,
        bearer,
        denied_message,
        keep_form: own.keep_form,
        sign_in: own.sign_in,
        table: TableFacts::default(),
    })
}

/// What concerns only requests that the edge itself passes on.
#[derive(Default)]
struct Passage {
    upstream: Option<Upstream>,
    strip_prefix: bool,
    preserve_host: bool,
    map_addresses: bool,
    keep_form: bool,
    max_body_bytes: Option<u64>,
    csrf: Option<Csrf>,
    guards_method_override: bool,
    redirect: bool,
    sign_in: BTreeMap<String, String>,
}

fn passage(table: &Table<'_>, around: RouteFileContext<'_>) -> Passage {
    Passage {
        upstream: table.required("upstream").and_then(upstream),
        strip_prefix: table.flag("strip_prefix"),
        preserve_host: table.flag("preserve_host"),
        map_addresses: table.get("map_addresses").is_none() || table.flag("map_addresses"),
        keep_form: table.flag("keep_form"),
        max_body_bytes: table.get("max_body").and_then(bytes),
        csrf: table.get("csrf").and_then(|value| {
            value.one_of(&[
                ("origin", Csrf::Origin),
                ("header", Csrf::Header),
                ("none", Csrf::None),
            ])
        }),
        guards_method_override: table.flag("guard_method_override"),
        redirect: false,
        sign_in: table
            .get("sign_in")
            .map(|value| requirements::sign_in(value, around))
            .unwrap_or_default(),
    }
}

/// The longest message to somebody whose claims are not as required, in bytes: a few sentences.
const MAX_MESSAGE_BYTES: usize = 500;

fn denied_message(value: Value<'_>) -> Option<Arc<str>> {
    let text = value.string()?;
    if text.len() > MAX_MESSAGE_BYTES {
        value.wrong(format!("denied_message is longer than {MAX_MESSAGE_BYTES} bytes"));
    }
    Some(text.into())
}

/// The path as written, its segments, and whether paths below it match too.
fn path(value: Value<'_>, around: RouteFileContext<'_>) -> Option<(String, Vec<String>, bool)> {
    let text = value.string()?;
    let (stem, prefix) = match text.strip_suffix("/*") {
        Some("") => ("/", true),
        Some(stem) => (stem, true),
        None => (text.as_str(), false),
    };
    let wrong = if stem.contains(['*', '?', '#']) {
        "can never match: \"*\" can only be the whole last segment, and no query is matched".to_owned()
    } else {
        match RequestPath::parse(stem) {
            Err(error) => format!("can never match: {error}"),
            Ok(path) if path.to_encoded(0) != stem => {
                format!("can never match: write {:?}", path.to_encoded(0))
            }
            Ok(path) if is_reserved(path.segments()) || around.own_paths.contains(&text) => {
                "belongs to the edge itself".to_owned()
            }
            Ok(path) => return Some((text.clone(), path.segments().to_vec(), prefix)),
        }
    };
    value.wrong(format!("path {text:?} {wrong}"));
    None
}

fn upstream(value: Value<'_>) -> Option<Upstream> {
    let text = value.string()?;
    if let Some(directory) = text
        .strip_prefix("dir:")
        .filter(|directory| !directory.is_empty())
    {
        return Some(Upstream::Directory(PathBuf::from(directory)));
    }
    // A scheme URL parsers do not know would be read by other rules.
    let (text, prior_knowledge) = match text.strip_prefix("h2c://") {
        Some(rest) => (format!("http://{rest}"), true),
        None => (text, false),
    };
    let plain = Url::parse(&text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    });
    if plain.is_none() {
        // The value is not repeated: it could hold a password.
        value.wrong(
            "upstream has to be \"dir:PATH\", \"http(s)://host:port\" or \"h2c://host:port\" without anything behind",
        );
    }
    plain.map(|url| Upstream::Http(Server::new(url, prior_knowledge)))
}

fn bytes(value: Value<'_>) -> Option<u64> {
    let bytes = value.as_u64();
    if bytes.is_none() {
        value.wrong("expected whole bytes; 0 is no limit");
    }
    bytes
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
