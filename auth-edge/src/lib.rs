//! auth-edge
