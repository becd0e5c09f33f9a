//! Refreshing tokens over real parts: services on their own ports, Redis, and a provider. The provider
//! rotates refresh tokens, detects their reuse, and fails as scripted.

mod clocks;
mod draining;
mod fencing;
mod full;
mod gate;
mod interleavings;
mod kept;
mod killed;
mod model;
mod odd_responses;
mod outages;
mod parallel;
mod pending_answers;
mod plain_store;
mod provider_sessions;
mod revalidation;
mod revocation;
mod several;
mod slow_store;
mod standing_store;
pub(crate) mod support;
mod turns;
mod wait_limit;
mod waiting;
