//! Reads what a route requires of a user: provider, kind of sign-in, claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use chassis::settings::toml_file::{Table, Value};

use super::context::RouteFileContext;
use super::{decision, number};
use crate::route_table::claims::ClaimRequirement;
use crate::route_table::requirements::Requirements;
use crate::sessions::TokenFor;
use crate::values::allowed_parameters::{self, CONNECTION};
use crate::values::claim_path::ClaimPath;

pub(super) fn requirements(table: &Table<'_>, around: &RouteFileContext) -> Requirements {
    let tokens = |key| table.get(key).map(tokens).unwrap_or_default();
    Requirements {
        access_token: table.flag("access_token"),
        require_token: table.flag("require_token"),
        token: TokenFor {
            scopes: tokens("scopes"),
            audience: table.get("audience").and_then(audience).unwrap_or_default(),
            resource: table.get("resource").and_then(resource).unwrap_or_default(),
        },
        decision: decision::decision(table).map(Arc::new),
        ..of_person(table, around)
    }
}

/// The requirements for the user and the sign-in alone, without `allow`.
pub(super) fn of_person(table: &Table<'_>, around: &RouteFileContext) -> Requirements {
    Requirements {
        max_age_secs: table
            .get("max_age")
            .and_then(|value| number(value, 1, "whole seconds, at least 1")),
        acr: table.get("acr").map(tokens).unwrap_or_default(),
        organization: table.get("organization").and_then(Value::string),
        connection: table
            .get("connection")
            .and_then(|value| connection(value, around)),
        claims: table.get("claims").map(claims).unwrap_or_default(),
        device_bound: table.flag("device_bound"),
        ..Requirements::default()
    }
}

/// Longest audience in bytes: the limit of the session service.
const MAX_AUDIENCE_BYTES: usize = 512;

/// The name of an API at the provider.
fn audience(value: Value<'_>) -> Option<String> {
    let audience = value.string()?;
    let fits = (1..=MAX_AUDIENCE_BYTES).contains(&audience.len()) && !audience.chars().any(char::is_control);
    if !fits {
        value.wrong("audience has to be the name of an API at the provider: 1 to 512 bytes without control characters");
    }
    Some(audience)
}

/// The URI of an API.
fn resource(value: Value<'_>) -> Option<String> {
    let resource = value.string()?;
    if !oidc::is_resource(&resource) {
        value.wrong("resource has to be an absolute URI without a fragment, such as https://orders.example/api (RFC 8707)");
    }
    Some(resource)
}

/// Parameters of the authorization request: `max_age` is a number, the others are texts.
pub(super) fn sign_in(value: Value<'_>, around: &RouteFileContext) -> BTreeMap<String, String> {
    let Some(parameters) = value.as_entries() else {
        value.wrong("expected a table of parameters: { acr_values = \"gold\" }");
        return BTreeMap::new();
    };
    let mut read = BTreeMap::new();
    for (name, value) in parameters {
        let text = match name {
            CONNECTION => connection(value, around),
            "max_age" => parameter(name, value.scalar(), value),
            _ => match allowed_parameters::check_name(name) {
                Ok(()) => parameter(name, value.string(), value),
                Err(problem) => {
                    value.wrong(format!("{name:?} {problem}"));
                    None
                }
            },
        };
        read.extend(text.map(|text| (name.to_owned(), text)));
    }
    read
}

fn parameter(name: &str, text: Option<String>, value: Value<'_>) -> Option<String> {
    let text = text?;
    if !allowed_parameters::fits(name, &text) {
        value.wrong(format!("{name} is too long, or no value of it"));
    }
    Some(text)
}

/// The id of a provider.
fn connection(value: Value<'_>, around: &RouteFileContext) -> Option<String> {
    let id = value.string()?;
    if !around.connections.contains(&id) {
        value.wrong(format!(
            "connection {id:?} is not the id of a provider in OIDC_PROVIDERS"
        ));
    }
    Some(id)
}

/// Claims with their accepted values: TOML keys, dots lead into objects, quotes keep a name whole.
fn claims(value: Value<'_>) -> Vec<ClaimRequirement> {
    let mut all = Vec::new();
    add_claims(value, &[], &mut all);
    all
}

fn add_claims(value: Value<'_>, outer: &[String], all: &mut Vec<ClaimRequirement>) {
    let entries = value.as_entries().filter(|entries| !entries.is_empty());
    let Some(entries) = entries else {
        value.wrong("expected a table of claims: { groups = \"admin\" }");
        return;
    };
    for (name, value) in entries {
        let names = [outer, &[name.to_owned()]].concat();
        if value.as_entries().is_some() {
            add_claims(value, &names, all);
            continue;
        }
        let members = value.as_list().unwrap_or_else(|| vec![value]);
        all.push(ClaimRequirement {
            claim: ClaimPath::of_names(names),
            any_of: members.into_iter().filter_map(claim_value).collect(),
        });
    }
}

fn claim_value(value: Value<'_>) -> Option<serde_json::Value> {
    let number = || value.as_i64().map(Into::into);
    let plain = value.as_boolean().map(Into::into).or_else(number);
    plain.or_else(|| value.string().map(Into::into))
}

/// Spaces separate scopes and classes in headers and queries (RFC 6749, section 3.3; RFC 9470, section 3).
pub(super) fn tokens(value: Value<'_>) -> Vec<String> {
    let tokens = value.strings().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if !tokens.iter().all(|token| token.bytes().all(plain)) {
        value.wrong("a scope, class or client holds visible ASCII characters, no space, quote or backslash");
    }
    tokens
}
