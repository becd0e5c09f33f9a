//! The parameters that a login takes, from a query or from a route's table, and what fits into them.

/// The parameter, of a login or of a route's `sign_in`, that names a provider by its id. It is ours and never passed on.
pub(crate) const CONNECTION: &str = "connection";

/// Query parameters that may reach the provider; configuration can narrow them.
pub(crate) const ALLOWED_PARAMETERS: [&str; 8] = [
    "organization",
    "invitation",
    "login_hint",
    "prompt",
    "ui_locales",
    "acr_values",
    "max_age",
    "screen_hint",
];
/// Longest value passed on, in bytes: more than any of these parameters holds in earnest.
const MAX_VALUE_BYTES: usize = 512;
/// Longest organization kept with a transaction, in bytes: with everything else at its longest, two still fit.
pub(crate) const MAX_ORGANIZATION_BYTES: usize = 96;
/// Longest `acr_values` kept with a transaction, in bytes: enough for three or four of the usual names.
pub(crate) const MAX_ACR_VALUES_BYTES: usize = 200;

/// Whether a value can be passed on and, where it has to be, kept until the provider answers.
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
