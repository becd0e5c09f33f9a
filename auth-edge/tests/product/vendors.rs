//! Providers as in their vendors' public documents: nonstandard addresses, claims and parameters.

mod addresses;
mod large;
mod scripted;
mod stand_in;
mod tenants;
