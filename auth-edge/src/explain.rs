//! Which rule answers a request, and why: the route table as an operator queries it, `auth-edge routes explain GET /path`.
//!
//! Invariant: it reads paths and finds rules by the very code that serves requests. Deliberately absent: sessions; it tells
//! what a guard will ask, not what it will say.

use std::fmt::Write as _;
use std::process::ExitCode;

use axum::http::Method;
use chassis::settings::{Reader, SettingsError, Warning};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgAction, ArgMatches, Command};
use provider_settings::PROVIDERS;
use serde_json::{Map, Value, json};

use crate::gateway::is_never_passed_on;
use crate::route_table::bearer::{BearerRule, Introspection};
use crate::route_table::file::RouteFileContext;
use crate::route_table::requirements::Requirements;
use crate::route_table::upstream_headers::HeaderSource;
use crate::route_table::{Csrf, Guard, Match, Requested, Route, RouteTable, Rules, Upstream};
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
        };
        let explained = if given.get_flag("check") {
            explain_check(&table, asked)
        } else {
            explain(&table, &own_paths, asked)
        };
        let json = given.get_flag("json");
        let work = async move {
            if json {
                println!("{}", Value::Object(explained.facts));
            } else {
                print!("{}", as_text(&explained.facts));
            }
            if explained.answered {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        };
        Ok((Box::pin(work), warnings))
    }
}

/// What an application behind another proxy is not told.
const LEFT_OUT: &str = "by HTTP, what makes the answer's head longer than EDGE_CHECK_HEAD_BYTES, the longest header first; the log names it";

/// The facts about a request, in the order they are printed.
struct Explained {
    facts: Map<String, Value>,
    answered: bool,
}

/// The request an operator asks about.
#[derive(Clone, Copy)]
struct Asked<'a> {
    host: &'a str,
    method: &'a str,
    target: &'a str,
}

/// Which rule is for a request that another proxy asks about.
fn explain_check(table: &RouteTable, asked: Asked<'_>) -> Explained {
    let (mut facts, path) = beginning(asked);
    match path {
        Ok(path) => {
            facts.insert("path".to_owned(), json!(path.to_encoded(0)));
            by_rules(&table.checks, facts, asked, &path)
        }
        Err(_) => {
            facts.insert(
                "answer".to_owned(),
                json!("403: the path can be read in more than one way"),
            );
            Explained {
                facts,
                answered: false,
            }
        }
    }
}

fn beginning(
    asked: Asked<'_>,
) -> (
    Map<String, Value>,
    Result<RequestPath, crate::values::path::Ambiguous>,
) {
    let mut facts = Map::new();
    facts.insert(
        "request".to_owned(),
        json!(format!("{} {}", asked.method, asked.target)),
    );
    if !asked.host.is_empty() {
        facts.insert("host".to_owned(), json!(asked.host));
    }
    let raw = asked.target.split('?').next().unwrap_or_default();
    (facts, RequestPath::read(raw))
}

fn explain(table: &RouteTable, own_paths: &[String], asked: Asked<'_>) -> Explained {
    let (mut facts, path) = beginning(asked);
    let raw = asked.target.split('?').next().unwrap_or_default();
    let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    let path = match path {
        Ok(path) => path,
        Err(ambiguous) => {
            add("answer", json!("400: the path can be read in more than one way"));
            add("why", json!(ambiguous.to_string()));
            return Explained {
                facts,
                answered: false,
            };
        }
    };
    add("path", json!(path.to_encoded(0)));
    let moved = own_paths.iter().any(|own| own == raw);
    if moved || path.readings().any(is_reserved) {
        let own = moved || raw == path.to_encoded(0) && raw == raw.to_ascii_lowercase();
        let answer = if own {
            "the edge itself"
        } else {
            "404: another spelling of a path of the edge"
        };
        add("answer", json!(answer));
        return Explained { facts, answered: own };
    }
    by_rules(&table.routes, facts, asked, &path)
}

fn by_rules(rules: &Rules, mut facts: Map<String, Value>, asked: Asked<'_>, path: &RequestPath) -> Explained {
    let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    let method = Method::from_bytes(asked.method.as_bytes()).unwrap_or_default();
    let requested = Requested {
        host: asked.host,
        method: &method,
        path,
    };
    let matching: Vec<String> = rules.matching(requested).map(|route| named(route)).collect();
    match rules.find(requested) {
        Match::OtherMethods(methods) => {
            let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
            add(
                "answer",
                json!(format!("405: rules answer here to {} alone", names.join(", "))),
            );
            Explained {
                facts,
                answered: false,
            }
        }
        Match::Nothing => {
            add("answer", json!("404: no rule matches"));
            Explained {
                facts,
                answered: false,
            }
        }
        Match::Ambiguous => {
            add("answer", json!("400: the path can be read in more than one way"));
            let why = if path.is_ambiguous() {
                "programs read what it holds differently: a rule takes it with encoded_path = true, if every reading leads there"
            } else {
                "in another letter case, or without closing dots, a rule that asks for more would answer"
            };
            add("why", json!(why));
            Explained {
                facts,
                answered: false,
            }
        }
        Match::Route(route) => {
            add("rule", json!(named(&route)));
            add(
                "why",
                json!(format!(
                    "the most specific of those that match: {}",
                    matching.join(", ")
                )),
            );
            add("guard", json!(guard(&route, asked.method)));
            add("asks", requirements(&route.requirements));
            if let Some(rule) = &route.bearer {
                add("bearer", bearer(rule));
            }
            add("upstream", json!(upstream(&route, path)));
            add("tells", tells(&route));
            if !route.rolls {
                add("rolls", json!("no: a request here keeps no idle session alive"));
            }
            if route.upstream == Upstream::OtherProxy {
                add("left out", json!(LEFT_OUT));
            }
            let only_read =
                matches!(route.upstream, Upstream::Directory(_)) && !matches!(asked.method, "GET" | "HEAD");
            if only_read || is_never_passed_on(asked.method) {
                add("answer", json!("405: the upstream is not asked by this method"));
            }
            Explained {
                facts,
                answered: true,
            }
        }
    }
}

