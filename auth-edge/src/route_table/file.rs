//! Reads the route table's file.
//!
//! Invariant: every mistake is named at once, with its line; a table with a mistake is no table at all.

mod asked;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

use crate::route_table::requirements::Requirements;
use crate::route_table::{Csrf, Guard, Route, RouteTable, Server, Upstream};
use crate::values::path::RequestPath;
use crate::values::reserved::is_reserved;

/// The most rules of one table: each request looks at all of them in the worst case.
const MAX_ROUTES: usize = 1_000;

/// One mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct Mistake {
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub text: String,
}

/// What else is configured, as far as routes may ask for it.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// Whether there are keys to sign assertions with.
    pub signs: bool,
    /// The ids of the providers of `OIDC_PROVIDERS`; `None` leaves them unjudged.
    pub connections: Option<&'a [String]>,
    /// Where the edge itself answers, outside the paths that are always its own: sign-in and its callbacks, if they were moved.
    pub own_paths: &'a [String],
}

/// Reads a table.
///
/// # Errors
/// Every mistake, in the order of the file.
pub fn parse(text: &str, around: Around<'_>) -> Result<RouteTable, Vec<Mistake>> {
    let mut reading = Reading {
        text,
        around,
        mistakes: Vec::new(),
    };
    let (document, syntax) = DeTable::parse_recoverable(text);
    for error in syntax {
        reading.wrong(&error.span().unwrap_or_default(), error.message());
    }
    if !reading.mistakes.is_empty() {
        return Err(reading.mistakes);
    }
    let routes = reading.document(document.get_ref());
    if reading.mistakes.is_empty() {
        Ok(RouteTable::new(routes))
    } else {
        reading.mistakes.sort_by_key(|mistake| mistake.line);
        Err(reading.mistakes)
    }
}

struct Reading<'t> {
    text: &'t str,
    around: Around<'t>,
    mistakes: Vec<Mistake>,
}

type Value<'t> = Spanned<DeValue<'t>>;

