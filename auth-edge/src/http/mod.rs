//! The shell that every request passes: its record, its protection, and how failures are shown.

pub mod device;
pub mod errors;
pub mod layer;
pub mod observe;
pub mod pages;
pub mod passing_body;
pub mod protect;
pub mod request;
pub mod response;
