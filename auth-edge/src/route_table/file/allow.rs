//! Reads `[allow]`, at the top of the file or in a rule.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use chassis::files;
use chassis::settings::toml_file::{Table, Value};
use ipnet::IpNet;

use crate::route_table::allow::{AllowList, DomainPattern, EmailAddress, Members};
use crate::values::claim_path::ClaimPath;

/// The list of a table, if it has one.
pub(super) fn allow(table: &Table<'_>) -> Option<Arc<AllowList>> {
    table.table("allow", |allow| {
        let mut only = members(allow);
        let file = allow.get("emails_file").and_then(Value::string);
        if let (Some(path), Some(value)) = (&file, allow.get("emails_file")) {
            only.emails.extend(addresses_of_file(path, value));
        }
        let list = AllowList {
            only,
            not: allow.table("not", members).unwrap_or_default(),
            groups_claim: groups_claim(allow),
            accepts_unverified: allow.flag("unverified_emails"),
            file: file.map(Into::into),
        };
        if list.only.is_empty() && list.not.is_empty() && list.file.is_none() {
            allow.wrong(
                "allow is empty: it needs emails, emails_file, email_domains, groups, networks, or not",
            );
        }
        Arc::new(list)
    })
}

fn members(table: &Table<'_>) -> Members {
    let emails = parsed(
        table,
        "emails",
        EmailAddress::parse,
        "an address such as kate@example.com",
    );
    Members {
        emails: emails.into_iter().collect(),
        domains: parsed(
            table,
            "email_domains",
            DomainPattern::parse,
            "a domain: example.com, or *.example.com",
        ),
        groups: table.get("groups").and_then(Value::strings).unwrap_or_default(),
        networks: parsed(
            table,
            "networks",
            network,
            "a network such as 10.0.0.0/8, or an address",
        ),
    }
}

/// A single address counts as a network.
fn network(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().map(IpNet::from).ok();
    text.parse().ok().or_else(address)
}

fn parsed<T>(table: &Table<'_>, key: &str, parse: impl Fn(&str) -> Option<T>, expected: &str) -> Vec<T> {
    let Some(value) = table.get(key) else {
        return Vec::new();
    };
    let texts = value.strings().unwrap_or_default();
    let members = texts.iter().filter_map(|text| {
        let member = parse(text);
        if member.is_none() {
            value.wrong(format!("{text:?} is not {expected}"));
        }
        member
    });
    members.collect()
}

/// The addresses in a file: one on each line, up to the first comma. Lines that start with `#` are comments.
fn addresses_of_file(path: &str, value: Value<'_>) -> BTreeSet<EmailAddress> {
    let content = files::read_bounded(path.as_ref()).map(String::from_utf8);
    let Ok(Ok(text)) = content else {
        value.wrong(format!("the file {path} cannot be read, or is not UTF-8 text"));
        return BTreeSet::new();
    };
    let mut addresses = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(',').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match EmailAddress::parse(line) {
            Some(address) => drop(addresses.insert(address)),
            None => value.wrong(format!("{path}, line {}: {line:?} is not an address", number + 1)),
        }
    }
    addresses
}

fn groups_claim(table: &Table<'_>) -> ClaimPath {
    let named = table.get("groups_claim").and_then(|value| {
        let text = value.string()?;
        let path = ClaimPath::parse(&text);
        path.map_err(|problem| value.wrong(problem)).ok()
    });
    named.unwrap_or_else(|| ClaimPath::of_names(vec!["groups".to_owned()]))
}
