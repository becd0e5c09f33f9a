//! The `iss` parameter of authorization responses (RFC 9207).

use crate::{IssuerParameterError, Metadata};

/// Checks the parameter of a response, success or error: required when the provider promises it, and equal
/// byte by byte whenever it is there (RFC 9207 section 2.4).
pub fn check_issuer_parameter(metadata: &Metadata, iss: Option<&str>) -> Result<(), IssuerParameterError> {
    match iss {
        Some(iss) if iss == metadata.issuer => Ok(()),
        Some(_) => Err(IssuerParameterError::Mismatch),
        None if metadata.iss_parameter_promised => Err(IssuerParameterError::Missing),
        None => Ok(()),
    }
}
