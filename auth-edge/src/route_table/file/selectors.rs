//! Reads the selectors of a rule besides its path: hosts and methods.

use axum::http::Method;
use chassis::settings::toml_file::{Table, Value};

use crate::values::host_name;

/// The methods that a rule can name: a misspelt method is a mistake, not a rule that never matches.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// The hosts of a rule, normalised for comparison.
pub(super) fn hosts(table: &Table<'_>, own: &[String]) -> Vec<String> {
    let Some(value) = table.get("host") else {
        return Vec::new();
    };
    let members = value.as_list().unwrap_or_else(|| vec![value]);
    members
        .into_iter()
        .filter_map(|member| host(member, own))
        .collect()
}

fn host(value: Value<'_>, own: &[String]) -> Option<String> {
    let text = value.string()?;
    let is_alone = |host: &String| host.eq_ignore_ascii_case(text.strip_suffix('.').unwrap_or(&text));
    let host = host_name::parse(&text).filter(is_alone);
    match &host {
        None => value.wrong(format!(
            "host {text:?} has to be a name alone: \"app.example.com\", without scheme, port, path or \"*\""
        )),
        Some(host) if !own.is_empty() && !own.contains(host) => value.wrong(format!(
            "host {host:?} is not a host of the edge: add it to EDGE_HOSTS, so that users can sign in there"
        )),
        Some(_) => {}
    }
    host
}

/// The methods of a rule.
pub(super) fn methods(table: &Table<'_>) -> Vec<Method> {
    let Some(value) = table.get("methods") else {
        return Vec::new();
    };
    let names = value.strings().unwrap_or_default();
    let mut methods = Vec::new();
    for name in &names {
        match METHODS.iter().find(|method| method.as_str() == name) {
            Some(method) => methods.push(method.clone()),
            None => value.wrong(format!(
                "method {name:?} is unknown: write GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS"
            )),
        }
    }
    methods
}

#[cfg(test)]
mod tests {
    use super::super::{RouteFileContext, parse};

    fn around(hosts: &[&str]) -> RouteFileContext {
        RouteFileContext {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..RouteFileContext::default()
        }
    }

    fn rule(path: &str, more: &str) -> String {
        format!("[[route]]\npath = \"{path}\"\nguard = \"none\"\nupstream = \"http://a\"\n{more}\n")
    }

    #[test]
    fn two_rules_that_one_request_could_meet_alike_are_a_mistake() {
        for (first, second, fits) in [
            ("", "", false),
            ("host = \"a.example\"", "", true),
            ("host = \"a.example\"", "host = \"b.example\"", true),
            ("host = \"a.example\"", "host = \"A.Example.\"", false),
            (
                "host = [\"a.example\", \"b.example\"]",
                "host = \"b.example\"",
                false,
            ),
            ("methods = [\"GET\"]", "", true),
            ("methods = [\"GET\"]", "methods = [\"POST\"]", true),
            ("methods = [\"GET\", \"POST\"]", "methods = [\"POST\"]", false),
            (
                "host = \"a.example\"\nmethods = [\"GET\"]",
                "methods = [\"GET\"]",
                true,
            ),
            (
                "host = \"a.example\"\nmethods = [\"GET\"]",
                "host = \"a.example\"",
                true,
            ),
        ] {
            let table = rule("/a", first) + &rule("/a", second);
            assert_eq!(parse(&table, &around(&[])).is_ok(), fits, "{first} | {second}");
        }
        let both = rule("/*", "") + "[[check]]\nguard = \"page\"\n";
        assert!(
            parse(&both, &around(&[])).is_ok(),
            "rules of either kind are apart"
        );
        let checks = "[[check]]\nguard = \"page\"\n[[check]]\nguard = \"api\"\npath = \"/*\"\n";
        assert!(parse(checks, &around(&[])).is_err());
    }

    #[test]
    fn a_host_is_a_name_of_the_edges_and_a_method_one_that_is_known() {
        for more in [
            "host = \"https://a.example\"",
            "host = \"a.example:8080\"",
            "host = \"*.example\"",
            "host = \"\"",
            "host = []",
            "host = 1",
            "methods = \"GET\"",
            "methods = []",
            "methods = [\"get\"]",
            "methods = [\"TRACE\"]",
        ] {
            assert!(parse(&rule("/a", more), &around(&[])).is_err(), "{more}");
        }
        let own = ["a.example"];
        assert!(parse(&rule("/a", "host = \"a.example\""), &around(&own)).is_ok());
        let wrong = parse(&rule("/a", "host = \"b.example\""), &around(&own)).unwrap_err();
        assert!(wrong[0].text.contains("EDGE_HOSTS"), "{wrong:?}");
        let check = "[[check]]\nguard = \"page\"\nhost = \"b.example\"\n";
        assert!(parse(check, &around(&own)).is_ok(), "another proxy's");
    }

    #[test]
    fn a_check_has_nothing_that_only_the_edges_own_passage_has() {
        for more in [
            "upstream = \"http://a\"",
            "strip_prefix = true",
            "preserve_host = true",
            "max_body = 1",
            "csrf = \"none\"",
            "access_token = true",
        ] {
            let check = format!("[[check]]\nguard = \"page\"\n{more}\n");
            assert!(parse(&check, &around(&[])).is_err(), "{more}");
        }
    }
}
