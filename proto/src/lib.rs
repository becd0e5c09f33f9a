//! session-proto
