//! A provider with many tenants at one URL (Microsoft Entra ID: `common`, `organizations`): its metadata have
//! a pattern, and each token has its tenant's issuer.
//!
//! Invariants
//! - A session's issuer is the real one, with the tenant: users of two tenants are never the same.
//! - A tenant counts only if the operator allows it.

use url::Url;

/// The placeholder for the tenant in the issuer pattern.
const PLACEHOLDER: &str = "{tenantid}";

/// The words for many tenants in a metadata URL.
const MANY: [&str; 2] = ["common", "organizations"];

/// The tenants whose users may sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedTenants {
    /// All tenants of the provider.
    Any,
    /// Tenants with these ids.
    Listed(Vec<String>),
}

/// The issuers of the allowed tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRule {
    before: String,
    after: String,
    allowed: AllowedTenants,
}

impl TenantRule {
    /// The rule for an issuer such as `https://login.microsoftonline.com/common/v2.0`. `None` if no segment
    /// of its path is `common` or `organizations`.
    #[must_use]
    pub fn new(issuer: &str, allowed: AllowedTenants) -> Option<Self> {
        let url = Url::parse(issuer).ok()?;
        let word = url.path_segments()?.find(|segment| MANY.contains(segment))?;
        let (before, after) = issuer.split_once(&format!("/{word}"))?;
        Some(Self {
            before: format!("{before}/"),
            after: after.to_owned(),
            allowed,
        })
    }

    /// The issuer in the metadata.
    pub(crate) fn pattern(&self) -> String {
        format!("{}{PLACEHOLDER}{}", self.before, self.after)
    }

    /// The tenant of this issuer; `None` if the tenant is not allowed.
    pub(crate) fn tenant<'a>(&self, issuer: &'a str) -> Option<&'a str> {
        let tenant = issuer
            .strip_prefix(self.before.as_str())?
            .strip_suffix(self.after.as_str())?;
        // Tenants are UUIDs: other text could change the path.
        let plain = tenant
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let allowed = match &self.allowed {
            AllowedTenants::Any => true,
            AllowedTenants::Listed(listed) => listed.iter().any(|one| one == tenant),
        };
        (plain && !tenant.is_empty() && allowed).then_some(tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: &str = "9188040d-6c67-4c5b-b112-36a304b66dad";

    #[test]
    fn only_issuers_of_allowed_tenants_fit_the_pattern() {
        for address in ["common", "organizations"] {
            let issuer = format!("https://login.example/{address}/v2.0");
            let any = TenantRule::new(&issuer, AllowedTenants::Any).expect("a rule");
            assert_eq!(any.pattern(), "https://login.example/{tenantid}/v2.0");
            let own = format!("https://login.example/{TENANT}/v2.0");
            assert_eq!(any.tenant(&own), Some(TENANT));
            let listed = AllowedTenants::Listed(vec!["other".to_owned()]);
            let listed = TenantRule::new(&issuer, listed).expect("a rule");
            assert_eq!(listed.tenant(&own), None);
            for foreign in [
                issuer.as_str(),
                "https://login.example/{tenantid}/v2.0",
                "https://login.example//v2.0",
                "https://login.example/a/b/v2.0",
                "https://login.example/a%2fb/v2.0",
                "https://login.example/abc/v2.0/",
                "https://evil.example/abc/v2.0",
            ] {
                assert_eq!(any.tenant(foreign), None, "{foreign}");
            }
        }
        assert_eq!(TenantRule::new("https://op.example", AllowedTenants::Any), None);
    }
}
