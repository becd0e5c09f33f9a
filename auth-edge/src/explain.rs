//! Which rule answers a request, and why: the route table as an operator queries it, `auth-edge routes explain GET /path`.
//!
//! Invariant: it reads paths and finds rules by the very code that serves requests. Deliberately absent: sessions; it prints
//! what a rule requires, not whether a session meets it.

use std::fmt::Write as _;
use std::process::ExitCode;

use axum::http::Method;
use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgAction, ArgMatches, Command};
use provider_settings::PROVIDERS;
use serde_json::{Map, Value};

use crate::gateway::is_never_passed_on;
use crate::route_table::file::RouteFileContext;
use crate::route_table::{Match, Requested, Route, RouteTable, Upstream};
use crate::settings::routes;
use crate::values::path::RequestPath;
use crate::values::reserved::{CALLBACK_PATH, is_reserved};

/// The command `routes`.
pub struct RoutesTool;

impl Tool for RoutesTool {
    fn command(&self) -> Command {
        let explain = Command::new("explain")
            .about("Tells which rule of EDGE_ROUTES answers a request, and why")
            .arg(Arg::new("method").required(true).value_name("METHOD"))
            .arg(
                Arg::new("target")
                    .required(true)
                    .value_name("PATH")
                    .help("As a client sends it, percent-encoded"),
            )
            .arg(
                Arg::new("host")
                    .long("host")
                    .value_name("HOST")
                    .help("Which host of the edge is requested; that of EDGE_BASE_URL by default"),
            )
            .arg(
                Arg::new("check")
                    .long("check")
                    .action(ArgAction::SetTrue)
                    .help("Ask the rules for other proxies, [[check]], instead"),
            )
            .arg(
                Arg::new("json")
                    .long("json")
                    .action(ArgAction::SetTrue)
                    .help("Answer in JSON"),
            )
            .after_help(
                "Exit codes: 0 a rule or the edge itself answers, 1 nothing does, 78 wrong settings.",
            );
        Command::new("routes")
            .about("Asks the route table")
            .subcommand_required(true)
            .subcommand(explain)
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<Warning>), SettingsError> {
        let mut own_paths = vec![reader.text("EDGE_LOGIN_PATH")];
        // Listed providers have callbacks of their own below it; their list is not read here.
        if !reader.is_given(PROVIDERS) {
            own_paths.push(CALLBACK_PATH.to_owned());
        }
        let around = RouteFileContext {
            signs: false,
            binds: true,
            hosts: None,
            connections: None,
            own_paths: &own_paths,
        };
        let table = routes(&mut reader, around);
        let file = reader.path("EDGE_ROUTES").map(std::fs::read_to_string);
        let base_host = url::Url::parse(&reader.text("EDGE_BASE_URL"))
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        let (table, warnings) = reader.finish(table)?;
        let given = given
            .subcommand()
            .map(|(_, explain)| explain.clone())
            .unwrap_or_default();
        let text = |name: &str| given.get_one::<String>(name).cloned().unwrap_or_default();
        let host = given.get_one::<String>("host").cloned().or(base_host);
        let asked = Asked {
            host: &host.unwrap_or_default(),
            method: &text("method"),
            target: &text("target"),
            is_check: given.get_flag("check"),
        };
        let file = file.and_then(Result::ok).unwrap_or_default();
        let explained = explain(&table, &file, &own_paths, asked);
        let json = given.get_flag("json");
        let work = async move {
            if json {
                println!("{}", explained.to_json());
            } else {
                print!("{}", explained.to_text());
            }
            if explained.is_answered {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        };
        Ok((Box::pin(work), warnings))
    }
}

/// The request an operator asks about.
#[derive(Clone, Copy)]
struct Asked<'a> {
    host: &'a str,
    method: &'a str,
    target: &'a str,
    /// Whether another proxy asks about it.
    is_check: bool,
}

/// The facts about a request, in the order they are printed, and whether a rule or the edge itself answers it.
struct Explained {
    facts: Vec<(&'static str, String)>,
    is_answered: bool,
}

impl Explained {
    fn add(&mut self, name: &'static str, fact: impl Into<String>) {
        self.facts.push((name, fact.into()));
    }

