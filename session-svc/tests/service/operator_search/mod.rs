//! `session.v1.OperatorSessionService` on two services with one store.

mod activity;
mod ending;
mod refused;
mod searching;
mod support;
