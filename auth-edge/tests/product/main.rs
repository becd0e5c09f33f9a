//! The edge as browsers and providers meet it: real HTTP, the real session service in this process, a scripted provider.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod callback;
mod forward_auth;
mod gateway;
mod grpc_web;
mod login;
mod logout;
mod outages;
mod profile;
mod provider_logout;
mod proxying;
mod real_provider;
mod routes;
mod support;
