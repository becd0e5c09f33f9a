//! The parameters that a login accepts, from a query or from a route's table, and their limits.
//!
//! Invariant: parameters of the protocol, and those that the login route reads itself, are never among them.

use oidc::PROTOCOL_PARAMETERS;

/// The parameter of a login, or of a route's `sign_in`, that names a provider by its id. Never forwarded.
pub(crate) const CONNECTION: &str = "connection";

/// The query parameters that the login route reads itself.
const OWN_PARAMETERS: [&str; 4] = [CONNECTION, "returnTo", "iss", "target_link_uri"];

/// The parameters that reach the provider unless configuration lists others.
pub(crate) const STANDARD_PARAMETERS: [&str; 8] = [
    "organization",
    "invitation",
    "login_hint",
    "prompt",
    "ui_locales",
    "acr_values",
    "max_age",
    "screen_hint",
];
/// Longest forwarded value, in bytes: more than any of these parameters needs.
const MAX_VALUE_BYTES: usize = 512;
/// Longest forwarded name, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Longest organization in a transaction, in bytes: two transactions fit even with all values at their longest.
pub(crate) const MAX_ORGANIZATION_BYTES: usize = 96;
/// Longest `acr_values` in a transaction, in bytes: enough for three or four of the usual names.
pub(crate) const MAX_ACR_VALUES_BYTES: usize = 200;

/// Whether a value can be forwarded and, if necessary, kept until the provider answers.
#[must_use]
pub(crate) fn fits(name: &str, value: &str) -> bool {
    let most = match name {
        "organization" => MAX_ORGANIZATION_BYTES,
        "acr_values" => MAX_ACR_VALUES_BYTES,
        _ => MAX_VALUE_BYTES,
    };
    let number = name != "max_age" || value.parse::<u64>().is_ok();
    !value.is_empty() && value.len() <= most && !value.chars().any(char::is_control) && number
}

/// Whether an operator may let logins set this parameter.
///
/// # Errors
/// The reason, as the end of a sentence that begins with the name.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    if PROTOCOL_PARAMETERS.contains(&name) {
        return Err("is a parameter that the protocol sets");
    }
    if OWN_PARAMETERS.contains(&name) {
        return Err("is a parameter that the login route reads itself");
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(plain) {
        return Err("is not a parameter name: write letters, digits, _ - . or :, at most 64");
    }
    Ok(())
}

/// A parameter that the query of the login route may set, and which values it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowedParameter {
    /// Its name.
    pub(crate) name: String,
    /// The accepted values: alternatives separated by `|`; in each, `*` matches any characters. `None`
    /// accepts all values within the limits.
    pattern: Option<String>,
}

impl AllowedParameter {
    /// Reads `NAME` or `NAME=PATTERN`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, pattern) = match text.split_once('=') {
            Some((name, pattern)) => (name.trim_end(), Some(pattern.trim_start().to_owned())),
            None => (text, None),
        };
        check_name(name).map_err(|problem| format!("{name:?} {problem}"))?;
        Ok(Self {
            name: name.to_owned(),
            pattern,
        })
    }

    /// Whether the query may set it to this value.
    #[must_use]
    pub(crate) fn allows(&self, value: &str) -> bool {
        let matches = |pattern: &String| pattern.split('|').any(|one| matches_one(one, value));
        self.pattern.as_ref().is_none_or(matches) && fits(&self.name, value)
    }
}

/// Compares the fixed parts in order. The first must begin the value, and the last must end it.
fn matches_one(pattern: &str, value: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == value;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = value
        .strip_prefix(start)
        .and_then(|value| value.strip_suffix(end));
    let Some(mut inner) = inner else {
        return false;
    };
    for part in middle.split('*') {
        let Some(at) = inner.find(part) else {
            return false;
        };
        inner = &inner[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_says_which_values_a_query_may_set() {
        for (rule, value, allowed) in [
            ("kc_idp_hint", "google", true),
            ("kc_idp_hint=google|github", "github", true),
            ("kc_idp_hint=google|github", "gitlab", false),
            ("kc_idp_hint=google|github", "google|github", false),
            ("domain_hint=*.example.com", "a.example.com", true),
            ("domain_hint=*.example.com", "example.com", false),
            ("domain_hint=*.example.com", "a.example.com.evil.test", false),
            ("audience=https://*/api/*", "https://a.example/api/v1", true),
            ("audience=https://*/api/*", "https://a.example/other", false),
            ("hd=a*a", "a", false),
            ("hd=*a*b*", "xaybz", true),
            ("hd=*a*b*", "xbyaz", false),
            ("hd=*", "", false),
            ("max_age=*", "soon", false),
        ] {
            let rule_read = AllowedParameter::parse(rule).unwrap();
            assert_eq!(rule_read.allows(value), allowed, "{rule} {value}");
        }
    }

    #[test]
    fn parameters_of_the_protocol_and_of_the_login_route_stay_ours() {
        let own = OWN_PARAMETERS.iter().chain(&PROTOCOL_PARAMETERS);
        for name in own.chain(&["", "a b", "a&b", "client_id=x"]) {
            assert!(AllowedParameter::parse(name).is_err(), "{name}");
        }
    }
}
