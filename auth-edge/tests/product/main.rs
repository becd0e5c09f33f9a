//! The edge as browsers and providers meet it: real HTTP, the real session service in this process, a scripted provider.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod account_abuse;
mod analytics;
mod asks;
mod assertions;
mod callback;
mod credentials;
mod demands;
mod desync;
mod ext_authz;
mod foreign_cookies;
mod forward_auth;
mod gateway;
mod grpc_web;
mod limits;
mod login;
mod logout;
mod many_people;
mod modules;
mod outages;
mod profile;
mod provider_logout;
mod proxying;
mod real_provider;
mod reload;
mod routes;
mod session_cache;
mod several;
mod shares;
mod sign_out_races;
mod spoofing;
mod streaming;
mod strict_cookie;
mod support;
mod upstream_tokens;
