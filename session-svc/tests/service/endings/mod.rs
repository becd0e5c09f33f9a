//! Endings on real servers that are full, out of order, stand still, or have no replica.

mod acknowledged;
mod full;
mod given_up;
mod still;
