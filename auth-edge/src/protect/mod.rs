//! What keeps browsers and the edge safe from each other and from everybody else.

pub mod csrf;
pub mod forwarded;
pub mod rate_limit;
pub mod security_headers;
