//! Reads `[operator]`.

use std::sync::Arc;

use chassis::settings::toml_file::{Table, Value};

use super::context::RouteFileContext;
use super::{allow, contradictions, requirements};
use crate::route_table::allow::AllowList;
use crate::route_table::operator::{OperatedProviders, OperatorRule};
use crate::route_table::requirements::Requirements;

/// The claims that every operator sees: they identify a person.
const DEFAULT_CLAIMS: [&str; 3] = ["name", "email", "preferred_username"];

/// Most further claims. Each is in every session of a page.
const SHOWN_MAX: usize = 16;

/// The rule of the file, if it has one. `of_all` is the list at the top of the file.
pub(super) fn operator(
    file: &Table<'_>,
    of_all: Option<&Arc<AllowList>>,
    around: &RouteFileContext,
) -> Option<Arc<OperatorRule>> {
    file.table("operator", |table| {
        let mut right = requirements::of_person(table, around);
        let own_list = allow::allow(table);
        let names_people = !right.claims.is_empty()
            || right.organization.is_some()
            || own_list.as_ref().is_some_and(|list| list.names_people());
        if !names_people {
            table.wrong(
                "operator would admit every account: it needs claims, organization, or allow with emails, emails_file, email_domains or groups",
            );
        }
        if right.device_bound && !around.binds {
            table.wrong(contradictions::DEVICE_BOUND_NEEDS);
        }
        right.allow = own_list.or_else(|| of_all.cloned());
        let sign_in = Requirements {
            max_age_secs: right.max_age_secs.take(),
            acr: std::mem::take(&mut right.acr),
            device_bound: std::mem::take(&mut right.device_bound),
            ..Requirements::default()
        };
        let further = table.get("show").map(read_claim_names).unwrap_or_default();
        Arc::new(OperatorRule {
            right,
            sign_in,
            providers: table
                .get("providers")
                .map_or(OperatedProviders::Own, |value| providers(value, around)),
            claims: DEFAULT_CLAIMS.map(str::to_owned).into_iter().chain(further).collect(),
        })
    })
}

fn providers(value: Value<'_>, around: &RouteFileContext) -> OperatedProviders {
    let ids = value.strings().unwrap_or_default();
    if ids == ["*"] {
        return OperatedProviders::All;
    }
    for id in ids.iter().filter(|id| !around.connections.contains(id)) {
        value.wrong(format!(
            "provider {id:?} is not the id of a provider in OIDC_PROVIDERS; [\"*\"] alone means all"
        ));
    }
    OperatedProviders::Listed(ids)
}

fn read_claim_names(value: Value<'_>) -> Vec<String> {
    let names = value.strings().unwrap_or_default();
    if names.len() > SHOWN_MAX || names.iter().any(|name| name == "*") {
        value.wrong(format!("show names the claims one by one, at most {SHOWN_MAX}"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(table: &str) -> Result<Arc<OperatorRule>, String> {
        let around = RouteFileContext {
            connections: vec!["a".to_owned(), "b".to_owned()],
            ..RouteFileContext::default()
        };
        let read = parse(table, &around).map_err(|mistakes| mistakes.to_string());
        read.map(|table| table.operator.expect("a rule"))
    }

    #[test]
    fn a_rule_admits_people_by_claims_and_shows_a_few_of_theirs() {
        let rule = read(
            "[operator]\nclaims = { groups = \"support\" }\nmax_age = 3600\nacr = [\"gold\"]\n\
             providers = [\"b\"]\nshow = [\"department\"]\n",
        );
        let rule = rule.unwrap();
        assert_eq!((rule.right.claims.len(), rule.right.max_age_secs), (1, None));
        assert_eq!(rule.sign_in.max_age_secs, Some(3600));
        assert_eq!(rule.providers, OperatedProviders::Listed(vec!["b".to_owned()]));
        assert_eq!(rule.claims, ["name", "email", "preferred_username", "department"]);
    }

    #[test]
    fn without_providers_a_rule_is_about_the_own_one() {
        let rule = read("[operator]\norganization = \"acme\"\n").unwrap();
        assert_eq!(rule.providers, OperatedProviders::Own);
        let rule = read("[operator]\norganization = \"acme\"\nproviders = [\"*\"]\n").unwrap();
        assert_eq!(rule.providers, OperatedProviders::All);
    }

    #[test]
    fn the_list_at_the_top_holds_for_operators_too() {
        let rule = read("[allow]\nnetworks = [\"10.0.0.0/8\"]\n[operator]\norganization = \"acme\"\n");
        assert!(rule.unwrap().right.allow.is_some());
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        const RIGHT: &str = "[operator]\nclaims = { groups = \"support\" }\n";
        for (table, line, expected) in [
            ("[operator]\n".to_owned(), 1, "would admit every account"),
            (
                "\n[operator]\nmax_age = 60\n".to_owned(),
                2,
                "would admit every account",
            ),
            (
                "[operator]\nallow = { networks = [\"10.0.0.0/8\"] }\n".to_owned(),
                1,
                "would admit every account",
            ),
            (
                "[operator]\nallow = { not = { emails = [\"a@b.example\"] } }\n".to_owned(),
                1,
                "would admit every account",
            ),
            (
                "[allow]\nemails = [\"a@b.example\"]\n[operator]\n".to_owned(),
                3,
                "would admit every account",
            ),
            (format!("{RIGHT}clams = 1\n"), 3, "clams"),
            (format!("{RIGHT}scopes = [\"a\"]\n"), 3, "scopes"),
            (format!("{RIGHT}decide = \"https://pdp.example\"\n"), 3, "decide"),
            (
                format!("{RIGHT}providers = [\"c\"]\n"),
                3,
                "is not the id of a provider",
            ),
            (
                format!("{RIGHT}providers = [\"*\", \"a\"]\n"),
                3,
                "[\"*\"] alone means all",
            ),
            (format!("{RIGHT}show = [\"*\"]\n"), 3, "one by one"),
            (format!("{RIGHT}device_bound = true\n"), 1, "EDGE_DEVICE_BOUND"),
            (
                format!("{RIGHT}connection = \"c\"\n"),
                3,
                "is not the id of a provider",
            ),
            (format!("{RIGHT}{RIGHT}"), 3, "duplicate key"),
            (
                format!("[{RIGHT}").replace("operator]", "operator]]"),
                1,
                "has to be a table",
            ),
        ] {
            let wrong = read(&table).expect_err(&table);
            assert!(
                wrong.contains(&format!("line {line}: ")) && wrong.contains(expected),
                "{table} {wrong}"
            );
        }
    }
}
