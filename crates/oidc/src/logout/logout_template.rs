//! Sign-out at providers with their own parameters instead of those of RP-Initiated Logout 1.0.
//!
//! Deliberately absent: a placeholder for the ID token. Endpoints that accept it use standard parameters.

use std::str::FromStr;

use url::{Url, form_urlencoded};

use crate::settings::endpoint::endpoint_is_secure;

const ISSUER: &str = "{issuer}";
const END_SESSION_ENDPOINT: &str = "{end_session_endpoint}";
const CLIENT_ID: &str = "{client_id}";
const RETURN_TO: &str = "{return_to}";

/// The URL of a sign-out: `{issuer}/v2/logout?client_id={client_id}&returnTo={return_to}`.
///
/// The part before `?` is an https URL, may start with `{issuer}` (no trailing slash), or is
/// `{end_session_endpoint}`. Parameter values may contain `{client_id}` and `{return_to}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogoutTemplate {
    address: String,
    parameters: Vec<(String, String)>,
}

/// Why a text is not a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogoutTemplateError {
    /// There are no parameters after `?`.
    #[error("lacks parameters: write ADDRESS?NAME={RETURN_TO}")]
    Parameters,
    /// The part before `?` is not a usable URL.
    #[error(
        "has to begin with an https URL, with {ISSUER} or with {END_SESSION_ENDPOINT}, and must not contain a fragment"
    )]
    Address,
    /// An unknown placeholder.
    #[error("knows {CLIENT_ID} and {RETURN_TO} in values of parameters, and no other words in braces")]
    Placeholder,
}

impl FromStr for LogoutTemplate {
    type Err = LogoutTemplateError;

    fn from_str(text: &str) -> Result<Self, LogoutTemplateError> {
        let (address, query) = text.split_once('?').ok_or(LogoutTemplateError::Parameters)?;
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        let parameters: Vec<(String, String)> = pairs.collect();
        if parameters.is_empty() {
            return Err(LogoutTemplateError::Parameters);
        }
        let braces = |text: &str| text.contains(['{', '}']);
        for (name, value) in &parameters {
            if braces(name) || braces(&value.replace(CLIENT_ID, "").replace(RETURN_TO, "")) {
                return Err(LogoutTemplateError::Placeholder);
            }
        }
        let template = Self {
            address: address.to_owned(),
            parameters,
        };
        let example = Url::parse("https://op.example").ok();
        let url = template.address("https://op.example", example.as_ref(), "", "");
        let is_usable = |url: &Url| endpoint_is_secure(url) && url.fragment().is_none();
        if braces(
            &template
                .address
                .replace(ISSUER, "")
                .replace(END_SESSION_ENDPOINT, ""),
        ) || !url.as_ref().is_some_and(is_usable)
        {
            return Err(LogoutTemplateError::Address);
        }
        Ok(template)
    }
}

impl LogoutTemplate {
    /// Whether the template needs the provider's metadata.
    pub(crate) fn needs_metadata(&self) -> bool {
        self.address.starts_with(END_SESSION_ENDPOINT)
    }

    /// The URL of one sign-out. Parameters of the endpoint's own URL stay. `None` if the template needs the
    /// `end_session_endpoint` and the provider has none.
    pub(crate) fn address(
        &self,
        issuer: &str,
        end_session_endpoint: Option<&Url>,
        client_id: &str,
        return_to: &str,
    ) -> Option<Url> {
        let base = match self.address.strip_prefix(END_SESSION_ENDPOINT) {
            Some("") => end_session_endpoint?.clone(),
            Some(_) => return None,
            None => {
                let issuer = issuer.trim_end_matches('/');
                let text = match self.address.strip_prefix(ISSUER) {
                    Some(below) => format!("{issuer}{below}"),
                    None => self.address.clone(),
                };
                Url::parse(&text).ok()?
            }
        };
        let mut url = base;
        for (name, value) in &self.parameters {
            // The client identifier is ours, so it cannot inject a placeholder.
            let value = value.replace(CLIENT_ID, client_id).replace(RETURN_TO, return_to);
            url.query_pairs_mut().append_pair(name, &value);
        }
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK: &str = "https://app.example/?a=b&c";

    fn address(template: &str) -> Option<String> {
        let template: LogoutTemplate = template.parse().expect(template);
        let endpoint = Url::parse("https://login.example/logout?pool=1").expect("a URL");
        let url = template.address("https://op.example/", Some(&endpoint), "client", BACK);
        url.map(String::from)
    }

    #[test]
    fn each_provider_gets_the_parameters_it_knows() {
        const ENCODED: &str = "https%3A%2F%2Fapp.example%2F%3Fa%3Db%26c";
        for (template, expected) in [
            (
                "{issuer}/v2/logout?client_id={client_id}&returnTo={return_to}",
                format!("https://op.example/v2/logout?client_id=client&returnTo={ENCODED}"),
            ),
            (
                "{end_session_endpoint}?client_id={client_id}&logout_uri={return_to}",
                format!("https://login.example/logout?pool=1&client_id=client&logout_uri={ENCODED}"),
            ),
            (
                "https://sso.example/idp/startSLO.ping?TargetResource={return_to}",
                format!("https://sso.example/idp/startSLO.ping?TargetResource={ENCODED}"),
            ),
            (
                "{end_session_endpoint}?redirect_uri={return_to}",
                format!("https://login.example/logout?pool=1&redirect_uri={ENCODED}"),
            ),
        ] {
            assert_eq!(address(template).as_deref(), Some(expected.as_str()));
        }
    }

    #[test]
    fn without_the_endpoint_it_names_a_template_leads_nowhere() {
        let template: LogoutTemplate = "{end_session_endpoint}?logout_uri={return_to}"
            .parse()
            .expect("one");
        assert_eq!(template.address("https://op.example", None, "client", BACK), None);
    }

    #[test]
    fn what_is_no_template_is_refused() {
        use LogoutTemplateError::{Address, Parameters, Placeholder};
        for (text, error) in [
            ("maybe", Parameters),
            ("{issuer}/logout?", Parameters),
            ("/logout?a={return_to}", Address),
            ("http://op.example/logout?a={return_to}", Address),
            ("https://op.example/#x?a={return_to}", Address),
            ("{end_session_endpoint}/more?a={return_to}", Address),
            ("{host}/logout?a={return_to}", Address),
            ("{issuer}/logout?a={id_token}", Placeholder),
            ("{issuer}/logout?{client_id}=a", Placeholder),
        ] {
            assert_eq!(text.parse::<LogoutTemplate>(), Err(error), "{text}");
        }
    }
}
