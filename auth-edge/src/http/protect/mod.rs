//! What keeps browsers and the edge safe from each other and from everybody else.

pub(crate) mod csrf;
pub(crate) mod host;
pub(crate) mod load;
pub(crate) mod rate_limit;
pub(crate) mod redirects;
pub(crate) mod security_headers;
pub(crate) mod shares;
pub(crate) mod slow_client;
