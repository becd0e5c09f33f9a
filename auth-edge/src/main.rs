//! auth-edge
fn main() {}
