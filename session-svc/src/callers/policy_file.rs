//! Reads the list of callers.
//!
//! ```toml
//! [[caller]]
//! identity = "spiffe://prod.example/ns/auth/sa/auth-edge"
//! rpcs = ["*"]
//!
//! [[caller]]
//! identity = "dns:support.internal"
//! rpcs = ["*", "SearchSessions"]
//!
//! [[caller]]
//! identity = "dns:orders.internal"
//! rpcs = ["GetSession", "GetAccessToken"]
//! ```
//!
//! Invariant: the error names every mistake with its line; a list with a mistake is not used.

use std::collections::HashSet;

use chassis::settings::toml_file::{self, FileMistakes, Table, Value};
use chassis::settings::unknown;

use super::identity::check_name;
use super::{Policy, Rpc};

/// The most callers of one list: far more than the services that share a session service.
const MAX_CALLERS: usize = 1_000;

/// Stands for every method but those for operators.
const EVERY: &str = "*";

/// The mistake of a method next to `"*"`.
const INCLUDED: &str =
    "\"*\" means every method but those for operators, so only the latter may stand next to it";

/// Reads a list.
///
/// # Errors
/// Every mistake, in the order of the file.
pub fn parse(text: &str) -> Result<Policy, FileMistakes> {
    let mut seen = HashSet::new();
    let callers = toml_file::parse(text, |file| {
        file.tables("caller", MAX_CALLERS, |table| {
            let (identity, rpcs) = caller(table)?;
            if !seen.insert(identity.clone()) {
                table.wrong(format!(
                    "identity \"{identity}\" is there twice: keep one of the two"
                ));
            }
            Some((identity, rpcs))
        })
    })?;
    if callers.is_empty() {
        return Err(FileMistakes::of_file(
            "there is no [[caller]], so no client could call; leave SESSION_CALLERS unset to let every verified client call",
        ));
    }
    Ok(Policy(callers.into_iter().collect()))
}

fn caller(table: &Table<'_>) -> Option<(String, Vec<Rpc>)> {
    let identity = table.required("identity").and_then(identity);
    let rpcs = table.required("rpcs").and_then(rpcs);
    Some((identity?, rpcs?))
}

fn identity(value: Value<'_>) -> Option<String> {
    let text = value.string()?;
    match check_name(&text) {
        Ok(()) => Some(text),
        Err(why) => {
            value.wrong(format!("identity {text:?} {why}"));
            None
        }
    }
}

fn rpcs(value: Value<'_>) -> Option<Vec<Rpc>> {
    let Some(members) = value.as_list() else {
        value.wrong("rpcs has to be a list such as [\"GetSession\"], or [\"*\"] for every method");
        return None;
    };
    let every = || Rpc::ALL.iter().copied().filter(|rpc| !rpc.is_for_operators());
    let mut has_every = false;
    let mut rpcs: Vec<Rpc> = Vec::new();
    for member in members {
        let Some(name) = member.string() else { continue };
        match Rpc::from_name(&name).filter(|rpc| rpc.right() == *rpc) {
            Some(rpc) if has_every && !rpc.is_for_operators() => member.wrong(INCLUDED),
            Some(rpc) if rpcs.contains(&rpc) => member.wrong(format!("rpc {name:?} is there twice")),
            Some(rpc) => rpcs.push(rpc),
            None if name == EVERY && rpcs.iter().all(|rpc| rpc.is_for_operators()) => {
                has_every = true;
                rpcs.extend(every());
            }
            None if name == EVERY => member.wrong(INCLUDED),
            None => {
                let rights = Rpc::ALL.iter().filter(|rpc| rpc.right() == **rpc);
                member.wrong(unknown("rpc", &name, rights.map(|rpc| rpc.method_name())));
            }
        }
    }
    Some(rpcs)
}

#[cfg(test)]
#[path = "policy_file_tests.rs"]
mod tests;
