//! Endings on real servers that are full, failing or frozen, or have no replica.

mod acknowledged;
mod full;
mod given_up;
mod still;
