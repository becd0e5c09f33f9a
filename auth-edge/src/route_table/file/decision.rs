//! Reads which decision point a rule asks, and what.

use std::path::PathBuf;
use std::time::Duration;

use chassis::settings::toml_file::{Table, Value};
use url::Url;

use super::number;
use crate::route_table::decision::DecisionRule;

/// The keys that only matter next to `decide`.
const DEPENDENT: [&str; 4] = [
    "decide_actions",
    "decide_claims",
    "decide_authorization_file",
    "decide_stale",
];

pub(super) fn decision(table: &Table<'_>) -> Option<DecisionRule> {
    let texts = |key| table.get(key).and_then(Value::strings).unwrap_or_default();
    let stale = table
        .get("decide_stale")
        .and_then(|value| number(value, 0, "whole seconds"));
    let (actions, claims) = (texts("decide_actions"), texts("decide_claims"));
    let file = table.get("decide_authorization_file").and_then(Value::string);
    let Some(value) = table.get("decide") else {
        for key in DEPENDENT {
            if table.get(key).is_some() {
                table.wrong(format!("{key} needs decide = \"https://…\""));
            }
        }
        return None;
    };
    Some(DecisionRule {
        url: address(value)?,
        actions,
        claims,
        authorization_file: file.map(PathBuf::from),
        stale: Duration::from_secs(stale.unwrap_or_default()),
    })
}

fn address(value: Value<'_>) -> Option<Url> {
    let text = value.string()?;
    let is_plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    let url = Url::parse(&text).ok().filter(is_plain);
    if url.is_none() {
        // The message does not repeat the value: it could hold a password.
        value.wrong("decide has to be the http(s) address of a decision point, without user, query and fragment. The edge adds /access/v1/evaluation");
    }
    url
}
