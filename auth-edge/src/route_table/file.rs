//! Reads the route table's file.
//!
//! Invariant: every mistake is named at once, with its line; a table with a mistake is no table at all.

mod requirements;

use std::collections::BTreeSet;
use std::path::PathBuf;

use chassis::settings::toml_file::{self, FileMistakes, Table, Value};
use url::Url;

use crate::route_table::requirements::Requirements;
use crate::route_table::{Csrf, Guard, Route, RouteTable, Server, Upstream};
use crate::values::path::RequestPath;
use crate::values::reserved::is_reserved;

/// The most rules of one table: each request looks at all of them in the worst case.
const MAX_ROUTES: usize = 1_000;

/// What else is configured, as far as routes may ask for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteFileContext<'a> {
    /// Whether there are keys to sign assertions with.
    pub(crate) signs: bool,
    /// The ids of the providers of `OIDC_PROVIDERS`; `None` leaves them unjudged.
    pub(crate) connections: Option<&'a [String]>,
    /// Where the edge itself answers, outside the paths that are always its own: sign-in and its callbacks, if they were
    /// moved.
    pub(crate) own_paths: &'a [String],
}

/// Reads a table.
///
/// # Errors
/// Every mistake, in the order of the file.
pub(crate) fn parse(text: &str, around: RouteFileContext<'_>) -> Result<RouteTable, FileMistakes> {
    let mut seen = BTreeSet::new();
    let routes = toml_file::parse(text, |file| {
        file.tables("route", MAX_ROUTES, |table| {
            let route = route(table, around)?;
            if !seen.insert((route.segments.clone(), route.prefix)) {
                table.wrong(format!(
                    "path {:?} is there twice: keep one of the two",
                    route.name
                ));
            }
            Some(route)
        })
    })?;
    Ok(RouteTable::new(routes))
}

fn route(table: &Table<'_>, around: RouteFileContext<'_>) -> Option<Route> {
    let path = table.required("path").and_then(|value| path(value, around));
    let guard = table
        .required("guard")
        .and_then(|value| value.one_of(&[("page", Guard::Page), ("api", Guard::Api), ("none", Guard::Open)]));
    let upstream = table.required("upstream").and_then(upstream);
    let csrf = table.get("csrf").and_then(|value| {
        value.one_of(&[
            ("origin", Csrf::Origin),
            ("header", Csrf::Header),
            ("none", Csrf::None),
        ])
    });
    let sign_in = table
        .get("sign_in")
        .map(|value| requirements::sign_in(value, around))
        .unwrap_or_default();
    let requirements = requirements::requirements(table, around);
    let upstream_jwt = table.flag("upstream_jwt");
    let strip_prefix = table.flag("strip_prefix");
    let keep_form = table.flag("keep_form");
    let max_body_bytes = table.get("max_body").and_then(bytes);

    let open = guard == Some(Guard::Open);
    let folder = matches!(upstream, Some(Upstream::Directory(_)));
    for (contradicts, text) in [
        (
            open && requirements != Requirements::default(),
            "guard = \"none\" asks for nothing: write guard = \"page\" or \"api\" where a session is needed",
        ),
        (
            open && csrf.is_some_and(|csrf| csrf != Csrf::None),
            "csrf needs guard = \"page\" or \"api\": without a session there is nothing to forge",
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
            keep_form && guard.is_some_and(|guard| guard != Guard::Page),
            "keep_form needs guard = \"page\": nobody is sent to sign in elsewhere",
        ),
        (
            keep_form && folder,
            "keep_form needs an http upstream: files take no forms",
        ),
        (
            keep_form && csrf == Some(Csrf::Header),
            "keep_form needs another csrf than \"header\": a plain form sends no header",
        ),
        (
            requirements.access_token && folder,
            "access_token needs an http upstream: files take no token",
        ),
    ] {
        if contradicts {
            table.wrong(text);
        }
    }
    let (name, segments, prefix) = path?;
    Some(Route {
        name: name.into(),
        segments,
        prefix,
        guard: guard?,
        upstream: upstream?,
        strip_prefix,
        upstream_jwt,
        max_body_bytes,
        csrf: csrf.unwrap_or_default(),
        requirements,
        keep_form,
        sign_in,
    })
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
