//! The shell that every request passes: its record, its protection, and how failures are shown.

pub(crate) mod device;
pub(crate) mod errors;
pub(crate) mod layer;
pub(crate) mod mapped_body;
pub(crate) mod observe;
pub(crate) mod pages;
pub(crate) mod protect;
pub(crate) mod request;
pub(crate) mod response;
