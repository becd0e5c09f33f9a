//! Names of claims and the checks every kind of token shares.

/// Claims that serve the protocol and are left out of a session's user by default.
pub const PROTOCOL_CLAIMS: [&str; 11] = [
    "aud",
    "iss",
    "iat",
    "exp",
    "nbf",
    "nonce",
    "azp",
    "auth_time",
    "s_hash",
    "at_hash",
    "c_hash",
];