impl Reading<'_> {
    fn wrong(&mut self, span: &Range<usize>, text: impl Into<String>) {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        self.mistakes.push(Mistake {
            line,
            text: text.into(),
        });
    }

    fn document(&mut self, document: &DeTable<'_>) -> Vec<Route> {
        let mut routes = Vec::new();
        for (key, value) in document {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("route", DeValue::Array(tables)) => {
                    for table in tables {
                        if let DeValue::Table(fields) = table.get_ref() {
                            routes.extend(self.route(&table.span(), fields));
                        } else {
                            self.wrong(&table.span(), "a route has to be a table: write [[route]]");
                        }
                    }
                }
                ("route", _) => {
                    self.wrong(&key.span(), "routes have to be a list of tables: write [[route]]")
                }
                (other, _) => self.wrong(
                    &key.span(),
                    format!("unknown key {other:?}: the file holds [[route]] tables alone"),
                ),
            }
        }
        if routes.len() > MAX_ROUTES {
            self.wrong(
                &(0..0),
                format!(
                    "there are {} routes; at most {MAX_ROUTES} are taken",
                    routes.len()
                ),
            );
        }
        let mut seen = BTreeSet::new();
        for (span, route) in &routes {
            if !seen.insert((route.segments.clone(), route.prefix)) {
                self.wrong(
                    span,
                    format!("path {:?} is there twice: keep one of the two", route.name),
                );
            }
        }
        routes.into_iter().map(|(_, route)| route).collect()
    }

    fn route(&mut self, span: &Range<usize>, fields: &DeTable<'_>) -> Option<(Range<usize>, Route)> {
        let (mut path, mut guard, mut upstream, mut csrf) = (None, None, None, None);
        let (mut strip_prefix, mut upstream_jwt, mut max_body_bytes) = (false, false, None);
        let mut asks = Requirements::default();
        let mut sign_in = BTreeMap::new();
        let before = self.mistakes.len();
        for (key, value) in fields {
            match key.get_ref().as_ref() {
                "path" => {
                    path = self
                        .string(value)
                        .and_then(|text| self.path(&value.span(), &text))
                        .or(path)
                }
                "guard" => guard = self.guard(value),
                "upstream" => {
                    upstream = self
                        .string(value)
                        .and_then(|text| self.upstream(&value.span(), &text))
                }
                "strip_prefix" => strip_prefix = self.boolean(value),
                "access_token" => asks.access_token = self.boolean(value),
                "require_token" => asks.require_token = self.boolean(value),
                "scopes" => asks.scopes = self.tokens(value),
                "acr" => asks.acr = self.tokens(value),
                "max_age" => asks.max_age_secs = self.seconds(value),
                "organization" => asks.organization = self.string(value),
                "connection" => asks.connection = self.connection(value),
                "claims" => asks.claims = self.claims(value),
                "sign_in" => sign_in = self.sign_in(value),
                "upstream_jwt" => upstream_jwt = self.boolean(value),
                "max_body" => max_body_bytes = self.bytes(value),
                "csrf" => csrf = self.csrf(value),
                other => self.wrong(&key.span(), format!("unknown key {other:?}")),
            }
        }
        for missing in ["path", "guard", "upstream"] {
            if !fields.keys().any(|key| key.get_ref() == missing) {
                self.wrong(span, format!("the route has no {missing}"));
            }
        }
        if guard == Some(Guard::Open) && asks != Requirements::default() {
            self.wrong(span, "guard = \"none\" asks for nothing: write guard = \"page\" or \"api\" where a session is needed");
        }
        if guard == Some(Guard::Open) && csrf.is_some_and(|csrf| csrf != Csrf::None) {
            self.wrong(
                span,
                "csrf needs guard = \"page\" or \"api\": without a session there is nothing to forge",
            );
        }
        if upstream_jwt && !self.around.signs {
            self.wrong(span, "upstream_jwt needs keys: set EDGE_UPSTREAM_JWT_KEY_FILE");
        }
        if guard == Some(Guard::Open) && upstream_jwt {
            self.wrong(
                span,
                "upstream_jwt needs guard = \"page\" or \"api\": without a session there is nobody to assert",
            );
        }
        if matches!(upstream, Some(Upstream::Directory(_))) {
            if asks.access_token {
                self.wrong(span, "access_token needs an http upstream: files take no token");
            }
            if upstream_jwt {
                self.wrong(
                    span,
                    "upstream_jwt needs an http upstream: files take no assertion",
                );
            }
        }
        if self.mistakes.len() > before {
            return None;
        }
        let ((name, segments, prefix), guard, upstream) = (path?, guard?, upstream?);
        let route = Route {
            name: name.into(),
            segments,
            prefix,
            guard,
            upstream,
            strip_prefix,
            upstream_jwt,
            max_body_bytes,
            csrf: csrf.unwrap_or_default(),
            asks,
            sign_in,
        };
        Some((span.clone(), route))
    }

    fn is_own(&self, path: &str) -> bool {
        self.around.own_paths.iter().any(|own| own == path)
    }

    fn path(&mut self, span: &Range<usize>, text: &str) -> Option<(String, Vec<String>, bool)> {
        let (stem, prefix) = match text.strip_suffix("/*") {
            Some("") => ("/", true),
            Some(stem) => (stem, true),
            None => (text, false),
        };
        if stem.contains(['*', '?', '#']) {
            self.wrong(
                span,
                format!("path {text:?}: \"*\" can only be the whole last segment, and no query is matched"),
            );
            return None;
        }
        match RequestPath::parse(stem) {
            Err(error) => {
                self.wrong(span, format!("path {text:?} can never match: {error}"));
                None
            }
            Ok(path) if path.to_encoded(0) != stem => {
                self.wrong(
                    span,
                    format!("path {text:?} can never match: write {:?}", path.to_encoded(0)),
                );
                None
            }
            Ok(path) if is_reserved(path.segments()) || self.is_own(text) => {
                self.wrong(span, format!("path {text:?} belongs to the edge itself"));
                None
            }
            Ok(path) => Some((text.to_owned(), path.segments().to_vec(), prefix)),
        }
    }

    fn guard(&mut self, value: &Value<'_>) -> Option<Guard> {
        match self.string(value)?.as_str() {
            "page" => Some(Guard::Page),
            "api" => Some(Guard::Api),
            "none" => Some(Guard::Open),
            other => {
                self.wrong(
                    &value.span(),
                    format!("guard {other:?} is unknown: write \"page\", \"api\" or \"none\""),
                );
                None
            }
        }
    }

    fn upstream(&mut self, span: &Range<usize>, text: &str) -> Option<Upstream> {
        if let Some(directory) = text
            .strip_prefix("dir:")
            .filter(|directory| !directory.is_empty())
        {
            return Some(Upstream::Directory(PathBuf::from(directory)));
        }
        // A scheme URL parsers do not know would be read by other rules.
        let (text, prior_knowledge) = match text.strip_prefix("h2c://") {
            Some(rest) => (format!("http://{rest}"), true),
            None => (text.to_owned(), false),
        };
        let url = Url::parse(&text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let plain = url.filter(|url| {
            url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
                && url.password().is_none()
        });
        if plain.is_none() {
            // The value is not repeated: it could hold a password.
            self.wrong(
                span,
                "upstream has to be \"dir:PATH\", \"http(s)://host:port\" or \"h2c://host:port\" without anything behind",
            );
        }
        plain.map(|url| Upstream::Http(Server::new(url, prior_knowledge)))
    }

    fn string(&mut self, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => Some(text.clone().into_owned()),
            _ => {
                self.wrong(&value.span(), "expected a text in quotes that is not empty");
                None
            }
        }
    }

    fn strings(&mut self, value: &Value<'_>) -> Vec<String> {
        match value.get_ref() {
            DeValue::Array(values) if !values.is_empty() => {
                values.iter().filter_map(|value| self.string(value)).collect()
            }
            _ => {
                self.wrong(&value.span(), "expected a list of texts: [\"…\"]");
                Vec::new()
            }
        }
    }

    /// Scopes and classes travel in headers and queries, separated by spaces (RFC 6749, section 3.3; RFC 9470, section 3).
    fn tokens(&mut self, value: &Value<'_>) -> Vec<String> {
        let tokens = self.strings(value);
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if !tokens.iter().all(|token| token.bytes().all(plain)) {
            self.wrong(
                &value.span(),
                "a scope or class holds visible ASCII characters, no space, quote or backslash",
            );
        }
        tokens
    }

    fn bytes(&mut self, value: &Value<'_>) -> Option<u64> {
        let bytes = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        if bytes.is_none() {
            self.wrong(&value.span(), "expected whole bytes; 0 is no limit");
        }
        bytes
    }

    fn boolean(&mut self, value: &Value<'_>) -> bool {
        match value.get_ref() {
            DeValue::Boolean(flag) => *flag,
            _ => {
                self.wrong(&value.span(), "expected true or false");
                false
            }
        }
    }

    fn seconds(&mut self, value: &Value<'_>) -> Option<u64> {
        let seconds = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        if seconds.is_none_or(|seconds| seconds == 0) {
            self.wrong(&value.span(), "expected whole seconds, at least 1");
        }
        seconds
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
