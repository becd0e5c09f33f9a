//! Sessions: pure values and the rules between them.
//!
//! Invariants
//! - The code here reads no clock and does no IO. Field numbers are those of the stored form (`vault::wire`).
//! - Times are milliseconds since the Unix epoch by the store's clock.
//! - A secret session ID exists only in a request and its response; a session has only its public handle.
//!
//! Deliberately absent: earlier versions of a session, and browser data other than request values.

pub(crate) mod access;
pub(crate) mod api_access;
pub(crate) mod api_token;
pub(crate) mod binding;
pub(crate) mod cause;
pub mod change;
pub(crate) mod claims;
pub(crate) mod cookie_generation;
pub(crate) mod device;
pub(crate) mod filter;
pub(crate) mod id;
pub(crate) mod id_token;
pub mod index;
pub(crate) mod lifetime;
mod name;
pub(crate) mod operator_notice;
pub(crate) mod revocable;
pub(crate) mod sign_in_demand;
pub(crate) mod tokens;
mod values;

pub use api_token::{ApiTarget, ApiToken, ApiTokenSource, ApiTokens};
pub use binding::{DeviceBinding, DeviceKey};
pub use cause::Cause;
pub use claims::Claims;
pub use cookie_generation::{CookieGeneration, GenerationId, GenerationVerdict, ReceivedGeneration};
pub use device::Device;
pub(crate) use filter::{FilterBy, SessionFilter};
pub use id::{Handle, SessionId};
pub use lifetime::Lifetime;
pub use name::Name;
pub use operator_notice::OperatorNotice;
pub use revocable::RevocableToken;
pub use sign_in_demand::SignInDemand;
pub use tokens::{AccessToken, GrantedToken, PendingAnswer, Scope, SessionTokens, StoredToken, TokenRefusal};
pub use values::{Session, SessionValues};
