//! Decides what becomes of each option.

use std::collections::BTreeMap;

use url::Url;

use super::input::{Input, InputOption};
use super::routes::{self, list, quoted};

const METADATA: &str = "/.well-known/openid-configuration";

const NO_ISSUER: &str = "OIDC_ISSUER_URL: the provider's issuer. GitHub and others without OpenID Connect need a provider between, such as Dex";
const NO_BASE_URL: &str = "EDGE_BASE_URL: the address of the product as browsers see it";
const NO_PROXIES: &str = "EDGE_TRUSTED_PROXIES: the addresses of your proxies";

/// What became of an option.
pub(super) const TRANSLATED: &str = "translated";
pub(super) const ELSEWHERE: &str = "elsewhere";
pub(super) const NONE: &str = "none";
pub(super) const REVIEW: &str = "REVIEW";

/// A line of the report: file, name, what became of the option, and where.
pub(super) struct Line(
    pub(super) String,
    pub(super) String,
    pub(super) &'static str,
    pub(super) String,
);

/// An option that decides together with others, and the index of its line in the report.
#[derive(Clone)]
pub(super) struct Fact {
    pub(super) line: usize,
    pub(super) values: Vec<String>,
}

/// The translation.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) report: Vec<Line>,
    pub(super) settings: BTreeMap<String, String>,
    /// The setting, the file and the value of each secret.
    pub(super) secrets: Vec<(&'static str, String, String)>,
    /// The keys of `[allow]`, in TOML.
    pub(super) allow: BTreeMap<&'static str, String>,
    /// Restrictions without a counterpart.
    pub(super) blocks: Vec<String>,
    /// What the operator has to add.
    pub(super) missing: Vec<&'static str>,
    pub(super) routes: String,
    facts: BTreeMap<&'static str, Vec<Fact>>,
}

/// Translates all options.
pub(super) fn translate(input: Input) -> Plan {
    let mut plan = Plan::default();
    plan.set(usize::MAX, "EDGE_DATA_DIR", "vestibule-data");
    input.options.into_iter().for_each(|option| plan.take(option));
    plan.decide_provider(input.is_apache);
    if !input.is_apache {
        plan.decide_listener();
    }
    plan.decide_users();
    plan.routes = routes::write(&mut plan, input.is_apache);
    plan
}

impl Plan {
    pub(super) fn needs_review(&self) -> bool {
        self.report.iter().any(|line| line.2 == REVIEW)
    }

    /// Changes a line of the report. A decision that needs a person stays.
    pub(super) fn revise(&mut self, line: usize, status: &'static str, text: &str) {
        if let Some(line) = self.report.get_mut(line).filter(|line| line.2 != REVIEW) {
            (line.2, line.3) = (status, text.to_owned());
        }
    }

    pub(super) fn review(&mut self, line: usize, text: String) {
        self.revise(line, REVIEW, &text);
    }

    /// Records a restriction without a counterpart: the program does not start until a person decides.
    pub(super) fn block(&mut self, line: usize, reason: &str) {
        self.review(line, format!("restricts users: {reason}"));
        let line = self.report.get(line);
        let text = line.map(|line| format!("{} {}: {reason}", line.0, line.1));
        self.blocks.extend(text);
    }

    pub(super) fn facts(&self, key: &str) -> Vec<Fact> {
        self.facts.get(key).cloned().unwrap_or_default()
    }

    /// All values of an option.
    pub(super) fn values(&self, key: &str) -> Vec<String> {
        self.facts(key).into_iter().flat_map(|fact| fact.values).collect()
    }

    pub(super) fn value(&self, key: &str) -> Option<String> {
        self.values(key).into_iter().next()
    }

    /// The index of the option's line; beyond the report if it is not given.
    pub(super) fn line(&self, key: &str) -> usize {
        self.facts(key).first().map_or(usize::MAX, |fact| fact.line)
    }

