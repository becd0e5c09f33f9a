//! What `check-store` answers: a table for people, a document for programs.

use serde_json::{Value, json};

use super::output::{CommandOutput, Exit};
use super::table;
use crate::store::fact::Assessment;

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

/// The answer: every check.
pub(super) fn answered(kind: &str, checks: &[Check]) -> CommandOutput {
    let healthy = checks.iter().all(|check| check.result != "problem");
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
    let text = format!(
        "{}\n{}\n",
        table::columns(&["RESULT", "CHECK", "FOUND"], &rows),
        if healthy { "healthy" } else { "there are problems" },
    );
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
        json: json!({ "healthy": healthy, "store": kind, "checks": checks }),
        exit: if healthy { Exit::Done } else { Exit::Failed },
    }
}
