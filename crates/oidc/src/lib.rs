//! oidc
