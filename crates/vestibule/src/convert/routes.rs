//! Writes the route table.
//!
//! Invariants
//! - Each path has the rule of the most specific policy that covers it.
//! - A path is opened only if its regular expression surely matches it.

use std::collections::{BTreeMap, BTreeSet};

use url::Url;

use super::translate::{Fact, NONE, Plan, REVIEW};

/// Paths that belong to the edge itself.
const OWN: [&str; 5] = [
    "/api/auth",
    "/oauth2",
    "/ingest",
    "/.well-known/vestibule",
    "/vestibule",
];

const OPEN: &str = "every path is guarded: open some by a rule with guard = \"none\"";

const ACCOUNT: &str = "\n# The account pages. The program `vestibule` writes this folder; without it, remove the rule.
[[route]]\npath = \"/vestibule/*\"\nguard = \"none\"\nupstream = \"dir:vestibule-data/web\"\nstrip_prefix = true\n";

/// What mod_auth_openidc sends by default.
const APACHE_HEADERS: &str = "
[route.headers]
OIDC_CLAIM_sub = \"subject\"
OIDC_CLAIM_email = \"claim:email\"
OIDC_CLAIM_name = \"claim:name\"
OIDC_CLAIM_preferred_username = \"claim:preferred_username\"
OIDC_CLAIM_groups = \"claim:groups\"
";

/// What applies to the paths of a rule.
struct Policy {
    path: String,
    guard: &'static str,
    /// The only method that it is about.
    method: Option<String>,
}

/// The rules for all upstreams; without one, those for requests that another proxy asks about.
pub(super) fn write(plan: &mut Plan, is_apache: bool) -> String {
    let upstreams = if is_apache { apache(plan) } else { upstreams(plan) };
    let mut policies = exceptions(plan);
    let is_check = upstreams.is_empty();
    if !is_check || !policies.is_empty() {
        let path = "/*".to_owned();
        policies.push(Policy {
            path,
            guard: "page",
            method: None,
        });
    }
    let is_served = |path: &&String| is_check || upstreams.keys().any(|outer| covers(outer, path));
    let of_policies = policies.iter().map(|policy| &policy.path).filter(is_served);
    let paths: BTreeSet<&String> = of_policies.chain(upstreams.keys()).collect();
    let token = when(plan.is_on("access-token", false), "access_token = true\n");
    let mut rules = String::new();
    for path in paths {
        let around = upstreams.iter().filter(|(outer, _)| covers(outer, path));
        let upstream = around.max_by_key(|(outer, _)| outer.len());
        let whole = policies
            .iter()
            .filter(|policy| policy.method.is_none() && covers(&policy.path, path));
        let whole = whole.max_by_key(|policy| policy.path.len());
        let of_methods = policies
            .iter()
            .filter(|policy| policy.method.is_some() && policy.path == *path);
        for Policy { guard, method, .. } in of_methods.chain(whole) {
            let kind = if is_check { "check" } else { "route" };
            rules += &format!("\n[[{kind}]]\npath = {}\nguard = \"{guard}\"\n", quoted(path));
            rules.extend(
                method
                    .iter()
                    .map(|method| format!("methods = [{}]\n", quoted(method))),
            );
            if let Some((_, address)) = upstream {
                rules += &format!("upstream = {}\n", quoted(address));
                rules += when(plan.is_on("pass-host", true), "preserve_host = true\n");
                rules += when(*guard != "none", token);
                rules += when(is_apache, APACHE_HEADERS);
            }
        }
    }
    let mut file = String::from("# Written by `vestibule convert`. docs/gateway.md explains each key.\n");
    if !plan.blocks.is_empty() {
        file += "# The program does not start with this key. Write the rule for each line, then remove it.\n";
        file += &format!("review = {}\n", list(&plan.blocks));
    }
    file += when(!plan.allow.is_empty(), "\n[allow]\n");
    file.extend(plan.allow.iter().map(|(key, value)| format!("{key} = {value}\n")));
    file + when(!is_check, ACCOUNT) + &rules
}

