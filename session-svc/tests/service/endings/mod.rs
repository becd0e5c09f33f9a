//! Endings on real servers that are full, out of order, or stand still.

mod full;
mod still;
