//! What a route asks of a person: where they sign in, with what, and which claims they have.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::{Reading, Value};
use crate::route_table::Csrf;
use crate::values::login_parameters::{self, ALLOWED_PARAMETERS, CONNECTION};

impl Reading<'_> {
    /// How requests that pages of other origins have sent are told apart.
    pub(super) fn csrf(&mut self, value: &Value<'_>) -> Option<Csrf> {
        match self.string(value)?.as_str() {
            "origin" => Some(Csrf::Origin),
            "header" => Some(Csrf::Header),
            "none" => Some(Csrf::None),
            other => {
                let text = format!("csrf {other:?} is unknown: write \"origin\", \"header\" or \"none\"");
                self.wrong(&value.span(), text);
                None
            }
        }
    }

    /// The id of a provider.
    pub(super) fn connection(&mut self, value: &Value<'_>) -> Option<String> {
        let id = self.string(value)?;
        if self.around.connections.is_some_and(|known| !known.contains(&id)) {
            let text = format!("connection {id:?} is the id of no provider in OIDC_PROVIDERS");
            self.wrong(&value.span(), text);
        }
        Some(id)
    }

    /// Parameters of the authorization request; `max_age` is a number, the others are texts.
    pub(super) fn sign_in(&mut self, value: &Value<'_>) -> BTreeMap<String, String> {
        let DeValue::Table(parameters) = value.get_ref() else {
            self.wrong(
                &value.span(),
                "expected a table of parameters: { acr_values = \"gold\" }",
            );
            return BTreeMap::new();
        };
        let mut read = BTreeMap::new();
        for (name, value) in parameters {
            let name = name.get_ref().clone().into_owned();
            if name == CONNECTION {
                read.extend(self.connection(value).map(|id| (name, id)));
                continue;
            }
            if !ALLOWED_PARAMETERS.contains(&name.as_str()) {
                let text = format!(
                    "sign_in takes only {}, {CONNECTION}",
                    ALLOWED_PARAMETERS.join(", ")
                );
                self.wrong(&value.span(), text);
                continue;
            }
            let text = match value.get_ref() {
                DeValue::Integer(number) if name == "max_age" => {
                    u64::from_str_radix(number.as_str(), number.radix())
                        .map_or_else(|_| "-".to_owned(), |secs| secs.to_string())
                }
                _ => self.string(value).unwrap_or_default(),
            };
            if login_parameters::fits(&name, &text) {
                read.insert(name, text);
            } else if !text.is_empty() {
                self.wrong(&value.span(), format!("{name} is too long, or no value of it"));
            }
        }
        read
    }

    pub(super) fn claims(&mut self, value: &Value<'_>) -> BTreeMap<String, String> {
        let DeValue::Table(claims) = value.get_ref() else {
            self.wrong(
                &value.span(),
                "expected a table of claims: { groups = \"admin\" }",
            );
            return BTreeMap::new();
        };
        let mut read = BTreeMap::new();
        for (name, value) in claims {
            if let Some(text) = self.string(value) {
                read.insert(name.get_ref().clone().into_owned(), text);
            }
        }
        read
    }
}
