//! The use cases of the session service.
//!
//! Invariants
//! - All times come from the store's clock.
//! - A secret session ID is converted to its handle at once and goes no further.
//! - Every ending revokes the session's tokens at the provider, later and in the background.
//!
//! Deliberately absent: status codes, protobuf, the provider's protocol.

mod access_token;
mod bind;
mod create;
mod end;
mod end_found;
mod limit;
mod list;
mod once;
mod permits;
mod read;
mod rotate;
mod search;
mod security_event;
mod sign_in;
mod update;
mod use_cases;
mod watch;

pub use crate::error::SessionsError;
pub(crate) use crate::error::TokenRefreshError;
pub(crate) use create::FINGERPRINT_BYTES;
pub use create::{CreatedSession, NewSession, SESSION_BYTES_MAX};
pub(crate) use end::SingleUseOrder;
pub use end::{EndAll, OfflineTokens};
pub(crate) use end_found::FoundEnding;
pub(crate) use security_event::{EventAction, EventOrder, Selector};
pub(crate) use sign_in::{BeginSignInOutcome, SignInAttempt};
pub(crate) use sign_in::{fingerprint, holder_hash};
pub use update::SessionUpdate;
pub use use_cases::{SessionLimits, Sessions};
pub use watch::WATCH_HEARTBEAT;
pub(crate) use watch::{WatchScope, WatchUpdate, Watching};
