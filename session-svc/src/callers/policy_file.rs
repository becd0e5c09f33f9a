//! Reads the list of callers.
//!
//! ```toml
//! [[caller]]
//! identity = "spiffe://prod.example/ns/auth/sa/auth-edge"
//! rpcs = ["*"]
//!
//! [[caller]]
//! identity = "dns:orders.internal"
//! rpcs = ["GetSession", "GetAccessToken"]
//! ```
//!
//! Invariant: every mistake is named at once, with its line; a list with a mistake is no list at all.

use std::collections::HashMap;
use std::ops::Range;

use chassis::settings::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Identity, Policy, Rpc, Rpcs};

/// The most callers of one list: far more services than share one session service.
const MAX_CALLERS: usize = 1_000;

/// Stands for every method.
const EVERY: &str = "*";

/// The keys of a caller.
const KEYS: [&str; 2] = ["identity", "rpcs"];

/// One mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct Mistake {
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub text: String,
}

/// Reads a list.
///
/// # Errors
/// Every mistake, in the order of the file.
pub fn parse(text: &str) -> Result<Policy, Vec<Mistake>> {
    let mut reading = Reading {
        text,
        mistakes: Vec::new(),
    };
    let (document, syntax) = DeTable::parse_recoverable(text);
    for error in syntax {
        reading.wrong(&error.span().unwrap_or_default(), error.message());
    }
    if !reading.mistakes.is_empty() {
        return Err(reading.mistakes);
    }
    let callers = reading.document(document.get_ref());
    if reading.mistakes.is_empty() {
        return Ok(Policy::new(callers));
    }
    reading.mistakes.sort_by_key(|mistake| mistake.line);
    Err(reading.mistakes)
}

struct Reading<'t> {
    text: &'t str,
    mistakes: Vec<Mistake>,
}

type Value<'t> = Spanned<DeValue<'t>>;

impl Reading<'_> {
    fn wrong(&mut self, span: &Range<usize>, text: impl Into<String>) {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let text = text.into();
        self.mistakes.push(Mistake { line, text });
    }

    fn document(&mut self, document: &DeTable<'_>) -> HashMap<Identity, Rpcs> {
        let mut callers = HashMap::new();
        let mut tables = 0;
        for (key, value) in document {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("caller", DeValue::Array(values)) => {
                    tables += values.len();
                    for value in values {
                        self.caller(value, &mut callers);
                    }
                }
                ("caller", _) => self.wrong(
                    &key.span(),
                    "callers have to be a list of tables: write [[caller]]",
                ),
                (other, _) => self.wrong(
                    &key.span(),
                    format!("unknown key {other:?}: the file holds [[caller]] tables alone"),
                ),
            }
        }
        if tables == 0 && self.mistakes.is_empty() {
            self.wrong(
                &(0..0),
                "there is no [[caller]]: nobody could call; leave SESSION_CALLERS unset to let every verified client call",
            );
        }
        if tables > MAX_CALLERS {
            self.wrong(
                &(0..0),
                format!("there are {tables} callers; at most {MAX_CALLERS} are taken"),
            );
        }
        callers
    }

    fn caller(&mut self, value: &Value<'_>, callers: &mut HashMap<Identity, Rpcs>) {
        let DeValue::Table(fields) = value.get_ref() else {
            return self.wrong(&value.span(), "a caller has to be a table: write [[caller]]");
        };
        let (mut identity, mut rpcs) = (None, None);
        for (key, value) in fields {
            match key.get_ref().as_ref() {
                "identity" => identity = self.identity(value),
                "rpcs" => rpcs = self.rpcs(value),
                other => self.wrong(&key.span(), unknown("key", other, KEYS.into_iter())),
            }
        }
        for missing in KEYS {
            if !fields.keys().any(|key| key.get_ref() == missing) {
                self.wrong(&value.span(), format!("the caller has no {missing}"));
            }
        }
        let (Some(identity), Some(rpcs)) = (identity, rpcs) else {
            return;
        };
        if callers.contains_key(&identity) {
            self.wrong(
                &value.span(),
                format!("identity \"{identity}\" is there twice: keep one of the two"),
            );
        }
        callers.insert(identity, rpcs);
    }

    fn identity(&mut self, value: &Value<'_>) -> Option<Identity> {
        let text = self.string(value)?;
        match Identity::parse(&text) {
            Ok(identity) => Some(identity),
            Err(why) => {
                self.wrong(&value.span(), format!("identity {text:?} {why}"));
                None
            }
        }
    }

    fn rpcs(&mut self, value: &Value<'_>) -> Option<Rpcs> {
        let values = match value.get_ref() {
            DeValue::Array(values) if !values.is_empty() => values,
            _ => {
                self.wrong(
                    &value.span(),
                    "rpcs has to be a list such as [\"GetSession\"], or [\"*\"] for every method",
                );
                return None;
            }
        };
        let before = self.mistakes.len();
        let mut rpcs = Rpcs::default();
        for one in values {
            let Some(name) = self.string(one) else { continue };
            match Rpc::named(&name).filter(|rpc| rpc.right() == *rpc) {
                Some(rpc) if !rpcs.insert(rpc) => {
                    self.wrong(&one.span(), format!("rpc \"{rpc}\" is there twice"));
                }
                Some(_) => {}
                None if name == EVERY && values.len() == 1 => return Some(Rpcs::ALL),
                None if name == EVERY => self.wrong(&one.span(), "\"*\" is every method and stands alone"),
                None => {
                    let rights = Rpc::ALL.iter().filter(|rpc| rpc.right() == **rpc);
                    let known = rights.map(|rpc| rpc.name());
                    self.wrong(&one.span(), unknown("rpc", &name, known));
                }
            }
        }
        (self.mistakes.len() == before).then_some(rpcs)
    }

    fn string(&mut self, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            _ => {
                self.wrong(&value.span(), "expected a text in quotes");
                None
            }
        }
    }
}

fn unknown(kind: &str, name: &str, known: impl Iterator<Item = &'static str>) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown {kind} {name:?}: did you mean {near:?}?"),
        None => format!("unknown {kind} {name:?}"),
    }
}

#[cfg(test)]
#[path = "policy_file_tests.rs"]
mod tests;
