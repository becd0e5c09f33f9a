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
use crate::route_table::requirements::Requirements;
use crate::route_table::{Csrf, Guard, Match, Route, RouteTable, Upstream};
use crate::settings::routes;
use crate::values::path::RequestPath;
use crate::values::reserved::is_reserved;

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
            own_paths.push(reader.text("EDGE_CALLBACK_PATH"));
        }
        let table = routes(&mut reader, None, &own_paths);
        let (table, warnings) = reader.finish(table)?;
        let given = given
            .subcommand()
            .map(|(_, explain)| explain.clone())
            .unwrap_or_default();
        let text = |name: &str| given.get_one::<String>(name).cloned().unwrap_or_default();
        let explained = explain(&table, &own_paths, &text("method"), &text("target"));
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

/// The facts about a request, in the order they are printed.
struct Explained {
    facts: Map<String, Value>,
    answered: bool,
}

fn explain(table: &RouteTable, own_paths: &[String], method: &str, target: &str) -> Explained {
    let mut facts = Map::new();
    let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    add("request", json!(format!("{method} {target}")));
    let raw = target.split('?').next().unwrap_or_default();
    let path = match RequestPath::parse(raw) {
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
    if moved || is_reserved(path.segments()) {
        let own = moved || raw == path.to_encoded(0) && raw == raw.to_ascii_lowercase();
        let answer = if own {
            "the edge itself"
        } else {
            "404: another spelling of a path of the edge"
        };
        add("answer", json!(answer));
        return Explained { facts, answered: own };
    }
    let matching: Vec<&str> = table.matching(&path).map(|route| &*route.name).collect();
    match table.find(&path) {
        Match::Nothing => {
            add("answer", json!("404: no rule matches"));
            Explained {
                facts,
                answered: false,
            }
        }
        Match::Ambiguous => {
            add("answer", json!("400: the path can be read in more than one way"));
            let why =
                "in another letter case, or without closing dots, a rule that asks for more would answer";
            add("why", json!(why));
            Explained {
                facts,
                answered: false,
            }
        }
        Match::Route(route) => {
            add("rule", json!(&*route.name));
            add(
                "why",
                json!(format!(
                    "the most specific of those that match: {}",
                    matching.join(", ")
                )),
            );
            add("guard", json!(guard(&route, method)));
            add("asks", requirements(&route.requirements));
            add("upstream", json!(upstream(&route, &path)));
            let only_read =
                matches!(route.upstream, Upstream::Directory(_)) && !matches!(method, "GET" | "HEAD");
            if only_read || is_never_passed_on(method) {
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
        json!(requirements.claims),
    );
    Value::Object(facts)
}

fn upstream(route: &Route, path: &RequestPath) -> String {
    let sent = path.to_encoded(route.stripped());
    match &route.upstream {
        Upstream::Directory(folder) => format!("the folder {}, {sent}", folder.display()),
        Upstream::Http(server) => format!("{}{sent}", server.origin()),
    }
}

fn as_text(facts: &Map<String, Value>) -> String {
    let mut text = String::new();
    for name in [
        "request", "path", "rule", "why", "guard", "asks", "upstream", "answer",
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
mod tests {
    use super::*;
    use crate::route_table::file::RouteFileContext;

    const AROUND: RouteFileContext<'_> = RouteFileContext {
        signs: false,
        connections: None,
        own_paths: &[],
    };
    use crate::route_table::file;

    fn ask(method: &str, target: &str) -> (bool, Map<String, Value>) {
        let table = "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"dir:web\"\n\
             [[route]]\npath = \"/api/*\"\nguard = \"api\"\nupstream = \"http://orders:8080\"\nstrip_prefix = true\nscopes = [\"a\"]\n";
        let table = file::parse(table, AROUND).unwrap();
        let explained = explain(&table, &["/sign-in".to_owned()], method, target);
        (explained.answered, explained.facts)
    }

    #[test]
    fn the_rule_that_answers_is_told_with_its_reason() {
        let (answered, facts) = ask("POST", "/x/../api/orders?a=b");
        assert!(answered);
        assert_eq!(facts["path"], "/api/orders");
        assert_eq!(facts["rule"], "/api/*");
        assert_eq!(facts["why"], "the most specific of those that match: /api/*, /*");
        assert_eq!(facts["upstream"], "http://orders:8080/orders");
        assert_eq!(facts["asks"], json!({"scopes": ["a"]}));
        assert!(as_text(&facts).contains("rule      /api/*\n"));
    }

    #[test]
    fn it_is_told_what_foreign_requests_meet() {
        for (csrf, method, expected) in [
            ("origin", "POST", "another origin: 403"),
            ("header", "DELETE", "without x-csrf: 403"),
            ("none", "POST", "another origin: passes"),
            ("header", "GET", "401 or 403"),
        ] {
            let table = format!(
                "[[route]]\npath = \"/*\"\nguard = \"api\"\nupstream = \"http://a\"\ncsrf = \"{csrf}\"\n"
            );
            let table = file::parse(&table, AROUND).unwrap();
            let guard = explain(&table, &[], method, "/a").facts["guard"].to_string();
            assert!(
                guard.trim_end_matches('"').ends_with(expected),
                "{csrf} {method}: {guard}"
            );
        }
    }

    #[test]
    fn it_is_told_that_a_form_is_kept() {
        let table = "[[route]]\npath = \"/*\"\nguard = \"page\"\nupstream = \"http://a\"\nkeep_form = true\n";
        let table = file::parse(table, AROUND).unwrap();
        for (method, kept) in [("POST", true), ("GET", false)] {
            let guard = explain(&table, &[], method, "/a").facts["guard"].to_string();
            assert_eq!(guard.contains("their form is kept"), kept, "{method}: {guard}");
        }
    }

    #[test]
    fn what_no_rule_answers_is_told_too() {
        for (target, answered, answer) in [
            ("/a%2fb", false, "400: the path can be read in more than one way"),
            (
                "/API/orders",
                false,
                "400: the path can be read in more than one way",
            ),
            ("/api/auth/login", true, "the edge itself"),
            ("/sign-in?returnTo=%2Fa", true, "the edge itself"),
            (
                "/x/../api/auth/login",
                false,
                "404: another spelling of a path of the edge",
            ),
        ] {
            let (was, facts) = ask("GET", target);
            assert_eq!(
                (was, facts["answer"].as_str()),
                (answered, Some(answer)),
                "{target}"
            );
        }
        assert_eq!(
            ask("POST", "/about").1["answer"],
            "405: the upstream is not asked by this method"
        );
    }
}