fn guard(route: &Route, method: &str) -> String {
    let safe = Method::from_bytes(method.as_bytes()).is_ok_and(|method| method.is_safe());
    let foreign = match route.csrf {
        _ if safe => "",
        Csrf::Origin => "; from a page of another origin: 403",
        Csrf::Header => "; from a page of another origin, or without x-csrf: 403",
        Csrf::None => "; from a page of another origin: passes",
    };
    let foreign = if route.guards_method_override && safe {
        "; naming another method, as by _method: like that method"
    } else {
        foreign
    };
    match route.guard {
        Guard::Open => "none: everybody passes".to_owned(),
        Guard::Page if route.keep_form && method == "POST" => {
            format!("page: who lacks something is sent to sign in, and their form is kept meanwhile{foreign}")
        }
        Guard::Page => format!("page: who lacks something is sent to sign in{foreign}"),
        Guard::Api => format!("api: who lacks something is told 401 or 403{foreign}"),
    }
}

fn requirements(requirements: &Requirements) -> Value {
    let mut facts = Map::new();
    let mut add = |name: &str, there: bool, value: Value| {
        if there {
            facts.insert(name.to_owned(), value);
        }
    };
    add("access_token", requirements.access_token, json!(true));
    add("require_token", requirements.require_token, json!(true));
    add(
        "scopes",
        !requirements.scopes.is_empty(),
        json!(requirements.scopes),
    );
    add(
        "audience",
        !requirements.audience.is_empty(),
        json!(requirements.audience),
    );
    add(
        "resource",
        !requirements.resource.is_empty(),
        json!(requirements.resource),
    );
    add(
        "max_age",
        requirements.max_age_secs.is_some(),
        json!(requirements.max_age_secs),
    );
    add("acr", !requirements.acr.is_empty(), json!(requirements.acr));
    add(
        "connection",
        requirements.connection.is_some(),
        json!(requirements.connection),
    );
    add(
        "organization",
        requirements.organization.is_some(),
        json!(requirements.organization),
    );
    add(
        "claims",
        !requirements.claims.is_empty(),
        requirements.claims.to_json(),
    );
    add("device_bound", requirements.device_bound, json!(true));
    Value::Object(facts)
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

/// What an application is told besides the edge's own headers.
fn tells(route: &Route) -> Value {
    let headers = route.headers.all.iter().map(|header| {
        let source = match &header.source {
            HeaderSource::Subject => "subject".to_owned(),
            HeaderSource::Issuer => "issuer".to_owned(),
            HeaderSource::Session => "session".to_owned(),
            HeaderSource::Claim(claim) => format!("claim:{claim}"),
        };
        (header.name.to_string(), json!(source))
    });
    let mut facts: Map<String, Value> = headers.collect();
    if route.preserve_host {
        facts.insert("host".to_owned(), json!("that of the browser"));
    }
    if route.upstream_jwt {
        facts.insert("x-auth-assertion".to_owned(), json!("signed"));
    }
    Value::Object(facts)
}

fn bearer(rule: &BearerRule) -> Value {
    let audience = rule.audience.clone();
    let resource = || "the address of the route, or the URL requested".to_owned();
    let introspection = match rule.introspection {
        Introspection::Never => "never: JWTs alone pass",
        Introspection::OpaqueTokens => "tokens that are no JWT",
        Introspection::Always => "always",
    };
    json!({
        "audience": audience.unwrap_or_else(resource),
        "scopes": rule.scopes,
        "introspection": introspection,
        "dpop_required": rule.dpop_required,
        "pass_authorization": rule.pass_authorization,
        "ignore_authorization_details": rule.ignore_authorization_details,
    })
}

fn upstream(route: &Route, path: &RequestPath) -> String {
    let sent = path.to_encoded(route.stripped());
    match &route.upstream {
        Upstream::Directory(folder) => format!("the folder {}, {sent}", folder.display()),
        Upstream::Http(server) => format!("{}{sent}", server.origin()),
        Upstream::OtherProxy => "the proxy that asks passes it on".to_owned(),
    }
}

fn as_text(facts: &Map<String, Value>) -> String {
    let mut text = String::new();
    for name in [
        "request", "host", "path", "rule", "why", "guard", "asks", "bearer", "upstream", "tells", "rolls",
        "left out", "answer",
    ] {
        let value = match facts.get(name) {
            None => continue,
            Some(Value::String(value)) => value.clone(),
            Some(value) if value.as_object().is_some_and(Map::is_empty) => continue,
            Some(value) => value.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<10}{value}");
    }
    text
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
