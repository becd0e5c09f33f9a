//! Checks the keys of a rule that depend on another key of the same rule.

use chassis::settings::toml_file::Table;

use super::context::RouteFileContext;
use crate::route_table::requirements::Requirements;
use crate::route_table::{Csrf, Guard, Route, Upstream};

const GUARD: &str = "guard = \"page\" or \"api\"";
const PAGE: &str = "guard = \"page\"";
const SERVER: &str = "an http upstream";

/// The mistake of a rule that requires a bound session while no session is bound.
pub(super) const DEVICE_BOUND_NEEDS: &str = "device_bound needs sessions that are bound: set EDGE_DEVICE_BOUND to offer or require, with an https EDGE_BASE_URL and no EDGE_COOKIE_DOMAIN";

/// Reports every contradiction within a rule as a mistake of its table; `csrf` is the value in the table.
pub(super) fn report_contradictions(
    table: &Table<'_>,
    rule: &Route,
    csrf: Option<Csrf>,
    is_check: bool,
    around: &RouteFileContext,
) {
    let open = rule.guard == Guard::Open;
    let is_page = rule.guard == Guard::Page;
    let is_folder = matches!(rule.upstream, Upstream::Directory(_));
    let requirements = &rule.requirements;
    let bearer = rule.bearer.as_ref();
    let (headers, asserts) = (!rule.headers.all.is_empty(), rule.upstream_jwt.is_some());
    let passes_authorization = bearer.is_some_and(|bearer| bearer.pass_authorization);
    // Whether the rule has a key and lacks what the key needs.
    for (has, key, lacks, needs) in [
        (!rule.rolls, "rolls", open, GUARD),
        (bearer.is_some(), "bearer", open, GUARD),
        (asserts, "upstream_jwt", open, GUARD),
        (headers, "headers", open, GUARD),
        (rule.redirect, "redirect", !is_page, PAGE),
        (rule.keep_form, "keep_form", !is_page, PAGE),
        (rule.encoded_path, "encoded_path", is_folder, SERVER),
        (passes_authorization, "pass_authorization", is_folder, SERVER),
        (asserts, "upstream_jwt", is_folder, SERVER),
        (rule.keep_form, "keep_form", is_folder, SERVER),
        (requirements.access_token, "access_token", is_folder, SERVER),
        (headers, "headers", is_folder, SERVER),
        (rule.preserve_host, "preserve_host", is_folder, SERVER),
    ] {
        if has && lacks {
            table.wrong(format!("{key} needs {needs}"));
        }
    }
    for (_, text) in find_other_contradictions(rule, csrf, is_check, around)
        .iter()
        .filter(|(contradicts, _)| *contradicts)
    {
        table.wrong(*text);
    }
}

/// The other contradictions of a rule.
fn find_other_contradictions(
    rule: &Route,
    csrf: Option<Csrf>,
    is_check: bool,
    around: &RouteFileContext,
) -> [(bool, &'static str); 13] {
    let open = rule.guard == Guard::Open;
    let requirements = &rule.requirements;
    let over_h2c = matches!(&rule.upstream, Upstream::Http(server) if server.prior_knowledge);
    let bearer = rule.bearer.as_ref();
    [
        (
            open && *requirements != Requirements::default(),
            "guard = \"none\" asks for nothing: write guard = \"page\" or \"api\" where a session is needed",
        ),
        (
            open && csrf.is_some_and(|csrf| csrf != Csrf::None),
            "csrf needs guard = \"page\" or \"api\": without a session there is nothing to forge",
        ),
        (
            rule.guards_method_override && (open || csrf == Some(Csrf::None)),
            "guard_method_override needs a guard and a csrf other than \"none\": nothing else checks a change",
        ),
        (
            rule.encoded_path && !rule.prefix,
            "encoded_path needs a path that ends with \"/*\": no exact path has two readings",
        ),
        (
            is_check && rule.hosts.is_empty() && bearer.is_some_and(|bearer| bearer.audience.is_none()),
            "bearer of a check needs host = \"…\" of the application, or an audience of its own: with neither, the client's host header would decide which tokens are accepted",
        ),
        (
            rule.upstream_jwt.is_some() && !around.signs,
            "upstream_jwt needs keys: set EDGE_UPSTREAM_JWT_KEY_FILE",
        ),
        (
            rule.keep_form && csrf == Some(Csrf::Header),
            "keep_form needs a csrf other than \"header\": a plain form sends no header",
        ),
        (
            requirements.token.names_api() && !requirements.access_token && !is_check,
            "audience and resource name the API whose token goes to the upstream: write access_token = true next to them",
        ),
        (
            requirements.access_token && is_check,
            "a check hands out the access token by EDGE_CHECK_AUTHORIZATION, not by access_token",
        ),
        (
            rule.preserve_host && over_h2c,
            "preserve_host needs \"http://\" or \"https://\": over h2c the host is part of the address",
        ),
        (requirements.device_bound && !around.binds, DEVICE_BOUND_NEEDS),
        (
            requirements.device_bound && around.binds && bearer.is_some_and(|bearer| !bearer.dpop_required),
            "device_bound next to bearer needs dpop_required = true: otherwise a copied token passes where a copied cookie does not",
        ),
        (
            rule.denied_message.is_some()
                && requirements.claims.is_empty()
                && requirements.allow.is_none()
                && requirements.decision.is_none(),
            "denied_message needs claims, allow or decide in the same rule, or [allow] at the top",
        ),
    ]
}
