//! session-svc
fn main() {}
