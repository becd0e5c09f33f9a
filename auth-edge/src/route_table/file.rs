//! Reads the route table's file.
//!
//! Invariant: the reader reports every mistake at once, with its line, and returns no table with a mistake.

mod allow;
mod bearer;
mod context;
mod contradictions;
mod decision;
mod operator;
mod requirements;
mod selectors;
mod upstream_headers;

use std::path::PathBuf;
use std::sync::Arc;

use chassis::settings::toml_file::{self, FileMistakes, Table, Value};
use url::Url;

pub(crate) use self::context::RouteFileContext;

use crate::route_table::allow::AllowList;
use crate::route_table::upstream_headers::UpstreamHeaders;
use crate::route_table::{Csrf, Guard, Route, RouteTable, Server, TableFacts, Upstream};
use crate::values::path::RequestPath;
use crate::values::reserved::is_reserved;
use crate::values::web_url;

/// The most rules of one table: in the worst case each request checks all of them.
const MAX_ROUTES: usize = 1_000;

/// Reads a table.
///
/// # Errors
/// Every mistake, in the order of the file.
pub(crate) fn parse(text: &str, around: &RouteFileContext) -> Result<RouteTable, FileMistakes> {
    toml_file::parse(text, |file| {
        let allowed = allow::allow(file);
        let read = |name| {
            let mut seen: Vec<Route> = Vec::new();
            file.tables(name, MAX_ROUTES, |table| {
                let route = route(table, name == "check", allowed.as_ref(), around)?;
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
        let routes = read("route");
        let checks = read("check");
        let operator = operator::operator(file, allowed.as_ref(), around);
        RouteTable::new(routes, checks, allowed, operator)
    })
}

/// Whether two rules match the same request and neither is more specific.
fn is_tied(one: &Route, other: &Route) -> bool {
    fn shares<T: PartialEq>(one: &[T], other: &[T]) -> bool {
        if one.is_empty() || other.is_empty() {
            one.is_empty() && other.is_empty()
        } else {
            one.iter().any(|name| other.contains(name))
        }
    }
    one.prefix == other.prefix
        && one.segments == other.segments
        && shares(&one.hosts, &other.hosts)
        && shares(&one.methods, &other.methods)
}

/// Reads a rule: `[[check]]` for requests another proxy asks about, `[[route]]` for requests to the edge.
fn route(
    table: &Table<'_>,
    is_check: bool,
    allowed: Option<&Arc<AllowList>>,
    around: &RouteFileContext,
) -> Option<Route> {
    let get = |key| if is_check { None } else { table.get(key) };
    let flag = |key| !is_check && table.flag(key);
    let path = match if is_check {
        table.get("path")
    } else {
        table.required("path")
    } {
        Some(value) => path(value, around),
        None => is_check.then(|| ("/*".to_owned(), Vec::new(), true)),
    };
    // Other proxies may ask about hosts that the edge does not serve.
    let hosts = selectors::hosts(table, if is_check { &[] } else { &around.hosts });
    let methods = selectors::methods(table);
    let guard = table
        .required("guard")
        .and_then(|value| value.one_of(&[("page", Guard::Page), ("api", Guard::Api), ("none", Guard::Open)]));
    let is_open = guard == Some(Guard::Open);
    let mut requirements = requirements::requirements(table, around);
    requirements.allow = allow::allow(table).or_else(|| allowed.filter(|_| !is_open).cloned());
    let upstream = if is_check {
        Some(Upstream::OtherProxy)
    } else {
        table.required("upstream").and_then(upstream)
    };
    let csrf = get("csrf").and_then(|value| {
        value.one_of(&[
            ("origin", Csrf::Origin),
            ("header", Csrf::Header),
            ("none", Csrf::None),
        ])
    });
    let sign_in = get("sign_in").map(|value| requirements::sign_in(value, around));
    let denied_message = table.get("denied_message").and_then(Value::string);
    let has_alias_headers = around.aliases
        && !is_open
        && table.get("headers").is_none()
        && matches!(upstream, Some(Upstream::Http(_) | Upstream::OtherProxy));
    let headers = match (has_alias_headers, is_check) {
        (true, true) => UpstreamHeaders::of_oauth2_proxy_checks(),
        (true, false) => UpstreamHeaders::of_oauth2_proxy(),
        (false, _) => upstream_headers::upstream_headers(table),
    };
    let is_whole = path.is_some() && guard.is_some() && upstream.is_some();
    let (path, segments, prefix) = path.unwrap_or_else(|| (String::new(), Vec::new(), true));
    let route = Route {
        name: format!("{}{path}", hosts.join(",")).into(),
        segments,
        prefix,
        hosts,
        methods,
        guard: guard.unwrap_or(Guard::Page),
        upstream: upstream.unwrap_or(Upstream::OtherProxy),
        strip_prefix: flag("strip_prefix"),
        preserve_host: flag("preserve_host"),
        map_addresses: get("map_addresses").is_none() || table.flag("map_addresses"),
        headers,
        upstream_jwt: table
            .get("upstream_jwt")
            .and_then(upstream_headers::asserted_claims),
        max_body_bytes: get("max_body").and_then(|value| number(value, 0, "whole bytes; 0 means no limit")),
        csrf: csrf.unwrap_or_default(),
        guards_method_override: flag("guard_method_override"),
        encoded_path: table.flag("encoded_path"),
        rolls: table.get("rolls").is_none() || table.flag("rolls"),
        redirect: is_check && table.flag("redirect"),
        bearer: bearer::bearer(table, &requirements, around),
        requirements,
        denied_message: denied_message.map(Into::into),
        keep_form: flag("keep_form"),
        sign_in: sign_in.unwrap_or_default(),
        table: TableFacts::default(),
    };
    contradictions::report_contradictions(table, &route, csrf, is_check, around);
    is_whole.then_some(route)
}

/// The path as written, its segments, and whether paths below it match too.
fn path(value: Value<'_>, around: &RouteFileContext) -> Option<(String, Vec<String>, bool)> {
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
    // URL parsers would read an unknown scheme by other rules.
    let (text, prior_knowledge) = match text.strip_prefix("h2c://") {
        Some(rest) => (format!("http://{rest}"), true),
        None => (text, false),
    };
    let plain = Url::parse(&text).ok().filter(web_url::is_origin);
    if plain.is_none() {
        // The message does not repeat the value: it could hold a password.
        value.wrong(
            "upstream has to be \"dir:PATH\", \"http(s)://host:port\" or \"h2c://host:port\" with nothing after it",
        );
    }
    plain.map(|url| Upstream::Http(Server { url, prior_knowledge }))
}

/// A whole number of at least `least`.
fn number(value: Value<'_>, least: u64, expected: &str) -> Option<u64> {
    let number = value.as_u64().filter(|number| *number >= least);
    if number.is_none() {
        value.wrong(format!("expected {expected}"));
    }
    number
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
