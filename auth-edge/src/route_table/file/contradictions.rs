//! Keys of a rule that need another value of it.

use chassis::settings::toml_file::Table;

use super::context::RouteFileContext;
use crate::route_table::requirements::Requirements;
use crate::route_table::{Csrf, Guard, Route, Upstream};

/// A key, and whether a rule has it.
type Key = (&'static str, fn(&Route) -> bool);

/// Keys that say something of the person whose session a guard has found.
const OF_GUARDS: [Key; 4] = [
    ("rolls", |rule| !rule.rolls),
    ("bearer", |rule| rule.bearer.is_some()),
    ("upstream_jwt", |rule| rule.upstream_jwt.is_some()),
    ("headers", |rule| !rule.headers.all.is_empty()),
];

/// Keys for people who are sent to sign in.
const OF_PAGES: [Key; 2] = [
    ("redirect", |rule| rule.redirect),
    ("keep_form", |rule| rule.keep_form),
];

/// Keys for what a folder of files does not have.
const OF_SERVERS: [Key; 7] = [
    ("encoded_path", |rule| rule.encoded_path),
    ("pass_authorization", passes_authorization),
    ("upstream_jwt", |rule| rule.upstream_jwt.is_some()),
    ("keep_form", |rule| rule.keep_form),
    ("access_token", |rule| rule.requirements.access_token),
    ("headers", |rule| !rule.headers.all.is_empty()),
    ("preserve_host", |rule| rule.preserve_host),
];

fn passes_authorization(rule: &Route) -> bool {
    rule.bearer
        .as_ref()
        .is_some_and(|bearer| bearer.pass_authorization)
}

/// Names every contradiction within a rule as a mistake of its table; `csrf` is what the table says itself.
pub(super) fn name_all(
    table: &Table<'_>,
    rule: &Route,
    csrf: Option<Csrf>,
    is_check: bool,
    around: RouteFileContext<'_>,
) {
    let (guard, is_folder) = (rule.guard, matches!(rule.upstream, Upstream::Directory(_)));
    for (keys, is_met, needs) in [
        (
            &OF_GUARDS[..],
            guard != Guard::Open,
            "guard = \"page\" or \"api\"",
        ),
        (&OF_PAGES, guard == Guard::Page, "guard = \"page\""),
        (&OF_SERVERS, !is_folder, "an http upstream"),
    ] {
        for (key, _) in keys.iter().filter(|(_, has)| !is_met && has(rule)) {
            table.wrong(format!("{key} needs {needs}"));
        }
    }
    for (_, text) in others(rule, csrf, is_check, around)
        .into_iter()
        .filter(|(contradicts, _)| *contradicts)
    {
        table.wrong(text);
    }
}

fn others(
    rule: &Route,
    csrf: Option<Csrf>,
    is_check: bool,
    around: RouteFileContext<'_>,
) -> [(bool, &'static str); 12] {
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
            "guard_method_override needs a guard and another csrf than \"none\": nothing else is asked of a change",
        ),
        (
            rule.encoded_path && !rule.prefix,
            "encoded_path needs a path that ends with \"/*\": no exact path has two readings",
        ),
        (
            is_check && rule.hosts.is_empty() && bearer.is_some_and(|bearer| bearer.audience.is_none()),
            "bearer of a check needs host = \"…\" of the application, or an audience of its own: with neither, the client would choose by the host it names which tokens count",
        ),
        (
            rule.upstream_jwt.is_some() && !around.signs,
            "upstream_jwt needs keys: set EDGE_UPSTREAM_JWT_KEY_FILE",
        ),
        (
            rule.keep_form && csrf == Some(Csrf::Header),
            "keep_form needs another csrf than \"header\": a plain form sends no header",
        ),
        (
            requirements.token_for().names_api() && !requirements.access_token && !is_check,
            "audience and resource name the API whose token goes to the upstream: write access_token = true beside them",
        ),
        (
            requirements.access_token && is_check,
            "a check hands out the access token by EDGE_CHECK_AUTHORIZATION, not by access_token",
        ),
        (
            rule.preserve_host && over_h2c,
            "preserve_host needs \"http://\" or \"https://\": over h2c the host is part of the address",
        ),
        (
            requirements.device_bound
                && (!around.binds || bearer.is_some_and(|bearer| !bearer.dpop_required)),
            if around.binds {
                "device_bound beside bearer needs dpop_required = true there: a copied token would pass where a copied cookie does not"
            } else {
                "device_bound needs sessions that are bound: set EDGE_DEVICE_BOUND to offer or require, with an https EDGE_BASE_URL and no EDGE_COOKIE_DOMAIN"
            },
        ),
        (
            rule.denied_message.is_some() && requirements.claims.is_empty(),
            "denied_message is for claims: there are none here",
        ),
    ]
}
