//! Security events of a transmitter with real keys: what becomes of sessions, at whichever replica they arrive.

mod demands;
mod ending;
mod refused;
mod subjects;
mod support;