/// The upstreams by the paths of their rules. With `static:` another proxy forwards the requests.
fn upstreams(plan: &mut Plan) -> BTreeMap<String, String> {
    let mut upstreams = BTreeMap::new();
    for Fact { line, values } in plan.facts("upstream") {
        for value in values.iter().filter(|value| !value.starts_with("static:")) {
            let url = Url::parse(value).ok();
            let is_plain =
                |url: &Url| url.query().is_none() && url.username().is_empty() && url.password().is_none();
            let url = url.filter(|url| url.scheme().starts_with("http") && is_plain(url));
            match url.and_then(|url| Some((rule_path(url.path())?, url.origin().ascii_serialization()))) {
                Some((path, address)) => drop(upstreams.insert(path, address)),
                None => plan.review(line, format!("{value:?} needs a rule of its own")),
            }
        }
    }
    upstreams
}

/// Apache becomes the upstream. A person has to write what it requires of users.
fn apache(plan: &mut Plan) -> BTreeMap<String, String> {
    for Fact { line, values } in plan.facts("require") {
        match values.join(" ").as_str() {
            "valid-user" => {}
            "all granted" => plan.revise(line, NONE, OPEN),
            required => plan.block(line, &format!("{required}: write it as claims of a rule")),
        }
    }
    BTreeMap::from([("/*".to_owned(), "http://127.0.0.1:8080".to_owned())])
}

/// `skip-auth-route` and `api-route`.
fn exceptions(plan: &mut Plan) -> Vec<Policy> {
    let mut policies = Vec::new();
    for (key, guard, status) in [("skip", "none", REVIEW), ("api", "api", NONE)] {
        for Fact { line, values } in plan.facts(key) {
            for value in values {
                let is_method = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
                let (method, regex) = value.split_once('=').filter(|(text, _)| is_method(text)).unzip();
                match path_of(regex.unwrap_or(&value)) {
                    Some(path) => policies.push(Policy {
                        path,
                        guard,
                        method: method.map(str::to_uppercase),
                    }),
                    None => plan.revise(
                        line,
                        status,
                        &format!("{value:?} is no plain path: they stay guarded"),
                    ),
                }
            }
        }
    }
    policies
}

/// The path of the rule for an expression, if the expression matches all of these paths.
fn path_of(regex: &str) -> Option<String> {
    let stem = regex
        .strip_prefix('^')?
        .replace("\\/", "/")
        .replace("\\.", ".")
        .replace("\\-", "-");
    let whole = stem.strip_suffix('$').unwrap_or(&stem);
    let is_exact = stem.ends_with('$') && !whole.ends_with(".*");
    let stem = whole.strip_suffix(".*").unwrap_or(whole);
    let path = rule_path(stem)?;
    match (is_exact, stem) {
        (false, "/") => None,
        (true, _) if stem.ends_with('/') && stem != "/" => None,
        (true, _) => Some(stem.to_owned()),
        (false, _) if path.ends_with("/*") => Some(path),
        (false, _) => Some(format!("{path}/*")),
    }
}

/// A path of oauth2-proxy as that of a rule: a closing slash includes all paths below.
fn rule_path(path: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let inner = path.strip_prefix('/')?;
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let is_segment = |segment: &str| !["", ".", ".."].contains(&segment) && segment.bytes().all(is_plain);
    let is_own = OWN.iter().any(|own| covers(&format!("{own}/*"), path));
    if is_own || !inner.is_empty() && !inner.split('/').all(is_segment) {
        return None;
    }
    Some(if path.ends_with('/') {
        format!("{path}*")
    } else {
        path.to_owned()
    })
}

/// Whether a rule's path includes that of another one.
fn covers(outer: &str, inner: &str) -> bool {
    match outer.strip_suffix("/*") {
        Some(stem) => inner == stem || inner.starts_with(&format!("{stem}/")),
        None => inner == outer,
    }
}

fn when(condition: bool, text: &str) -> &str {
    if condition { text } else { "" }
}

/// A text in TOML.
pub(super) fn quoted(value: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

/// A list of texts in TOML.
pub(super) fn list<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| quoted(value.as_ref())).collect();
    format!("[{}]", values.join(", "))
}
