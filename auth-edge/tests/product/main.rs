//! The edge as browsers and providers see it: real HTTP and session service, scripted provider.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod account_abuse;
mod allow;
mod analytics;
mod answer_framing;
mod answer_heads;
mod answers;
mod api_tokens;
mod assertions;
mod auth_time;
mod bearer;
mod callback;
mod check_rules;
mod claim_headers;
mod cookie_rotation;
mod credentials;
mod cross_site;
mod decisions;
mod demands;
mod desync;
mod device_bound;
mod encoded_paths;
mod ext_authz;
mod folder_links;
mod folder_ranges;
mod foreign_cookies;
mod forward_auth;
mod frames;
mod framing;
mod gateway;
mod global_token_revocation;
mod grpc_web;
mod hosts;
mod idle;
mod kept_form;
mod late_cookies;
mod limits;
mod loads;
mod login;
mod logout;
mod logout_during_sign_in;
mod lost_creation;
mod many_people;
mod modules;
mod one_redemption;
mod operators;
mod outages;
mod own_pages;
mod profile;
mod provider_clock;
mod provider_defaults;
mod provider_logout;
mod proxying;
mod real_provider;
mod refusals;
mod reload;
mod requirements;
mod restored_tabs;
mod routes;
mod security_events;
mod selectors;
mod session_cache;
mod session_streams;
mod several;
mod shares;
mod sign_out_races;
mod signed_out_here;
mod slow_refresh;
mod spoofing;
mod stream_endings;
mod streaming;
mod strict_cookie;
mod support;
mod traces;
mod unprocessed;
mod upstream_answers;
mod upstream_tokens;
mod vendors;
mod visits;
