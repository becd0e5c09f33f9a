//! The operator's commands, in the session service's own binary.
//!
//! | Command | Works on |
//! |---|---|
//! | `sessions list`, `search`, `end` | a running service, over gRPC: with its policy, its audit log and its watchers |
//! | `doctor` | the provider and the store, with the settings of the service |
//! | `check-store` | the store itself: a file has to be free, Redis is shared with running services |
//! | `pause` | nothing: it waits |
//! | `receivers metadata`, `keys` | the file of `SESSION_SIGNALS`: prints what the operator publishes |
//!
//! Invariants
//! - Exit codes: 0 done, 1 failed or unhealthy, 2 wrong usage, 3 no such session, 78 wrong settings.
//! - No token, session ID, key or sealed text is ever shown.
//!
//! Why it is the same binary and calls a running service: docs/decisions/operators-tool.md.

mod check_store;
mod doctor;
mod failure;
mod pause;
mod receivers;
mod service;
mod sessions;
mod store;

use chassis::tool::Tool;

/// All commands.
pub static TOOLS: [&dyn Tool; 5] = [
    &sessions::SessionsTool,
    &check_store::CHECK_STORE,
    &doctor::DOCTOR,
    &pause::PauseTool,
    &receivers::ReceiversTool,
];
