//! Values: parsed once, compared often. No IO, no state; nothing here knows another room.

pub mod forwarded;
pub mod login_parameters;
pub mod path;
pub mod reserved;
pub mod return_to;
