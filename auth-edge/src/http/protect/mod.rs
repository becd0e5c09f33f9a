//! Protects browsers and the edge from each other and from third parties.

pub(crate) mod csrf;
pub(crate) mod host;
pub(crate) mod load;
pub(crate) mod rate_limit;
pub(crate) mod redirects;
pub(crate) mod security_headers;
pub(crate) mod shares;
pub(crate) mod slow_client;
