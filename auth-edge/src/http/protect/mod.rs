//! What keeps browsers and the edge safe from each other and from everybody else.

pub mod csrf;
pub mod host;
pub mod load;
pub mod rate_limit;
pub mod redirects;
pub mod security_headers;
pub mod slow_client;
pub mod visitors;
