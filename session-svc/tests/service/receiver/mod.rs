//! Security events of a transmitter with real keys: their effect on sessions, at either replica.

mod demands;
mod ending;
mod refused;
mod revocation;
mod subjects;
mod support;
