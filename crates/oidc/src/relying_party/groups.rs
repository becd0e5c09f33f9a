//! Reads a user's groups if the ID token has too many to list (Microsoft Entra ID: more than 200, marked by
//! `_claim_names`, OpenID Connect Core 5.6.2).
//!
//! Invariants
//! - Only the configured URL is read, never one from a token: it receives the access token.
//! - Further pages must have the origin of that URL, and their number is bounded.

use serde_json::{Map, Value};
use url::Url;

use super::RelyingParty;
use crate::{GroupsError, ProviderError};

/// The name of the URL in errors.
const ENDPOINT: &str = "groups";

/// Bound on pages: at 999 groups each, more than a session can hold.
const MAX_PAGES: usize = 4;

impl RelyingParty {
    /// The ids of all direct and indirect groups of the access token's user. `None` if no URL is configured.
    ///
    /// # Errors
    /// The groups could not be read.
    pub async fn groups(
        &self,
        token_type: &str,
        access_token: &str,
        now: u64,
    ) -> Result<Option<Vec<String>>, GroupsError> {
        let Some(first) = self.settings.groups_url.clone() else {
            return Ok(None);
        };
        let origin = first.origin();
        let (mut groups, mut next) = (Vec::new(), Some(first));
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else {
                return Ok(Some(groups));
            };
            let access = self.access.load_full();
            let token = (token_type, access_token);
            let answer = access.get_with_token(ENDPOINT, &url, token, now).await?;
            match answer.status {
                200 => {}
                401 | 403 => return Err(GroupsError::NotAllowed(answer.status)),
                _ => return Err(answer.status_error().into()),
            }
            let page: Map<String, Value> = answer.json()?;
            let listed = page.get("value").and_then(Value::as_array);
            let listed = listed.ok_or(ProviderError::Malformed(ENDPOINT))?;
            let ids = listed.iter().filter_map(|group| group.get("id")?.as_str());
            groups.extend(ids.map(str::to_owned));
            let link = page.get("@odata.nextLink").and_then(Value::as_str);
            next = link.and_then(|link| Url::parse(link).ok());
            if next.as_ref().is_some_and(|url| url.origin() != origin) {
                return Err(ProviderError::Malformed(ENDPOINT).into());
            }
        }
        match next {
            None => Ok(Some(groups)),
            Some(_) => Err(GroupsError::TooMany),
        }
    }
}
