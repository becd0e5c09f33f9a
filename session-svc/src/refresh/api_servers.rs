//! The authorization servers of APIs in other trust domains, and this service as their client.
//!
//! Invariant: no two servers have the same name or issuer.

use std::path::PathBuf;
use std::sync::Arc;

use chassis::secret::Reloading;
use chassis::settings::toml_file::FileMistakes;
use oidc::{RelyingParty, TokenTarget};

use crate::session::ApiTarget;

/// The setting that names the file.
const SETTING: &str = "SESSION_API_SERVERS";

/// An API's own authorization server.
pub struct ApiServer {
    /// The name that routes and callers use as audience.
    pub(crate) audience: String,
    /// The resource for requests that name none; empty for none.
    pub(crate) resource: String,
    /// The scope for requests without scopes, space-separated; empty for none.
    pub(crate) scope: String,
    /// This service as the server's client.
    pub(crate) client: RelyingParty,
}

impl ApiServer {
    pub(crate) fn issuer(&self) -> &str {
        &self.client.settings().issuer
    }

    /// The token to request for a target, whose scopes are `scope`. What it leaves out is the file's.
    pub(super) fn token_target<'a>(&'a self, target: &'a ApiTarget, scope: &'a str) -> TokenTarget<'a> {
        let first = |texts: [&'a str; 2]| texts.into_iter().find(|text| !text.is_empty());
        TokenTarget {
            audience: None,
            resource: first([&target.resource, &self.resource]),
            scope: first([scope, &self.scope]),
        }
    }
}

/// The servers of a file, and the files that it names.
#[derive(Default)]
pub struct ServerList {
    pub(crate) servers: Vec<Arc<ApiServer>>,
    pub(crate) files: Vec<PathBuf>,
}

/// The servers in use; clones share them. The default has no server.
#[derive(Clone, Debug)]
pub struct ApiServers(Reloading<ServerList>);

impl Default for ApiServers {
    fn default() -> Self {
        Self::new(ServerList::default())
    }
}

impl ApiServers {
    /// Starts with these servers.
    #[must_use]
    pub fn new(list: ServerList) -> Self {
        Self(Reloading::new(list))
    }

    /// The server with this name.
    pub(crate) fn named(&self, audience: &str) -> Option<Arc<ApiServer>> {
        self.find(|server| server.audience == audience)
    }

    /// The server with this issuer.
    pub(super) fn of(&self, issuer: &str) -> Option<Arc<ApiServer>> {
        self.find(|server| server.issuer() == issuer)
    }

    fn find(&self, is_it: impl Fn(&ApiServer) -> bool) -> Option<Arc<ApiServer>> {
        let list = self.0.load();
        list.servers.iter().find(|server| is_it(server)).cloned()
    }

    /// Reads the file again when it changes, or a file that it names. Needs a tokio runtime, and ends with it.
    pub(crate) fn follow<P>(&self, path: PathBuf, parse: P)
    where
        P: Fn(&str) -> Result<ServerList, FileMistakes> + Clone + Send + 'static,
    {
        let named = |list: &ServerList| list.files.clone();
        tokio::spawn(self.0.clone().follow_all(SETTING, path, named, parse));
    }
}