    fn to_json(&self) -> Value {
        let facts = self.facts.iter();
        let facts: Map<String, Value> = facts
            .map(|(name, fact)| ((*name).to_owned(), fact.as_str().into()))
            .collect();
        facts.into()
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, fact) in &self.facts {
            let indented = fact.replace('\n', &format!("\n{:<10}", ""));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<10}{indented}");
        }
        text
    }
}

/// Explains a request by the table that was read from this file.
fn explain(table: &RouteTable, file: &str, own_paths: &[String], asked: Asked<'_>) -> Explained {
    let mut explained = Explained {
        facts: vec![("request", format!("{} {}", asked.method, asked.target))],
        is_answered: false,
    };
    if !asked.host.is_empty() {
        explained.add("host", asked.host);
    }
    let ambiguous = if asked.is_check {
        "403: the path can be read in more than one way"
    } else {
        "400: the path can be read in more than one way"
    };
    let raw = asked.target.split('?').next().unwrap_or_default();
    let path = match RequestPath::read(raw) {
        Ok(path) => path,
        Err(error) => {
            explained.add("answer", ambiguous);
            explained.add("why", error.to_string());
            return explained;
        }
    };
    explained.add("path", path.to_encoded(0));
    let is_moved = own_paths.iter().any(|own| own == raw);
    if !asked.is_check && (is_moved || path.readings().any(is_reserved)) {
        explained.is_answered = is_moved || raw == path.to_encoded(0) && raw == raw.to_ascii_lowercase();
        explained.add(
            "answer",
            if explained.is_answered {
                "the edge itself"
            } else {
                "404: another spelling of a path of the edge"
            },
        );
        return explained;
    }
    let rules = if asked.is_check {
        &table.checks
    } else {
        &table.routes
    };
    let method = Method::from_bytes(asked.method.as_bytes()).unwrap_or_default();
    let requested = Requested {
        host: asked.host,
        method: &method,
        path: &path,
    };
    match rules.find(requested) {
        Match::OtherMethods(methods) => {
            let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
            explained.add(
                "answer",
                format!("405: rules answer here to {} alone", names.join(", ")),
            );
        }
        Match::Nothing => explained.add("answer", "404: no rule matches"),
        Match::Ambiguous => {
            explained.add("answer", ambiguous);
            let why = if path.is_ambiguous() {
                "programs read what it holds differently: a rule takes it with encoded_path = true, if every reading leads there"
            } else {
                "in another letter case, or without closing dots, a rule that asks for more would answer"
            };
            explained.add("why", why);
        }
        Match::Route(route) => {
            let matching: Vec<String> = rules.matching(requested).map(|route| named(route)).collect();
            explained.is_answered = true;
            explained.add("rule", named(&route));
            explained.add(
                "why",
                format!("the most specific of those that match: {}", matching.join(", ")),
            );
            explained.add("upstream", upstream(&route, &path));
            explained.add("file", written(&route, file));
            let only_read =
                matches!(route.upstream, Upstream::Directory(_)) && !matches!(asked.method, "GET" | "HEAD");
            if only_read || is_never_passed_on(asked.method) {
                explained.add("answer", "405: the upstream is not asked by this method");
            }
        }
    }
    explained
}

/// A rule as it stands in the file, with its line.
fn written(route: &Route, file: &str) -> String {
    let is_next = |(at, line): &(usize, &str)| *at > 0 && line.starts_with("[[");
    let lines = file.lines().skip(route.line.saturating_sub(1)).enumerate();
    let own: Vec<&str> = lines
        .take_while(|line| !is_next(line))
        .map(|(_, line)| line)
        .collect();
    format!("line {}\n{}", route.line, own.join("\n").trim_end())
}

/// A rule as an operator finds it in the file: its hosts and path, and its methods where it has some.
fn named(route: &Route) -> String {
    let methods: Vec<&str> = route.methods.iter().map(Method::as_str).collect();
    if methods.is_empty() {
        route.name.to_string()
    } else {
        format!("{} {}", methods.join(","), route.name)
    }
}

fn upstream(route: &Route, path: &RequestPath) -> String {
    let sent = path.to_encoded(route.stripped());
    match &route.upstream {
        Upstream::Directory(folder) => format!("the folder {}, {sent}", folder.display()),
        Upstream::Http(server) => format!("{}{sent}", server.origin()),
        Upstream::OtherProxy => "the proxy that asks passes it on".to_owned(),
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
