//! What `check-store` answers: a table for people, a document for programs.

use serde_json::{Value, json};

use super::census::Census;
use super::output::{CommandOutput, Exit};
use super::store_access::OpenedStore;
use super::table;
use crate::store::inspect::Assessment;

/// One thing that was looked at.
pub(super) struct Check {
    name: String,
    result: &'static str,
    value: String,
    advice: String,
}

impl Check {
    /// What was found, and how it stands.
    pub(super) fn new(name: impl Into<String>, value: impl Into<String>, standing: Assessment) -> Self {
        let (result, advice) = match standing {
            Assessment::Fine => ("ok", ""),
            Assessment::Warning(advice) | Assessment::Unknown(advice) => ("warning", advice),
            Assessment::Problem(advice) => ("problem", advice),
        };
        Self {
            name: name.into(),
            result,
            value: value.into(),
            advice: advice.to_owned(),
        }
    }
}

/// The answer: every check, the keys, and what was counted.
pub(super) fn answered(kind: &str, checks: &[Check], census: &Census, opened: &OpenedStore) -> CommandOutput {
    let healthy = checks.iter().all(|check| check.result != "problem");
    let ring = opened.vault.key_ids();
    let mut keys: Vec<_> = ring
        .iter()
        .map(|key| (*key, census.sealed_by.get(key).copied().unwrap_or_default()))
        .collect();
    let foreign = census.sealed_by.iter().filter(|(key, _)| !ring.contains(key));
    keys.extend(foreign.map(|(key, count)| (*key, *count)));
    let role = |at: usize| match at {
        0 => "seals",
        at if at < ring.len() => "opens",
        _ => "not in the ring",
    };
    let rows: Vec<Vec<String>> = checks
        .iter()
        .map(|check| {
            vec![
                check.result.to_owned(),
                check.name.replace('_', " "),
                [check.value.as_str(), check.advice.as_str()]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join(": "),
            ]
        })
        .collect();
    let key_rows: Vec<Vec<String>> = keys
        .iter()
        .enumerate()
        .map(|(at, (key, count))| vec![key.to_string(), role(at).to_owned(), count.to_string()])
        .collect();
    let text = format!(
        "{}\n{}\n{} sessions, {} notes, {} lists with {} entries\n{}\n",
        table::columns(&["RESULT", "CHECK", "FOUND"], &rows),
        table::columns(&["KEY", "USE", "SEALED"], &key_rows),
        census.sessions,
        census.notes,
        census.indexes,
        census.index_entries,
        if healthy { "healthy" } else { "there are problems" },
    );
    let keys: Vec<Value> = keys
        .iter()
        .enumerate()
        .map(|(at, (key, count))| json!({ "id": key.to_string(), "use": role(at).replace(' ', "_"), "sealed": count }))
        .collect();
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name,
                "result": check.result,
                "value": check.value,
                "advice": Some(&check.advice).filter(|advice| !advice.is_empty()),
            })
        })
        .collect();
    CommandOutput {
        text,
        json: json!({
            "healthy": healthy,
            "store": kind,
            "checks": checks,
            "keys": keys,
            "records": {
                "examined": census.examined(),
                "complete": census.complete,
                "sessions": census.sessions,
                "notes": census.notes,
                "unreadable": {
                    "unknown_key": census.unknown_key,
                    "newer_format": census.newer_format,
                    "corrupt": census.corrupt,
                },
                "foreign": census.foreign,
            },
            "indexes": {
                "lists": census.indexes,
                "entries": census.index_entries,
                "without_record": census.without_record,
            },
        }),
        exit: if healthy { Exit::Done } else { Exit::Failed },
    }
}
