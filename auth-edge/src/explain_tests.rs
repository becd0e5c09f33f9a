//! What the command `routes` prints.

use super::*;
use crate::route_table::file;

const AROUND: RouteFileContext<'_> = RouteFileContext {
    signs: false,
    binds: true,
    hosts: None,
    connections: None,
    own_paths: &[],
};

fn explained(table: &str, (host, method, target): (&str, &str, &str), is_check: bool) -> (bool, Value) {
    let read = file::parse(table, AROUND).unwrap();
    let asked = Asked {
        host,
        method,
        target,
        is_check,
    };
    let explained = explain(&read, table, &["/sign-in".to_owned()], asked);
    (explained.is_answered, explained.to_json())
}

fn ask(method: &str, target: &str) -> (bool, Value) {
    let table = "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"dir:web\"\n\
         [[route]]\npath = \"/api/*\"\nguard = \"api\"\nupstream = \"http://orders:8080\"\nstrip_prefix = true\n[route.bearer]\n\n\
         [[check]]\nguard = \"api\"\n";
    explained(table, ("", method, target), false)
}

#[test]
fn the_rule_that_answers_is_printed_with_its_reason_and_as_it_stands_in_the_file() {
    let (is_answered, facts) = ask("POST", "/x/../api/orders?a=b");
    assert!(is_answered);
    assert_eq!(facts["path"], "/api/orders");
    assert_eq!(facts["rule"], "/api/*");
    assert_eq!(facts["why"], "the most specific of those that match: /api/*, /*");
    assert_eq!(facts["upstream"], "http://orders:8080/orders");
    assert_eq!(
        facts["file"],
        "line 5\n[[route]]\npath = \"/api/*\"\nguard = \"api\"\nupstream = \"http://orders:8080\"\nstrip_prefix = true\n[route.bearer]"
    );
}

#[test]
fn text_holds_the_same_facts_in_columns() {
    let explained = Explained {
        facts: vec![
            ("rule", "/a".to_owned()),
            ("file", "line 1\n[[route]]".to_owned()),
        ],
        is_answered: true,
    };
    assert_eq!(
        explained.to_text(),
        "rule      /a\nfile      line 1\n          [[route]]\n"
    );
}

#[test]
fn what_no_rule_answers_is_printed_too() {
    for (target, is_answered, answer) in [
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
            (is_answered, Some(answer)),
            "{target}"
        );
    }
    assert_eq!(
        ask("POST", "/about").1["answer"],
        "405: the upstream is not asked by this method"
    );
}

#[test]
fn hosts_methods_and_checks_choose_the_rule() {
    let table = "[[route]]\npath = \"/*\"\nhost = \"a.example\"\nmethods = [\"GET\"]\nguard = \"page\"\nupstream = \"http://a\"\n\
         [[check]]\nguard = \"api\"\nclaims = { groups = \"admin\" }\n";
    let asked = |host, method, is_check| explained(table, (host, method, "/a"), is_check);
    let (_, found) = asked("A.example.", "GET", false);
    assert_eq!(found["rule"], "GET a.example/*");
    let (is_answered, other) = asked("a.example", "POST", false);
    assert_eq!(other["answer"], "405: rules answer here to GET alone");
    assert!(!is_answered && !asked("b.example", "GET", false).0);
    let (is_answered, check) = asked("b.example", "POST", true);
    assert!(is_answered);
    assert_eq!(check["upstream"], "the proxy that asks passes it on");
    assert!(
        check["file"]
            .as_str()
            .unwrap()
            .ends_with("claims = { groups = \"admin\" }")
    );
    let ambiguous = explained(table, ("a.example", "GET", "/a%2fb"), true).1;
    assert_eq!(
        ambiguous["answer"],
        "403: the path can be read in more than one way"
    );
}