    /// Whether a switch is on; `default` if it is not given.
    pub(super) fn is_on(&self, key: &str, default: bool) -> bool {
        let is_yes = |value: String| ["true", "on", "1", "t"].contains(&value.to_lowercase().as_str());
        self.value(key).map_or(default, is_yes)
    }

    pub(super) fn set(&mut self, line: usize, setting: &str, value: &str) {
        let is_special = |c: char| c.is_control() || matches!(c, '"' | '\'' | '\\' | '$' | '`');
        if value.trim() != value || value.contains(is_special) {
            return self.review(line, format!("a file of settings cannot hold it: set {setting}"));
        }
        let before = self.settings.insert(setting.to_owned(), value.to_owned());
        if before.is_some_and(|before| before != value) {
            self.review(line, format!("{setting} is one value: check it"));
        }
    }

    /// Adds a member to a list.
    fn append(&mut self, line: usize, setting: &str, member: &str) {
        let before = self.settings.remove(setting);
        let before = before.map_or(String::new(), |before| format!("{before},"));
        self.set(line, setting, &format!("{before}{member}"));
    }

    fn set_secret(&mut self, line: usize, setting: &'static str, value: &str) {
        let file = setting.to_lowercase().replace('_', "-");
        let is_reference = value.starts_with("exec:") || value.starts_with('$');
        if is_reference || value.trim() != value || value.contains(char::is_control) {
            return self.review(line, format!("the value is elsewhere: set {setting}_FILE"));
        }
        self.revise(line, TRANSLATED, &format!("{setting}_FILE, in the file {file}"));
        self.secrets.push((setting, file, value.to_owned()));
    }

    fn take(&mut self, option: InputOption) {
        let line = self.report.len();
        let (status, text) = match option.row {
            Some(_) if option.is_overridden => (NONE, "another file overrides it"),
            Some(row) => (TRANSLATED, row.text),
            None => (NONE, "the current release has no such option"),
        };
        let (place, name, shown) = (option.place, option.name, text.to_owned());
        self.report.push(Line(place, name, status, shown));
        let Some(row) = option.row.filter(|_| !option.is_overridden) else {
            return;
        };
        let values = option.values.into_iter().filter(|value| !value.is_empty());
        let values: Vec<String> = values.collect();
        let Some(value) = values.first() else {
            return self.revise(line, NONE, "is empty");
        };
        let (action, arguments) = row.action.split_once(' ').unwrap_or((row.action, ""));
        if text.is_empty() {
            self.revise(line, TRANSLATED, arguments);
        }
        let whole = values.join(",");
        match action {
            "set" if row.kind == "list" => self.append(line, arguments, &whole),
            "set" => self.set(line, arguments, &whole),
            "lower" => self.set(line, arguments, &whole.trim_start_matches('.').to_lowercase()),
            "member" => {
                let (setting, member) = arguments.split_once(' ').unwrap_or_default();
                self.append(line, setting, &format!("{member}={value}"));
            }
            "seconds" => match seconds(value).filter(|secs| *secs > 0) {
                Some(secs) => {
                    let settings = arguments.split(' ');
                    settings.for_each(|setting| self.set(line, setting, &secs.to_string()));
                }
                None => self.revise(line, NONE, "there is no such duration"),
            },
            "listen" => {
                let address = value.trim_start_matches("http://");
                let host = if address.starts_with(':') { "[::]" } else { "" };
                self.set(line, arguments, &format!("{host}{address}"));
            }
            "secret" => self.set_secret(line, arguments, value),
            "redis" => {
                let scheme = if value.contains("://") { "" } else { "redis://" };
                self.set_secret(line, arguments, &format!("{scheme}{value}"));
            }
            "fact" | "note" => {
                if action == "note" {
                    self.revise(line, ELSEWHERE, row.text);
                }
                let fact = Fact { line, values };
                self.facts.entry(arguments).or_default().push(fact);
            }
            "block" => self.block(line, row.text),
            "elsewhere" => self.revise(line, ELSEWHERE, row.text),
            _ => self.revise(line, NONE, row.text),
        }
    }

