//! The decision point that a rule asks (`decide`).

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

/// A decision point, and what the edge asks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecisionRule {
    /// The address to which the paths of the API are added.
    pub(crate) url: Url,
    /// The actions to ask about; the method of the request if the list is empty.
    pub(crate) actions: Vec<String>,
    /// The claims about the user that the question includes.
    pub(crate) claims: Vec<String>,
    /// The file with the value of the `Authorization` header.
    pub(crate) authorization_file: Option<PathBuf>,
    /// How long a permit counts while the decision point does not answer.
    pub(crate) stale: Duration,
}
