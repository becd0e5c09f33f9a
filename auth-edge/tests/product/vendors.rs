//! Providers as their vendors' public documents describe them: addresses, claims and parameters that differ from the standard.

mod addresses;
mod large;
mod scripted;
mod stand_in;
mod tenants;
