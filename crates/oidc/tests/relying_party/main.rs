//! The relying party against a provider with one fault at a time.

#![expect(
    clippy::expect_used,
    clippy::type_complexity,
    reason = "a panic is how a test fails; tables of cases"
)]

mod access_tokens;
mod api_tokens;
mod elsewhere;
mod grants;
mod id_tokens;
mod keys;
mod lagging_keys;
mod logout_tokens;
mod new_algorithms;
mod null_claims;
mod oauth_metadata;
mod odd_answers;
mod provider;
mod remade_keys;
mod support;
mod token_shapes;
