//! What an operator wrote for a user.

use prost::Message;

/// What an operator wrote for a user whose sessions the operator ended.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct OperatorNotice {
    /// When the sessions ended, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "1")]
    pub at_ms: u64,
    /// The text.
    #[prost(string, tag = "2")]
    pub text: String,
}
