//! The content of a list, and every mistake in it.

use super::*;
use crate::callers::{AccessDenied, Callers};

const EDGE: &str = "spiffe://prod.example/ns/auth/sa/auth-edge";

const GOOD: &str = r#"
[[caller]]
identity = "spiffe://prod.example/ns/auth/sa/auth-edge"
rpcs = ["*"]

[[caller]]
identity = "dns:orders.internal"
rpcs = ["GetSession", "GetAccessToken"]
"#;

fn mistakes(text: &str) -> Vec<String> {
    let told = parse(text).unwrap_err();
    told.iter().map(ToString::to_string).collect()
}

#[test]
fn a_caller_may_call_what_its_entry_says_and_nothing_else() {
    let policy = parse(GOOD).unwrap();
    let orders = vec![Rpc::GetSession, Rpc::GetAccessToken];
    let every = Rpc::ALL.iter().copied().filter(|rpc| !rpc.is_for_operators());
    let expected = [
        (EDGE.to_owned(), every.collect()),
        ("dns:orders.internal".to_owned(), orders),
    ];
    assert_eq!(policy, Policy(expected.into()));
}

#[test]
fn nobody_in_particular_is_unknown_to_a_list_and_welcome_without_one() {
    let nobody = crate::callers::Caller::anonymous();
    let callers = Callers::listed(parse(GOOD).unwrap());
    assert_eq!(
        callers.allow(&nobody, Some(Rpc::GetSession)),
        Err(AccessDenied::Unknown)
    );
    assert_eq!(callers.allow(&nobody, None), Err(AccessDenied::Unknown));
    for rpc in [None, Some(Rpc::EndSessions)] {
        assert_eq!(Callers::anyone().allow(&nobody, rpc), Ok(()));
    }
}

#[test]
fn a_star_includes_no_method_for_operators_and_may_stand_next_to_them() {
    for (rpcs, expected) in [
        (r#"["*"]"#, false),
        (r#"["*", "SearchSessions"]"#, true),
        (r#"["SearchSessions", "*"]"#, true),
    ] {
        let list = format!("[[caller]]\nidentity = \"dns:a\"\nrpcs = {rpcs}\n");
        let policy = parse(&list).unwrap();
        let rights = &policy.0["dns:a"];
        assert!(rights.contains(&Rpc::GetSession), "{rpcs}");
        assert!(!rights.contains(&Rpc::EndFoundSessions), "{rpcs}");
        assert_eq!(rights.contains(&Rpc::SearchSessions), expected, "{rpcs}");
    }
}

#[test]
fn every_mistake_is_named_at_once_with_its_line() {
    let told = mistakes(
        r#"
[[caller]]
identity = "dns:*.internal"
rpcs = ["GetSesion"]

[[caller]]
identity = "orders"
rpcs = []

[[caller]]
identiy = "dns:a"
rpcs = ["*", "GetSession", "Fly"]

[[caller]]
identity = "dns:b"
rpcs = ["GetSession", "GetSession"]

[[caller]]
identity = 7
rpcs = "GetSession"
"#,
    );
    let expected = [
        "line 3: identity \"dns:*.internal\" has to be one whole name: there are no wildcards",
        "line 4: unknown rpc \"GetSesion\": did you mean \"GetSession\"?",
        "line 7: identity \"orders\" has to be \"spiffe://TRUST-DOMAIN/PATH\" or \"dns:NAME\"",
        "line 8: rpcs has to be a list such as [\"GetSession\"], or [\"*\"] for every method",
        "line 10: the caller has no identity",
        "line 11: unknown key \"identiy\": did you mean \"identity\"?",
        "line 12: \"*\" means every method but those for operators, so only the latter may stand next to it",
        "line 12: unknown rpc \"Fly\"",
        "line 16: rpc \"GetSession\" is there twice",
        "line 19: expected a text in quotes",
        "line 20: rpcs has to be a list such as [\"GetSession\"], or [\"*\"] for every method",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_list_that_is_no_list_is_refused() {
    for (text, expected) in [
        ("", "line 1: there is no [[caller]]"),
        ("caller = 1", "line 1: callers have to be a list of tables"),
        (
            "[caller]\nidentity = \"dns:a\"",
            "line 1: callers have to be a list of tables",
        ),
        ("caller = [1]", "line 1: a caller has to be a table"),
        ("callers = []", "line 1: unknown key \"callers\""),
        ("[[caller]", "line 1: "),
    ] {
        let told = mistakes(text);
        assert!(told[0].starts_with(expected), "{text}: {told:?}");
    }
    let twice = format!("{GOOD}\n[[caller]]\nidentity = \"dns:orders.internal\"\nrpcs = [\"*\"]\n");
    assert_eq!(
        mistakes(&twice),
        ["line 10: identity \"dns:orders.internal\" is there twice: keep one of the two"]
    );
    let many: String = (0..=MAX_CALLERS)
        .map(|number| format!("[[caller]]\nidentity = \"dns:a{number}\"\nrpcs = [\"*\"]\n"))
        .collect();
    assert_eq!(
        mistakes(&many),
        ["line 1: there are 1001 callers; at most 1000 are taken"]
    );
}
