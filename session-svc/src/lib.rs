//! session-svc
