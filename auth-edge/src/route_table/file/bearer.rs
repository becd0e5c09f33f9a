//! Reads `[route.bearer]`.

use chassis::settings::toml_file::{Table, Value};

use super::context::RouteFileContext;
use super::requirements::tokens;
use crate::route_table::bearer::{BearerRule, Introspection};
use crate::route_table::requirements::Requirements;

/// Longest audience in bytes; it goes into error answers and metadata.
const MAX_AUDIENCE_BYTES: usize = 512;

/// The table `bearer` of a rule, if it has one.
pub(super) fn bearer(
    table: &Table<'_>,
    requirements: &Requirements,
    around: &RouteFileContext,
) -> Option<BearerRule> {
    let rule = table.table("bearer", |table| BearerRule {
        audience: table.get("audience").and_then(audience),
        clients: table.get("clients").map(tokens).unwrap_or_default(),
        scopes: scopes(table, &requirements.token.scopes),
        dpop_required: table.flag("dpop_required"),
        introspection: table
            .get("introspection")
            .and_then(introspection)
            .unwrap_or_default(),
        pass_authorization: table.flag("pass_authorization"),
        ignore_authorization_details: table.flag("ignore_authorization_details"),
    })?;
    if around.connections.len() > 1
        && rule.introspection != Introspection::Never
        && requirements.connection.is_none()
    {
        table.wrong(
            "introspection with several providers needs connection = \"ID\": an opaque token does not name its issuer, and the edge sends it to this provider only",
        );
    }
    Some(rule)
}

/// The scopes of the table, and those that the rule requires of all callers.
fn scopes(table: &Table<'_>, rule_scopes: &[String]) -> Vec<String> {
    let mut scopes = table.get("scopes").map(tokens).unwrap_or_default();
    let further = rule_scopes.iter().filter(|scope| !scopes.contains(scope));
    let further: Vec<String> = further.cloned().collect();
    scopes.extend(further);
    scopes
}

fn audience(value: Value<'_>) -> Option<String> {
    let text = value.string()?;
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    if !plain || text.len() > MAX_AUDIENCE_BYTES {
        value.wrong("audience has to be what the provider writes into aud: visible ASCII characters, no space, quote or backslash");
    }
    Some(text)
}

/// `true` means opaque tokens, as in other gateways.
fn introspection(value: Value<'_>) -> Option<Introspection> {
    match value.scalar()?.as_str() {
        "true" | "opaque" => Some(Introspection::OpaqueTokens),
        "false" => Some(Introspection::Never),
        "always" => Some(Introspection::Always),
        _ => {
            value.wrong("introspection has to be true (tokens that are no JWT), false, or \"always\"");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::route_table::bearer::{BearerRule, Introspection};
    use crate::route_table::file::{RouteFileContext, parse};

    fn read(lines: &str, connections: &[&str]) -> Result<Option<BearerRule>, String> {
        let around = RouteFileContext {
            connections: connections.iter().map(|id| (*id).to_owned()).collect(),
            ..RouteFileContext::default()
        };
        let text = format!("[[route]]\npath = \"/orders/*\"\nupstream = \"http://orders\"\n{lines}\n");
        let table = parse(&text, &around).map_err(|mistakes| mistakes.to_string())?;
        Ok(table.routes.all()[0].bearer.clone())
    }

    #[test]
    fn a_table_says_what_a_token_needs_and_an_empty_one_is_enough() {
        let plain = BearerRule::default();
        let guarded = |lines: &str| read(&format!("guard = \"api\"\n{lines}"), &["one"]).unwrap();
        assert_eq!(guarded(""), None);
        assert_eq!(guarded("[route.bearer]"), Some(plain));
        let whole = "scopes = [\"a\"]\n[route.bearer]\naudience = \"api://orders\"\nclients = [\"cli\"]\nscopes = [\"b\", \"a\"]\ndpop_required = true\nintrospection = true\npass_authorization = true\nignore_authorization_details = true";
        let said = BearerRule {
            audience: Some("api://orders".to_owned()),
            clients: vec!["cli".to_owned()],
            scopes: vec!["b".to_owned(), "a".to_owned()],
            dpop_required: true,
            introspection: Introspection::OpaqueTokens,
            pass_authorization: true,
            ignore_authorization_details: true,
        };
        assert_eq!(guarded(whole), Some(said));
        let rule_scopes = guarded("scopes = [\"a\"]\n[route.bearer]\nintrospection = \"always\"").unwrap();
        assert_eq!(
            (rule_scopes.scopes, rule_scopes.introspection),
            (vec!["a".to_owned()], Introspection::Always)
        );
    }

    #[test]
    fn each_mistake_is_told_with_what_to_write() {
        for (lines, connections, told) in [
            (
                "guard = \"none\"\n[route.bearer]",
                &["one"][..],
                "line 1: bearer needs guard = \"page\" or \"api\"",
            ),
            (
                "guard = \"api\"\nbearer = true",
                &["one"],
                "line 5: bearer has to be a table",
            ),
            (
                "guard = \"api\"\n[route.bearer]\naudiences = \"a\"",
                &["one"],
                "did you mean \"audience\"",
            ),
            (
                "guard = \"api\"\n[route.bearer]\naudience = \"a b\"",
                &["one"],
                "line 6: audience has to be what the provider writes into aud",
            ),
            (
                "guard = \"api\"\n[route.bearer]\naudience = \"\"",
                &["one"],
                "expected a text that is not empty",
            ),
            (
                "guard = \"api\"\n[route.bearer]\nscopes = [\"a b\"]",
                &["one"],
                "a scope, class or client holds visible ASCII",
            ),
            (
                "guard = \"api\"\n[route.bearer]\nclients = [\"a b\"]",
                &["one"],
                "a scope, class or client holds visible ASCII",
            ),
            (
                "guard = \"api\"\n[route.bearer]\nintrospection = \"sometimes\"",
                &["one"],
                "introspection has to be true",
            ),
            (
                "guard = \"api\"\n[route.bearer]\nintrospection = true",
                &["one", "two"],
                "introspection with several providers needs connection",
            ),
        ] {
            let mistakes = read(lines, connections).unwrap_err();
            assert!(mistakes.contains(told), "{lines}: {mistakes}");
        }
        let checks = |lines: &str| {
            let text = format!("[[check]]\nguard = \"api\"\n{lines}\n");
            parse(&text, &RouteFileContext::default()).map_err(|mistakes| mistakes.to_string())
        };
        let told = "line 1: bearer of a check needs host";
        for nobodys in ["[check.bearer]", "host = []\n[check.bearer]"] {
            assert!(checks(nobodys).unwrap_err().contains(told), "{nobodys}");
        }
        assert!(checks("host = \"a.example\"\n[check.bearer]").is_ok());
        assert!(checks("[check.bearer]\naudience = \"api://orders\"").is_ok());
        let named = "guard = \"api\"\nconnection = \"two\"\n[route.bearer]\nintrospection = true";
        assert!(read(named, &["one", "two"]).is_ok());
    }
}