    fn decide_provider(&mut self, is_apache: bool) {
        let name = self.value("provider").unwrap_or("google".to_owned());
        let metadata = self.value("metadata");
        let derived = match name.as_str() {
            _ if is_apache => metadata.and_then(|url| url.strip_suffix(METADATA).map(str::to_owned)),
            "google" => Some("https://accounts.google.com".to_owned()),
            "gitlab" => Some("https://gitlab.com".to_owned()),
            "azure" => {
                let tenant = self.value("tenant").unwrap_or("common".to_owned());
                Some(format!("https://login.microsoftonline.com/{tenant}/v2.0"))
            }
            _ => None,
        };
        match self.value("issuer").or(derived) {
            Some(issuer) => self.set(self.line("issuer"), "OIDC_ISSUER_URL", &issuer),
            None => self.missing.push(NO_ISSUER),
        }
        let redirect = self
            .value("redirect-url")
            .and_then(|given| Url::parse(&given).ok());
        match redirect.filter(|url| url.scheme().starts_with("http")) {
            Some(url) => self.set(usize::MAX, "EDGE_BASE_URL", &url.origin().ascii_serialization()),
            None => self.missing.push(NO_BASE_URL),
        }
    }

    /// The address of oauth2-proxy, its paths, and the proxies in front of it. Only named proxies are trusted.
    fn decide_listener(&mut self) {
        let mut provide = |setting: &str, value: &str| {
            let setting = self.settings.entry(setting.to_owned());
            setting.or_insert(value.to_owned());
        };
        provide("EDGE_ALIASES", "oauth2-proxy");
        provide("EDGE_LISTEN", "127.0.0.1:4180");
        let trusted = self.values("trusted");
        if !self.is_on("reverse-proxy", false) {
            return;
        }
        if trusted.is_empty() || trusted.iter().any(|network| network.ends_with("/0")) {
            return self.missing.push(NO_PROXIES);
        }
        self.set(self.line("trusted"), "EDGE_TRUSTED_PROXIES", &trusted.join(","));
    }

    fn decide_users(&mut self) {
        let domains = self.values("email-domain");
        if !domains.is_empty() && !domains.iter().any(|domain| domain == "*") {
            let below = |domain: &String| domain.strip_prefix('.').map(|parent| format!("*.{parent}"));
            let domains = domains
                .iter()
                .map(|domain| below(domain).unwrap_or(domain.clone()));
            self.allow.insert("email_domains", list(domains));
        }
        if let Some(file) = self.value("emails-file") {
            self.allow.insert("emails_file", quoted(&file));
        }
        let names_emails = !self.allow.is_empty();
        if names_emails && self.value("email-claim").is_some_and(|claim| claim != "email") {
            self.block(self.line("email-claim"), "[allow] reads the claim email only");
        }
        if names_emails && self.is_on("unverified", false) {
            self.allow.insert("unverified_emails", "true".to_owned());
        }
        let groups = self.values("groups");
        if !groups.is_empty() {
            self.allow.insert("groups", list(groups));
            let claim = self.value("groups-claim");
            let claim = claim.map(|name| ("groups_claim", quoted(&name)));
            self.allow.extend(claim);
        }
    }
}

/// A number of seconds, or a duration of Go such as `168h0m0s`.
fn seconds(text: &str) -> Option<u64> {
    let parts = text.split_inclusive(|c: char| c.is_ascii_alphabetic());
    let sum = parts.map(|part| {
        let (number, unit) = part.split_at_checked(part.len().checked_sub(1)?)?;
        let units = [("h", 3600), ("m", 60), ("s", 1)];
        let (_, seconds) = units.into_iter().find(|(name, _)| *name == unit)?;
        number.parse::<u64>().ok()?.checked_mul(seconds)
    });
    text.parse().ok().or_else(|| sum.sum())
}
