//! Tokens, their verification keys, and the checks of their claims.

pub(crate) mod access_token;
pub(crate) mod claims;
pub(crate) mod device_proof;
pub(crate) mod dpop_proof;
pub(crate) mod id_token;
pub(crate) mod jws;
pub(crate) mod key_set;
pub(crate) mod proof;
#[cfg(test)]
pub(crate) mod proof_key_tests;
pub(crate) mod provider_key;
pub(crate) mod token_set;
pub(crate) mod userinfo;
