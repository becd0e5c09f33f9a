//! One request on its way to an upstream.

use crate::gateway::Gateway;
use crate::gateway::authorized::Authorized;
use crate::route_table::{Route, Server};
use crate::values::path::RequestPath;

/// Where a request goes, and on whose behalf.
pub(in crate::gateway) struct ProxyContext<'a> {
    /// What the gateway is made of.
    pub(crate) gateway: &'a Gateway,
    /// The upstream.
    pub(crate) server: &'a Server,
    /// The rule that leads there.
    pub(crate) route: &'a Route,
    /// The path as it was read.
    pub(crate) path: &'a RequestPath,
    /// What the guard authorized it with.
    pub(crate) authorized: &'a Authorized,
    /// Whether it is a WebSocket handshake.
    pub(crate) is_websocket: bool,
}
