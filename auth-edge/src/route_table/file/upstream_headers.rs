//! Reads the identity headers of a rule: the names that an application reads, and their values.

use std::collections::BTreeSet;
use std::sync::Arc;

use chassis::settings::toml_file::{Table, Value};

use crate::route_table::upstream_headers::{
    ASSERTED_CLAIMS, HeaderEncoding, HeaderSource, OWN_CLAIMS, UpstreamHeader, UpstreamHeaders, parse_name,
};
use crate::values::header_name::folded;

pub(super) fn upstream_headers(table: &Table<'_>) -> UpstreamHeaders {
    let encoding = table.get("header_encoding");
    let headers = table.get("headers");
    if let (Some(encoding), None) = (encoding, headers) {
        encoding.wrong("header_encoding needs headers: there is nothing to encode");
    }
    let encoding = encoding.and_then(|value| {
        value.one_of(&[
            ("utf-8", HeaderEncoding::Utf8),
            ("percent", HeaderEncoding::Percent),
        ])
    });
    UpstreamHeaders {
        all: headers.map(all).unwrap_or_default(),
        encoding: encoding.unwrap_or_default(),
    }
}

fn all(value: Value<'_>) -> Vec<UpstreamHeader> {
    let entries = value.as_entries().filter(|entries| !entries.is_empty());
    let Some(entries) = entries else {
        value.wrong("expected a table of headers: { Remote-User = \"claim:preferred_username\" }");
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (name, value) in entries {
        let parsed = parse_name(name).map_err(|why| value.wrong(format!("header {name:?}: {why}")));
        let source = value.string().map(|text| {
            HeaderSource::parse(&text).map_err(|why| value.wrong(format!("header {name:?}: {why}")))
        });
        let (Ok(parsed), Some(Ok(source))) = (parsed, source) else {
            continue;
        };
        if !seen.insert(folded(parsed.as_str()).into_owned()) {
            value.wrong(format!(
                "header {name:?} is there twice: applications treat upper and lower case, and - and _, as equal"
            ));
        }
        all.push(UpstreamHeader { name: parsed, source });
    }
    all
}

/// The claims of an assertion: the listed ones, or the usual ones for `true`.
pub(super) fn asserted_claims(value: Value<'_>) -> Option<Arc<[String]>> {
    if value.as_list().is_none() {
        let usual = ASSERTED_CLAIMS.iter().map(|name| (*name).to_owned());
        return value.boolean()?.then(|| usual.collect());
    }
    let names = value.strings()?;
    if let Some(own) = names.iter().find(|name| OWN_CLAIMS.contains(&name.as_str())) {
        value.wrong(format!(
            "upstream_jwt must not hold {own}: the edge sets it itself"
        ));
    }
    Some(names.into())
}

#[cfg(test)]
mod tests {
    use super::super::{RouteFileContext, parse};
    use super::*;

    #[test]
    fn an_assertion_holds_the_usual_claims_or_those_listed_and_none_of_the_edges_own() {
        let claims = |value: &str| {
            let around = RouteFileContext {
                signs: true,
                ..RouteFileContext::default()
            };
            let table = parse(
                &rule("api", "http://a", &format!("upstream_jwt = {value}")),
                &around,
            );
            table.map(|table| table.routes.all()[0].upstream_jwt.clone())
        };
        assert_eq!(claims("false").unwrap(), None);
        assert!(claims("true").unwrap().unwrap().contains(&"groups".to_owned()));
        assert_eq!(&*claims("[\"email\"]").unwrap().unwrap(), ["email"]);
        for wrong in ["1", "[]", "[1]"] {
            assert!(claims(wrong).is_err(), "{wrong}");
        }
        for own in OWN_CLAIMS {
            assert!(claims(&format!("[\"{own}\"]")).is_err(), "{own}");
        }
    }

    fn rule(guard: &str, upstream: &str, more: &str) -> String {
        format!("[[route]]\npath = \"/a\"\nguard = \"{guard}\"\nupstream = \"{upstream}\"\n{more}\n")
    }

    #[test]
    fn headers_are_read_with_their_sources_and_their_encoding() {
        let more = "headers = { Remote-User = \"subject\", Remote-Roles = \"claim:a.b\" }\nheader_encoding = \"percent\"";
        let table = parse(&rule("api", "http://a", more), &RouteFileContext::default()).unwrap();
        let headers = &table.routes.all()[0].headers;
        assert_eq!(
            (headers.all.len(), headers.encoding),
            (2, HeaderEncoding::Percent)
        );
    }

    #[test]
    fn what_no_header_can_be_is_refused_with_the_reason() {
        for (more, reason) in [
            ("headers = { Host = \"subject\" }", "where it goes"),
            ("headers = { Cookie = \"subject\" }", "credentials"),
            ("headers = { X-Auth-Subject = \"subject\" }", "only the edge"),
            ("headers = { X-Forwarded-For = \"subject\" }", "only the edge"),
            ("headers = { \"a b\" = \"subject\" }", "letters, digits"),
            ("headers = { Remote-User = \"email\" }", "claim:NAME"),
            (
                "headers = { Remote-User = \"claim:https://a.example/b\" }",
                "double quotes",
            ),
            ("headers = { Remote-User = 1 }", "text in quotes"),
            (
                "headers = { Remote-User = \"subject\", remote_user = \"issuer\" }",
                "there twice",
            ),
            ("headers = {}", "table of headers"),
            ("headers = \"Remote-User\"", "table of headers"),
            ("header_encoding = \"percent\"", "needs headers"),
            (
                "headers = { Remote-User = \"subject\" }\nheader_encoding = \"latin1\"",
                "is unknown",
            ),
        ] {
            let wrong = parse(&rule("api", "http://a", more), &RouteFileContext::default()).expect_err(more);
            assert!(wrong[0].text.contains(reason), "{more}: {wrong:?}");
        }
    }

    #[test]
    fn only_a_guarded_server_is_told_who_somebody_is_and_by_what_host() {
        let (headers, host) = ("headers = { Remote-User = \"subject\" }", "preserve_host = true");
        for (guard, upstream, more, fits) in [
            ("page", "http://a", headers, true),
            ("none", "http://a", headers, false),
            ("page", "dir:web", headers, false),
            ("none", "http://a", host, true),
            ("none", "https://a", host, true),
            ("none", "h2c://a", host, false),
            ("none", "dir:web", host, false),
            ("page", "http://a", "denied_message = \"Ask.\"", false),
            (
                "page",
                "http://a",
                "denied_message = \"Ask.\"\nclaims = { a = 1 }",
                true,
            ),
        ] {
            assert_eq!(
                parse(&rule(guard, upstream, more), &RouteFileContext::default()).is_ok(),
                fits,
                "{guard} {upstream} {more}"
            );
        }
    }
}
