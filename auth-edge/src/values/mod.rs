//! Values: parsed once, compared often. No IO, no state, no dependency on other parts of the edge.

pub(crate) mod allowed_parameters;
pub(crate) mod claim_path;
pub(crate) mod forwarded;
pub(crate) mod header_name;
pub(crate) mod host_name;
pub(crate) mod path;
pub(crate) mod proxy_headers;
pub(crate) mod refusal;
pub(crate) mod reserved;
pub(crate) mod return_to;
pub(crate) mod web_url;
