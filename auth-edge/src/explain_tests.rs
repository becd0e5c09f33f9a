//! What the command `routes` tells.

use super::*;
use crate::route_table::file;

const AROUND: RouteFileContext<'_> = RouteFileContext {
    signs: false,
    binds: true,
    hosts: None,
    connections: None,
    own_paths: &[],
};

fn ask(method: &str, target: &str) -> (bool, Map<String, Value>) {
    let table = "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"dir:web\"\n\
         [[route]]\npath = \"/api/*\"\nguard = \"api\"\nupstream = \"http://orders:8080\"\nstrip_prefix = true\nscopes = [\"a\"]\n";
    let table = file::parse(table, AROUND).unwrap();
    let asked = Asked {
        host: "",
        method,
        target,
    };
    let explained = explain(&table, &["/sign-in".to_owned()], asked);
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
fn the_api_a_token_is_for_is_told() {
    let table = "[[route]]\npath = \"/*\"\nguard = \"api\"\nupstream = \"http://a\"\naccess_token = true\naudience = \"orders\"\n";
    let table = file::parse(table, AROUND).unwrap();
    let asked = Asked {
        host: "",
        method: "GET",
        target: "/a",
    };
    let asks = &explain(&table, &[], asked).facts["asks"];
    assert_eq!(*asks, json!({"access_token": true, "audience": "orders"}));
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
        let asked = Asked {
            host: "",
            method,
            target: "/a",
        };
        let guard = explain(&table, &[], asked).facts["guard"].to_string();
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
        let asked = Asked {
            host: "",
            method,
            target: "/a",
        };
        let guard = explain(&table, &[], asked).facts["guard"].to_string();
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

#[test]
fn hosts_methods_and_what_is_told_are_explained() {
    let table = "[[route]]\npath = \"/*\"\nhost = \"a.example\"\nmethods = [\"GET\"]\nguard = \"page\"\nupstream = \"http://a\"\n\
         preserve_host = true\nheaders = { Remote-User = \"claim:email\" }\n\
         [[check]]\nguard = \"api\"\nclaims = { groups = \"admin\" }\n";
    let table = file::parse(table, AROUND).unwrap();
    let asked = |host, method| Asked {
        host,
        method,
        target: "/a",
    };
    let told = explain(&table, &[], asked("A.example.", "GET")).facts;
    assert_eq!(told["rule"], "GET a.example/*");
    assert_eq!(
        told["tells"],
        json!({"remote-user": "claim:email", "host": "that of the browser"})
    );
    let other = explain(&table, &[], asked("a.example", "POST"));
    assert_eq!(other.facts["answer"], "405: rules answer here to GET alone");
    assert!(!other.answered && !explain(&table, &[], asked("b.example", "GET")).answered);
    let check = explain_check(&table, asked("b.example", "POST")).facts;
    assert_eq!(check["asks"], json!({"claims": {"groups": ["admin"]}}));
    assert_eq!(check["upstream"], "the proxy that asks passes it on");
}
